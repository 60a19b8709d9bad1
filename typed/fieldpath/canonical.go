package fieldpath

import "strings"

// IsCanonical reports whether tree, a FieldsV1 of an unstructured object, is one that [Set.Tree] returns. It
// allocates nothing and costs O(members). It may be false for names that only decoding can judge: those with
// escapes and numbers with fractions.
func IsCanonical(tree map[string]any) bool {
	left := MaxMembers
	return isCanonical(tree, 0, &left)
}

func isCanonical(tree map[string]any, depth int, left *int) bool {
	if *left -= len(tree); *left < 0 || depth > MaxDepth {
		return false
	}
	for name, v := range tree {
		member, ok := v.(map[string]any)
		if !ok || !IsCanonicalName(name) || name == "." && (len(member) > 0 || len(tree) == 1 || depth == 0) {
			return false
		}
		if len(member) > 0 && !isCanonical(member, depth+1, left) {
			return false
		}
	}
	return true
}

// IsCanonicalName is [IsCanonical] for one member name.
func IsCanonicalName(name string) bool {
	if len(name) < 2 || name[1] != ':' || len(name) > MaxElement {
		return name == "."
	}
	switch name[0] {
	case 'f':
		return true
	case 'v':
		return len(name) > 2 && plainScalar(name[2:]) == len(name)-2
	case 'k':
		return plainKey(name[2:])
	case 'i':
		return len(name) > 2 && '0' <= name[2] && name[2] <= '9' && plainScalar(name[2:]) == len(name)-2
	}
	return false
}

// plainKey reports whether text is a key whose names are plain and sorted, and whose values are plain scalars.
func plainKey(text string) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	before := ""
	for first := true; ; first = false {
		text = text[1:] // { or ,
		n := plainString(text)
		if n == 0 || len(text) == n || text[n] != ':' {
			return false
		}
		name := text[1 : n-1]
		if !first && name <= before {
			return false
		}
		before = name
		text = text[n+1:]
		if n = plainScalar(text); n == 0 {
			return false
		}
		text = text[n:]
		switch text {
		case "":
			return false
		case "}":
			return true
		}
		if text[0] != ',' {
			return false
		}
	}
}

// plainScalar returns the length of the canonical scalar that text begins with, or 0.
func plainScalar(text string) int {
	if text == "" {
		return 0
	}
	switch c := text[0]; {
	case c == '"':
		return plainString(text)
	case c == 't' && strings.HasPrefix(text, "true"):
		return len("true")
	case c == 'f' && strings.HasPrefix(text, "false"):
		return len("false")
	case c == '0':
		return 1
	case '1' <= c && c <= '9':
		// Up to 18 digits are an int64.
		n := 1
		for n < len(text) && '0' <= text[n] && text[n] <= '9' {
			n++
		}
		if n > 18 || n < len(text) && strings.IndexByte(".eE", text[n]) >= 0 {
			return 0
		}
		return n
	}
	return 0
}

// plainString returns the length of the JSON string that text begins with if it needs no escapes, or 0.
func plainString(text string) int {
	if text == "" || text[0] != '"' {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&':
			return 0
		}
	}
	return 0
}
