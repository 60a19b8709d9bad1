// Package graph encodes types, so that a program can read them without their OpenAPI documents.
//
// To decode and compile a document takes milliseconds, which is half of the first apply of a server. To read a type
// and all that it refers to takes a tenth of that: there is a record for each type, and only records that the kind
// refers to are read.
//
//	file    = strings records kinds
//	strings = count { length } { text }
//	records = count { length } { record }
//	kinds   = count { group version kind reference }
//	record  = shape format [list] [map]
//	shape   = scalar | hasList | hasMap                                 one byte
//	list    = kind elem count { key }
//	map     = (atomic | untyped | hasElem) [elem] count { field }
//	field   = name reference (nullable | hasDefault) [default]
//
// All but shape is uvarints. A group, version, kind, key, name or default is the number of a string; a default is JSON.
// A reference is the number of a type that the program knows, or the number of a record after those.
//
// Types that can't be told apart have one record, also types of different group versions: apps/v1 and batch/v1 share
// their Pods. Records are in the order in which kinds, sorted, reach them. So the same types give the same bytes.
package graph

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// Bits of a record's shape, beside the scalar.
const (
	hasList = 1 << 3
	hasMap  = 1 << 4

	scalarBits = hasList - 1
)

// Bits of a map.
const (
	isAtomic = 1 << iota
	isUntyped
	hasElem
)

// Bits of a field.
const (
	isNullable = 1 << iota
	hasDefault
)

// Encode returns the types of kinds. References to a type in known are references by its number.
func Encode(kinds map[schema.GroupVersionKind]*typed.Type, known []*typed.Type) ([]byte, error) {
	e := &encoder{known: len(known), class: map[*typed.Type]int{}, numbers: map[string]int{}}
	for i, t := range known {
		e.class[t] = i
	}
	sorted := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
	for _, gvk := range sorted {
		e.collect(kinds[gvk])
	}
	records, err := e.records()
	if err != nil {
		return nil, err
	}
	body := binary.AppendUvarint(nil, uint64(len(sorted)))
	for _, gvk := range sorted {
		for _, n := range []int{
			e.number(gvk.Group), e.number(gvk.Version), e.number(gvk.Kind), e.class[kinds[gvk]],
		} {
			body = binary.AppendUvarint(body, uint64(n))
		}
	}
	out := appendTexts(nil, e.strings)
	return append(appendTexts(out, records), body...), nil
}

// appendTexts appends a count, all lengths and all texts.
func appendTexts(out []byte, texts []string) []byte {
	out = binary.AppendUvarint(out, uint64(len(texts)))
	for _, text := range texts {
		out = binary.AppendUvarint(out, uint64(len(text)))
	}
	for _, text := range texts {
		out = append(out, text...)
	}
	return out
}

// encoder encodes types.
type encoder struct {
	known int
	types []*typed.Type // all but the known ones, in the order in which they are reached
	// class is the reference to a type. Until classes are final, types of one class may still turn out to differ.
	class   map[*typed.Type]int
	strings []string
	numbers map[string]int // of strings
}

// number returns the number of a string.
func (e *encoder) number(text string) int {
	n, ok := e.numbers[text]
	if !ok {
		n = len(e.strings)
		e.numbers[text], e.strings = n, append(e.strings, text)
	}
	return n
}

// collect adds a type, and all that it refers to, in one class.
func (e *encoder) collect(t *typed.Type) {
	if _, ok := e.class[t]; ok {
		return
	}
	e.class[t] = e.known
	e.types = append(e.types, t)
	if t.List != nil {
		e.collect(t.List.Elem)
	}
	if t.Map == nil {
		return
	}
	if t.Map.Elem != nil {
		e.collect(t.Map.Elem)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Map.Fields)) {
		e.collect(t.Map.Fields[name].Type)
	}
}

// records returns the records of all types, and makes their classes final. All types are in one class at first. Types
// of one class with different records are put into different classes, until there are none. That is at most one round
// for each type, and in practice as many as types are nested.
func (e *encoder) records() ([]string, error) {
	for classes := 1; ; {
		var records []string
		found, next := map[string]int{}, make([]int, len(e.types))
		for i, t := range e.types {
			record, err := e.record(t)
			if err != nil {
				return nil, err
			}
			n, ok := found[record]
			if !ok {
				n = e.known + len(records)
				found[record], records = n, append(records, record)
			}
			next[i] = n
		}
		isFinal := len(records) == classes
		for i, t := range e.types {
			isFinal = isFinal && e.class[t] == next[i]
			e.class[t] = next[i]
		}
		if isFinal {
			return records, nil
		}
		classes = len(records)
	}
}

// record returns the record of a type, with its references as classes are now.
func (e *encoder) record(t *typed.Type) (string, error) {
	shape := byte(t.Scalar)
	if t.List != nil {
		shape |= hasList
	}
	if t.Map != nil {
		shape |= hasMap
	}
	out := binary.AppendUvarint([]byte{shape}, uint64(t.Format))
	add := func(n int) { out = binary.AppendUvarint(out, uint64(n)) }
	if l := t.List; l != nil {
		add(int(l.Kind))
		add(e.class[l.Elem])
		add(len(l.Keys))
		for _, key := range l.Keys {
			add(e.number(key))
		}
	}
	m := t.Map
	if m == nil {
		return string(out), nil
	}
	add(bits(m.Atomic, m.Untyped, m.Elem != nil))
	if m.Elem != nil {
		add(e.class[m.Elem])
	}
	add(len(m.Fields))
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		f := m.Fields[name]
		add(e.number(name))
		add(e.class[f.Type])
		add(bits(f.Nullable, f.Default != nil))
		if f.Default == nil {
			continue
		}
		text, err := json.Marshal(f.Default)
		if err != nil {
			return "", fmt.Errorf("default of %s: %w", name, err)
		}
		add(e.number(string(text)))
	}
	return string(out), nil
}

// bits returns a number with a bit for each flag.
func bits(flags ...bool) (out int) {
	for i, flag := range flags {
		if flag {
			out |= 1 << i
		}
	}
	return out
}
