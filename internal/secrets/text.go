package secrets

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// hiddenLength is the minimum length of a part of a value that is hidden wherever it occurs, in bytes. Shorter
	// values are hidden only where they are words.
	hiddenLength = 8
	// maxWork limits the total size of the spellings that are searched, in bytes, and so the time.
	maxWork = 4 << 20
	// LeftOut replaces a text whose spellings exceed maxWork.
	LeftOut = mark + " (not shown: it may quote values of a Secret)"
)

// WithoutValues returns a text from another source, such as a server's error, in which *** replaces the values of the
// Secrets in trees, and parts of these values. The objects in trees are the objects that the text is about. Values are
// hidden in every spelling: the search decodes the [encodings] in the text, in all orders, and knows the position of
// each byte of a spelling in the text.
//
//	password: "hun\"ter2"    the text
//	password: "hun"ter2"     a spelling: the value is bytes 11 to 18, so bytes 11 to 19 of the text are hidden
//
// A value that equals a word in a name (see nameForm) is not hidden there: hiding would show that it is equal.
//
// The time is linear in the values, and limited for the text: if too much of it is encoded, the result is [LeftOut].
func WithoutValues(text string, trees ...map[string]any) string { return Hide(trees...)(text) }

// Hide returns a function that does the same as [WithoutValues] for several texts, which share one limit.
func Hide(trees ...map[string]any) func(text string) string {
	runs, names, work := runsOf(trees), namesOf(trees), 0
	return func(text string) string {
		if len(runs) == 0 {
			return text
		}
		return hide(text, runs, names, &work)
	}
}

func hide(text string, runs map[string]bool, names map[string]bool, work *int) string {
	given := spelling{text: text}
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		given.at = append(given.at, slices.Repeat([]span{{i, i + size}}, size)...)
		i += size
	}
	changes := make([]int, len(text)+1) // at each byte: change of the number of findings that contain it
	joins := make([]int, len(text)+1)   // the same for findings that contain the byte and the byte before it
	isComplete := given.each(encodings, work, func(s spelling) {
		for _, s := range []spelling{s, s.undo(blanks)} {
			s.find(runs, func(found span) {
				changes[found.start]++
				changes[found.end]--
				joins[min(found.start+1, found.end)]++
				joins[found.end]--
			})
		}
	})
	if !isComplete {
		return LeftOut
	}
	for i := range len(text) {
		joins[i+1] += joins[i]
	}
	isNamed := make([]bool, len(text))
	for _, at := range nameForm.FindAllStringIndex(text, -1) {
		name := strings.TrimRight(text[at[0]:at[1]], ".")
		end := at[0] + len(name)
		if names[name] && joins[at[0]] == 0 && joins[end] == 0 { // no value contains more than the name
			for i := at[0]; i < end; i++ {
				isNamed[i] = true
			}
		}
	}
	var out strings.Builder
	finds, isHidden := 0, false
	for i := range len(text) {
		finds += changes[i]
		isFirst := !isHidden
		isHidden = finds > 0 && !isNamed[i]
		switch {
		case !isHidden:
			out.WriteByte(text[i])
		case isFirst:
			out.WriteString(mark)
		}
	}
	return out.String()
}

// nameForm matches the texts in which servers name Secrets, their managers and their fields.
var nameForm = regexp.MustCompile(`\b(?:(?:secrets|Secret) "(?:[^"\\]|\\.)*"|` +
	`conflicts? with "(?:[^"\\]|\\.)*"(?: with subresource "[^"]*")?(?: using [\w./-]+)?|` +
	`(?:data|stringData|metadata\.annotations|metadata\.labels)(?:\[[^]]*\]|\.[\w./-]+))`)

// namesOf returns the texts of nameForm that name something in the given Secrets.
func namesOf(trees []map[string]any) map[string]bool {
	names := map[string]bool{}
	for _, tree := range trees {
		if !Is(tree) {
			continue
		}
		metadata, _ := tree["metadata"].(map[string]any)
		names[fmt.Sprintf("secrets %q", metadata["name"])] = true
		names[fmt.Sprintf("Secret %q", metadata["name"])] = true
		entries, _ := metadata["managedFields"].([]any)
		for _, entry := range entries {
			e, _ := entry.(map[string]any)
			owner := fmt.Sprintf("%q", e["manager"])
			if e["subresource"] != nil {
				owner += fmt.Sprintf(" with subresource %q", e["subresource"])
			}
			if e["operation"] == "Update" {
				owner += fmt.Sprintf(" using %s", e["apiVersion"])
			}
			names["conflict with "+owner], names["conflicts with "+owner] = true, true
		}
		for around, value := range map[string]any{
			"data": tree["data"], "stringData": tree["stringData"],
			"metadata.annotations": metadata["annotations"], "metadata.labels": metadata["labels"],
		} {
			fields, _ := value.(map[string]any)
			for name := range fields {
				names[around+"."+name], names[around+"["+name+"]"] = true, true
			}
		}
	}
	return names
}

// runsOf returns all parts of the values of Secrets that are hiddenLength bytes long, and all values that are shorter.
func runsOf(trees []map[string]any) map[string]bool {
	runs, work := map[string]bool{}, 0
	add := func(s spelling) {
		for _, text := range []string{s.text, s.undo(blanks).text} {
			if len(text) > 0 && len(text) < hiddenLength {
				runs[text] = true
			}
			for i := range max(len(text)-hiddenLength+1, 0) {
				runs[text[i:i+hiddenLength]] = true
			}
		}
	}
	for _, tree := range trees {
		if !Is(tree) {
			continue
		}
		v := &veil{}
		v.secret(tree)
		slices.Sort(v.values)
		for _, value := range slices.Compact(v.values) {
			// Servers trim white space, and JSON has U+FFFD for a byte that is not UTF-8.
			for _, text := range []string{value, strings.TrimSpace(value), string([]rune(value)),
				base64.StdEncoding.EncodeToString([]byte(value))} {
				spelling{text: text, at: make([]span, len(text))}.each(encodings[:1], &work, add)
			}
		}
	}
	return runs
}

// find calls found for each run in a spelling. A short run must be a word, and is ignored in decoded base64, where
// words occur by chance.
func (s spelling) find(runs map[string]bool, found func(span)) {
	isWord := func(i int) bool { return i >= 0 && i < len(s.text) && isLetter(s.text[i]) }
	for i := range s.text {
		for length := 1; length <= hiddenLength && i+length <= len(s.text); length++ {
			isShort := length < hiddenLength
			if isShort && (s.isDecoded || isWord(i-1) || isWord(i+length)) || !runs[s.text[i:i+length]] {
				continue
			}
			found(span{s.at[i].start, s.at[i+length-1].end})
		}
	}
}
