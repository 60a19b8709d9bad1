package secrets

import (
	"encoding/base64"
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
// Secrets in trees, and parts of these values. trees are the objects that the text is about. Values are hidden in every
// spelling: the search decodes the [encodings] in the text, in all orders, and knows the position of each byte of a
// spelling in the text.
//
//	password: "hun\"ter2"    the text
//	password: "hun"ter2"     a spelling: the value is bytes 11 to 18, so bytes 11 to 19 of the text are hidden
//
// The time is linear in the values, and limited for the text: if too much of it is encoded, the result is [LeftOut].
func WithoutValues(text string, trees ...map[string]any) string { return Hide(trees...)(text) }

// Hide returns a function that does the same as [WithoutValues] for several texts, which share one limit.
func Hide(trees ...map[string]any) func(text string) string {
	runs, work := runsOf(trees), 0
	return func(text string) string {
		if len(runs) == 0 {
			return text
		}
		return hide(text, runs, &work)
	}
}

func hide(text string, runs map[string]bool, work *int) string {
	given := spelling{text: text}
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		given.at = append(given.at, slices.Repeat([]span{{i, i + size}}, size)...)
		i += size
	}
	changes := make([]int, len(text)+1) // at each byte: change of the number of findings that contain it
	isComplete := given.each(encodings, work, func(s spelling) {
		for _, s := range []spelling{s, s.undo(blanks)} {
			s.find(runs, func(found span) {
				changes[found.start]++
				changes[found.end]--
			})
		}
	})
	if !isComplete {
		return LeftOut
	}
	var out strings.Builder
	finds := 0
	for i := range len(text) {
		isFirst := finds == 0
		finds += changes[i]
		switch {
		case finds == 0:
			out.WriteByte(text[i])
		case isFirst:
			out.WriteString(mark)
		}
	}
	return out.String()
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
