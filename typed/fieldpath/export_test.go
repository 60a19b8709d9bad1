package fieldpath

import (
	"fmt"
	"hash/maphash"
)

// CheckInvariants reports which of the invariants of [Set],
// [Element] and [CompareValues] s breaks, if any.
func CheckInvariants(s *Set) error {
	if s == nil {
		return nil
	}
	if len(s.nodes) == 0 {
		return fmt.Errorf("empty branch")
	}
	for i, n := range s.nodes {
		if !n.member && n.sub == nil {
			return fmt.Errorf("empty node %s", n.elem)
		}
		if err := checkElement(n.elem); err != nil {
			return fmt.Errorf("element %s: %w", n.elem, err)
		}
		if i > 0 {
			before := s.nodes[i-1].elem
			if before.Compare(n.elem) >= 0 || n.elem.Compare(before) <= 0 || before.Equal(n.elem) {
				return fmt.Errorf("%s is before %s", before, n.elem)
			}
		}
		if err := CheckInvariants(n.sub); err != nil {
			return fmt.Errorf("below %s: %w", n.elem, err)
		}
	}
	return nil
}

// checkElement compares an element with the one that its text decodes to.
func checkElement(e Element) error {
	again, err := ParseElement(e.memberName())
	if fields, ok := e.Key(); ok && err != nil {
		// Only a lenient decoder reads a key without fields, or with one twice.
		for i := 1; i < len(fields); i++ {
			if fields[i-1].Name > fields[i].Name {
				return fmt.Errorf("key fields out of order")
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	if again.Text() != e.Text() || again.Compare(e) != 0 || e.Compare(again) != 0 {
		return fmt.Errorf("reads back as %s", again)
	}
	return nil
}

// Plant puts a set into c under the hash of data, with another text.
func (c *Cache) Plant(data []byte, text string, set *Set) {
	c.add(&cached{hash: maphash.Bytes(seed, data), text: text, set: set, size: 1})
}

// PlantCommon puts a name and an object into the tables of common names and texts, at the places of the given
// hashes.
func PlantCommon(written, asName, object, asObject string) {
	hash := maphash.String(seed, asName)
	n, _ := readName(written, hash, true)
	commonNames.put(hash, &commonName{written, true, true, n})
	l, _ := parse([]byte(object), Lenient)
	place := placeOf(&name{Field(asName[2:]), hash}, []byte(asObject))
	commonTexts.at(place).put(place, &commonText{object, 1, l})
	other, _ := parse([]byte(asObject), Lenient)
	commonSets.at(other.hash).put(other.hash, &commonSet{other.hash, l.set})
}

// ForgetCommon empties the tables of common parts. No test runs beside it.
func ForgetCommon() {
	commonNames, commonSets, commonTexts = nameTable{}, setTable{}, textTable{}
}
