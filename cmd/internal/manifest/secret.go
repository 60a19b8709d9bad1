package manifest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SecretKind is the kind of Secrets.
var SecretKind = schema.GroupKind{Kind: "Secret"}

// stand is the key that stand-ins are made with. It is of this process, so that nobody can guess values by them.
var stand = func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // which never fails
	return key
}()

// A stand-in is the mark and some digits, or base64 of that. Two values do not get the same minStandIn digits.
const (
	mark       = "***"
	minStandIn = 16
)

var (
	isStandIn  = regexp.MustCompile(`^\*\*\*[0-9a-f]{16,}$`)
	mayStandIn = regexp.MustCompile(`\*\*\*[0-9a-f]{16,}|Kioq[0-9A-Za-z+/]{20,}={0,2}`)
)

// ReplaceStandIns returns a text of a shown object with another text in the place of the stand-ins in it.
func ReplaceStandIns(text, with string) string {
	return mayStandIn.ReplaceAllStringFunc(text, func(found string) string {
		decoded, err := base64.StdEncoding.DecodeString(found)
		if isStandIn.MatchString(found) || err == nil && isStandIn.Match(decoded) {
			return with
		}
		return found
	})
}

// IsSecret reports whether an object is a Secret.
func IsSecret(tree map[string]any) bool {
	gvk, err := GVKOf(tree)
	return err == nil && gvk.GroupKind() == SecretKind
}

// Shown returns what of an object may be shown: the object itself, or a copy of a Secret with stand-ins in the place of
// its values. Equal values have equal stand-ins and others have others, also where one is base64 of the other, and a
// stand-in is of the type of its value. So plans, conflicts and moves are the same with them, and whatever is printed
// of a shown object, it is no value.
//
// Everything is a value but apiVersion, kind, type, the metadata that are not annotations, and true and false.
func Shown(tree map[string]any) map[string]any {
	if !IsSecret(tree) {
		return tree
	}
	return shownSecret(tree)
}

func shownSecret(tree map[string]any) map[string]any {
	out := maps.Clone(tree)
	for name, value := range tree {
		switch name {
		case "apiVersion", "kind", "type":
		case "metadata":
			out[name] = shownMetadata(value)
		case "data":
			out[name] = standIns(value, encodedStandIn)
		default:
			out[name] = standIns(value, standIn)
		}
	}
	return out
}

func shownMetadata(metadata any) any {
	metadata = edited(metadata, "annotations", func(annotations any) any {
		return edited(standIns(annotations, standIn), corev1.LastAppliedConfigAnnotation, func(any) any {
			return shownApplied(annotations.(map[string]any)[corev1.LastAppliedConfigAnnotation])
		})
	})
	return edited(metadata, "managedFields", func(list any) any {
		entries, ok := list.([]any)
		if !ok {
			return standIns(list, standIn)
		}
		entries = slices.Clone(entries)
		for i := range entries {
			entries[i] = edited(entries[i], "fieldsV1", shownOwned)
		}
		return entries
	})
}

// edited returns a copy of an object with another value of a field that it has, or else what it is given.
func edited(object any, name string, edit func(any) any) any {
	fields, _ := object.(map[string]any)
	value, ok := fields[name]
	if !ok {
		return object
	}
	fields = maps.Clone(fields)
	fields[name] = edit(value)
	return fields
}

// shownApplied returns the last-applied annotation with stand-ins in it. If it is not canonical, it stays so.
func shownApplied(value any) any {
	text, _ := value.(string)
	var applied map[string]any
	if json.Unmarshal([]byte(text), &applied) != nil || !IsSecret(applied) {
		return standIns(value, standIn)
	}
	compact, _ := json.Marshal(applied)
	shown, err := json.Marshal(shownSecret(applied))
	rest, isCanonical := strings.CutPrefix(text, string(compact))
	switch {
	case err != nil:
		return standIn(text)
	case !isCanonical:
		rest = " "
	}
	return string(shown) + rest
}

// shownOwned returns FieldsV1 with stand-ins for the values that are in its keys.
func shownOwned(value any) any {
	return edited(shownFields(value), "f:metadata", func(any) any {
		return edited(value.(map[string]any)["f:metadata"], "f:annotations", shownFields)
	})
}

func shownFields(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return standIns(value, standIn)
	}
	out := make(map[string]any, len(fields))
	for key, below := range fields {
		out[shownKey(key)] = shownFields(below)
	}
	return out
}

// shownKey returns a key of FieldsV1: the name of a field as it is, other keys with a stand-in.
func shownKey(key string) string {
	switch prefix, rest, _ := strings.Cut(key, ":"); {
	case prefix == "f" || key == ".":
		return key
	case prefix == "v":
		return `v:"` + standIn(rest) + `"`
	case prefix == "k":
		return `k:{"` + standIn(rest) + `":""}`
	}
	return standIn(key)
}

// standIns returns a value with stand-ins for all strings and numbers in it.
func standIns(value any, of func(string) string) any {
	switch value := value.(type) {
	case string:
		return of(value)
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, v := range value {
			out[name] = standIns(v, of)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = standIns(v, of)
		}
		return out
	case nil, bool:
		return value
	}
	text, _ := json.Marshal(value)
	return int64(binary.BigEndian.Uint32(digest(string(text))))
}

// standIn returns the stand-in of a text: of its length, so that sizes stay, unless that is too short.
func standIn(text string) string {
	if text == "" {
		return ""
	}
	of, length := hex.EncodeToString(digest(text)), max(len(text)-len(mark), minStandIn)
	return mark + strings.Repeat(of, length/len(of)+1)[:length]
}

// encodedStandIn returns the stand-in of a text in base64: that of the decoded text, encoded.
func encodedStandIn(text string) string {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return standIn(text) // it is no base64 either
	}
	out := base64.StdEncoding.EncodeToString([]byte(standIn(string(decoded))))
	if base64.StdEncoding.EncodeToString(decoded) != text {
		out += "\n" // the same value in other letters, as it was
	}
	return out
}

func digest(text string) []byte {
	mac := hmac.New(sha256.New, stand)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// hiddenLength is how many characters of a value in a row are hidden, wherever they are. Shorter values are hidden
// where they are words.
const hiddenLength = 8

// WithoutValues returns a text of others about objects, such as the error of a server, with *** in the place of the
// values of those that are Secrets.
func WithoutValues(text string, trees ...map[string]any) string {
	at := map[string][]int{} // where a run of characters begins
	for i := 0; i+hiddenLength <= len(text); i++ {
		at[text[i:i+hiddenLength]] = append(at[text[i:i+hiddenLength]], i)
	}
	hide := func(value string) {
		for i := 0; i+hiddenLength <= len(value); i++ {
			for _, start := range at[value[i:i+hiddenLength]] {
				text = text[:start] + strings.Repeat("\x00", hiddenLength) + text[start+hiddenLength:]
			}
		}
		if value != "" && len(value) < hiddenLength {
			word := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(value) + `(\W|$)`)
			for range 2 { // two of them may share what is between them
				text = word.ReplaceAllString(text, "${1}"+strings.Repeat("\x00", len(value))+"${2}")
			}
		}
	}
	for _, tree := range trees {
		if !IsSecret(tree) {
			continue
		}
		eachValue(tree, Shown(tree), func(value string) {
			hide(value)
			hide(base64.StdEncoding.EncodeToString([]byte(value)))
			if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
				hide(string(decoded))
			}
		})
	}
	return regexp.MustCompile("\x00+").ReplaceAllString(text, mark)
}

// eachValue calls see with what is in an object, and not in what is shown of it.
func eachValue(real, shown any, see func(string)) {
	switch real := real.(type) {
	case map[string]any:
		shown, _ := shown.(map[string]any)
		for name, value := range real {
			below, ok := shown[name]
			if !ok {
				see(name[min(2, len(name)):])
			}
			eachValue(value, below, see)
		}
	case []any:
		shown, _ := shown.([]any)
		for i, value := range real {
			if i < len(shown) {
				eachValue(value, shown[i], see)
			}
		}
	case string:
		var in, of map[string]any
		text, _ := shown.(string)
		if json.Unmarshal([]byte(real), &in) == nil && json.Unmarshal([]byte(text), &of) == nil {
			eachValue(in, of, see) // the last-applied annotation
		} else if real != text {
			see(real)
		}
	default:
		if real != shown {
			see(fmt.Sprint(real))
		}
	}
}
