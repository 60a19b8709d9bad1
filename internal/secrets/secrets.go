// Package secrets decides which parts of a Secret may be shown: everything except its values.
//
// A printer gets the result of [Shown] in place of an object. The result has a stand-in for each value, so that the
// printer can't print the value. [WithoutValues] is for texts from other sources, such as a server's error, which may
// quote values.
package secrets

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// lastApplied is the annotation of client-side apply, which contains the values as JSON.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Hidden replaces a value that may not be shown.
const Hidden = mark

// key is the key from which stand-ins are made. It is random in each process, so that nobody can guess values from
// stand-ins.
var key = []byte(rand.Text())

// A stand-in is the mark and some digits, or their base64. In practice, two values never get the same minDigits digits.
const (
	mark      = "***"
	minDigits = 16
)

var (
	isStandIn  = regexp.MustCompile(`^\*\*\*[0-9a-f]{16,}$`)
	mayStandIn = regexp.MustCompile(`\*\*\*[0-9a-f]{16,}|Kioq[0-9A-Za-z+/]{20,}={0,2}`)
)

// Is reports whether an object is a Secret.
func Is(tree map[string]any) bool { return tree["apiVersion"] == "v1" && tree["kind"] == "Secret" }

// Shown returns the parts of an object that may be shown: the object itself or, for a Secret, a copy with stand-ins in
// place of its values. Two stand-ins are equal if and only if their values are equal. The stand-in for base64 in data
// is the base64 of the stand-in for the decoded value, so that data and stringData can be compared. A stand-in has the
// type of its value. So plans, conflicts and moves are the same with stand-ins.
//
// Everything in a Secret is a value, except apiVersion, kind, type, all metadata other than annotations, and the
// booleans true and false. The result shares memory with tree.
func Shown(tree map[string]any) map[string]any {
	if !Is(tree) {
		return tree
	}
	return (&veil{}).secret(tree)
}

// ReplaceStandIns replaces all stand-ins in a text of a shown object with another text.
func ReplaceStandIns(text, with string) string {
	return mayStandIn.ReplaceAllStringFunc(text, func(found string) string {
		decoded, err := base64.StdEncoding.DecodeString(found)
		if isStandIn.MatchString(found) || err == nil && isStandIn.Match(decoded) {
			return with
		}
		return found
	})
}

// Replace returns a JSON value of a shown object without stand-ins. If a string is the same in other, the constant
// Hidden replaces its stand-ins. In all other strings, the argument with replaces them.
func Replace(value, other any, with string) any {
	switch value := value.(type) {
	case map[string]any:
		others, _ := other.(map[string]any)
		out := make(map[string]any, len(value))
		for name, v := range value {
			out[name] = Replace(v, others[name], with)
		}
		return out
	case []any:
		others, _ := other.([]any)
		out := make([]any, len(value))
		for i, v := range value {
			var same any
			if i < len(others) {
				same = others[i]
			}
			out[i] = Replace(v, same, with)
		}
		return out
	case string:
		if !mayStandIn.MatchString(value) {
			return value
		} else if value == other {
			with = Hidden
		} else if text, ok := replaceIn(value, other, with); ok {
			return text
		}
		return ReplaceStandIns(value, with)
	}
	return value
}

// replaceIn is Replace for a text that is an object in JSON, such as the last-applied annotation. If other is such a
// text, too, replaceIn compares the values in both objects.
func replaceIn(text string, other any, with string) (shown string, ok bool) {
	var object, another map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", false
	}
	if others, isText := other.(string); isText {
		_ = json.Unmarshal([]byte(others), &another) // without an object, all values differ
	}
	data, err := json.Marshal(Replace(object, another, with))
	return string(data) + text[len(strings.TrimRight(text, " \n")):], err == nil
}

// veil makes stand-ins.
type veil struct {
	values []string // the values that have stand-ins
}

func (v *veil) secret(tree map[string]any) map[string]any {
	out := maps.Clone(tree)
	for name, value := range tree {
		switch name {
		case "apiVersion", "kind", "type":
		case "metadata":
			out[name] = v.metadata(value)
		case "data":
			out[name] = standIns(value, v.encoded, v.text)
		default:
			out[name] = v.value(value)
		}
	}
	return out
}

func (v *veil) metadata(metadata any) any {
	metadata = edited(metadata, "annotations", func(annotations any) any {
		texts, ok := annotations.(map[string]any)
		if !ok {
			return v.value(annotations)
		}
		out := make(map[string]any, len(texts))
		for name, value := range texts {
			if text, ok := value.(string); ok && name == lastApplied {
				out[name] = v.applied(text)
			} else {
				out[name] = v.value(value)
			}
		}
		return out
	})
	return edited(metadata, "managedFields", func(list any) any {
		entries, ok := list.([]any)
		if !ok {
			return v.value(list)
		}
		entries = slices.Clone(entries)
		for i := range entries {
			entries[i] = edited(entries[i], "fieldsV1", v.owned)
		}
		return entries
	})
}

// edited returns a copy of an object with one field edited. If the object does not have the field, it returns the
// object.
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

// applied returns the last-applied annotation with stand-ins. If the annotation is not canonical JSON, the result is
// not canonical either.
func (v *veil) applied(text string) string {
	var tree map[string]any
	if json.Unmarshal([]byte(text), &tree) != nil {
		return v.text(text)
	}
	compact, _ := json.Marshal(tree)
	veiled := v.secret(tree)
	for name, known := range map[string]any{"apiVersion": "v1", "kind": "Secret"} {
		if value, ok := tree[name]; ok && value != known { // it may be anything
			veiled[name] = v.value(value)
		}
	}
	shown, _ := json.Marshal(veiled)
	rest, isCanonical := strings.CutPrefix(text, string(compact))
	if !isCanonical {
		rest = " "
	}
	return string(shown) + rest
}

// owned returns FieldsV1 with stand-ins for the values in its keys.
func (v *veil) owned(value any) any {
	return edited(v.fields(value), "f:metadata", func(any) any {
		return edited(value.(map[string]any)["f:metadata"], "f:annotations", v.fields)
	})
}

func (v *veil) fields(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return v.value(value)
	}
	out := make(map[string]any, len(fields))
	for key, below := range fields {
		switch prefix, rest, _ := strings.Cut(key, ":"); {
		case prefix == "f" || key == ".":
		case prefix == "v":
			key = `v:"` + v.text(strings.Trim(rest, `"`)) + `"`
		case prefix == "k":
			key = `k:{"` + v.text(rest) + `":""}`
		default:
			key = v.text(key)
		}
		out[key] = v.fields(below)
	}
	return out
}

func (v *veil) value(value any) any { return standIns(value, v.text, v.text) }

// standIns returns a value with stand-ins for all strings and numbers in it.
func standIns(value any, ofText, ofNumber func(string) string) any {
	switch value := value.(type) {
	case string:
		return ofText(value)
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, v := range value {
			out[name] = standIns(v, ofText, ofNumber)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = standIns(v, ofText, ofNumber)
		}
		return out
	case nil, bool:
		return value
	}
	text, _ := json.Marshal(value)
	ofNumber(string(text))
	return int64(binary.BigEndian.Uint32(digest(string(text))))
}

// text returns the stand-in for a string. It is as long as the string, so that sizes do not change, but never shorter
// than a minimum.
func (v *veil) text(text string) string {
	if text == "" {
		return ""
	}
	v.values = append(v.values, text)
	digits, length := hex.EncodeToString(digest(text)), max(len(text)-len(mark), minDigits)
	return mark + strings.Repeat(digits, length/len(digits)+1)[:length]
}

// encoded returns the stand-in for a string in base64: the stand-in for the decoded string, encoded.
func (v *veil) encoded(text string) string {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return v.text(text) // the text is not base64
	}
	out := base64.StdEncoding.EncodeToString([]byte(v.text(string(decoded))))
	if base64.StdEncoding.EncodeToString(decoded) != text {
		out += "\n" // another encoding of the same value, as in the original
	}
	return out
}

func digest(text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
