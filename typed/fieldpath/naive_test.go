package fieldpath_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// naiveParse decodes a FieldsV1 the slow way: token by token, and element by element.
func naiveParse(data []byte) (*fieldpath.Set, error) {
	if len(bytes.Trim(data, " \t\r\n")) == 0 {
		return nil, nil
	}
	if !json.Valid(data) {
		return nil, errors.New("no JSON")
	}
	set, _, err := naiveObject(json.NewDecoder(bytes.NewReader(data)))
	return set, err
}

func naiveObject(tokens *json.Decoder) (set *fieldpath.Set, member bool, err error) {
	begin, err := tokens.Token()
	if err != nil || begin == nil {
		return nil, true, err
	}
	if begin != json.Delim('{') {
		return nil, false, fmt.Errorf("expected an object, got %v", begin)
	}
	var b fieldpath.Builder
	isSelf := false
	for tokens.More() {
		token, err := tokens.Token()
		if err != nil {
			return nil, false, err
		}
		name := token.(string)
		e, err := fieldpath.ParseElement(name)
		if name == "." || err == nil && e == (fieldpath.Element{}) {
			isSelf = isSelf || name == "."
			var ignored json.RawMessage
			if err := tokens.Decode(&ignored); err != nil {
				return nil, false, err
			}
			continue
		}
		if err != nil {
			return nil, false, err
		}
		sub, member, err := naiveObject(tokens)
		if err != nil {
			return nil, false, err
		}
		b.Add(e, member, sub)
	}
	_, err = tokens.Token() // }
	set = b.Set()
	return set, set == nil || isSelf, err
}
