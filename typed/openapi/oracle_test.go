package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// oracle compares our types with the types that upstream makes from the same models. It walks both graphs together, and
// does not walk a pair of types twice.
type oracle struct {
	schema *smd.Schema
	met    map[pair]bool
}

// pair is a named type of upstream, with its override, and our type.
type pair struct {
	name, relationship string
	ours               *typed.Type
}

// requireSame requires that compiling models results in the same types as upstream's.
func requireSame(t testing.TB, models map[string]*spec.Schema, preserve bool) {
	t.Helper()
	theirs, err := schemaconv.ToSchemaFromOpenAPI(models, preserve)
	require.NoError(t, err, "upstream refuses the models")
	c := compileModels(models, nil, compiler{preserve: preserve})
	require.Empty(t, c.errs)
	o := oracle{schema: theirs, met: map[pair]bool{}}
	for _, name := range c.order {
		require.NoError(t, o.compare(smd.TypeRef{NamedType: &name}, c.refer(name), name))
	}
}

func (o *oracle) compare(ref smd.TypeRef, ours *typed.Type, path string) error {
	if ref.NamedType != nil {
		p := pair{name: *ref.NamedType, ours: ours}
		if ref.ElementRelationship != nil {
			p.relationship = string(*ref.ElementRelationship)
		}
		if o.met[p] {
			return nil
		}
		o.met[p] = true
	}
	atom, ok := o.schema.Resolve(ref)
	if !ok {
		atom = smd.Atom{}
	}
	scalars := map[smd.Scalar]typed.Scalar{
		smd.Numeric: typed.Numeric, smd.String: typed.String, smd.Boolean: typed.Boolean, smd.Untyped: typed.Untyped,
	}
	var want typed.Scalar
	if atom.Scalar != nil {
		want = scalars[*atom.Scalar]
	}
	switch {
	case ours.Scalar != want:
		return fmt.Errorf("%s: scalar is %v, upstream %v", path, ours.Scalar, want)
	case (ours.List != nil) != (atom.List != nil):
		return fmt.Errorf("%s: may be a list: %v, upstream %v", path, ours.List != nil, atom.List != nil)
	case (ours.Map != nil) != (atom.Map != nil):
		return fmt.Errorf("%s: may be a map: %v, upstream %v", path, ours.Map != nil, atom.Map != nil)
	}
	if atom.List != nil {
		if err := o.compareLists(ref, atom.List, ours.List, path); err != nil {
			return err
		}
	}
	if atom.Map == nil {
		return nil
	}
	return o.compareMaps(atom.Map, ours.Map, path)
}

func (o *oracle) compareLists(ref smd.TypeRef, theirs *smd.List, ours *typed.List, path string) error {
	relationship := theirs.ElementRelationship
	if relationship == smd.Separable {
		// Nothing can be merged in such a list; our type is the type that is referred to.
		named, _ := o.schema.FindNamedType(*ref.NamedType)
		relationship = named.List.ElementRelationship
	}
	isSet, keys := false, []string(nil)
	if relationship == smd.Associative {
		isSet, keys = len(theirs.Keys) == 0, theirs.Keys
	}
	if got := slices.Collect(ours.Keys()); isSet != ours.IsSet() || !slices.Equal(keys, got) {
		return fmt.Errorf("%s: list is a set: %v, keys %q, upstream %v, %q", path, ours.IsSet(), got, isSet, keys)
	}
	return o.compare(theirs.ElementType, ours.Elem(), path+"[]")
}

func (o *oracle) compareMaps(theirs *smd.Map, ours *typed.Map, path string) error {
	if atomic := theirs.ElementRelationship == smd.Atomic; ours.IsAtomic() != atomic {
		return fmt.Errorf("%s: atomic is %v, upstream %v", path, ours.IsAtomic(), atomic)
	}
	// Upstream checks this before it reconciles a set of paths with a map.
	elem := theirs.ElementType
	untyped := elem.Inlined.Scalar != nil && *elem.Inlined.Scalar == smd.Untyped
	if elem.NamedType != nil {
		untyped = *elem.NamedType == "__untyped_deduced_"
	}
	untyped = untyped && theirs.Fields == nil
	if ours.IsUntyped() != untyped {
		return fmt.Errorf("%s: untyped is %v, upstream %v", path, ours.IsUntyped(), untyped)
	}
	fields := maps.Collect(ours.Fields())
	if len(fields) != len(theirs.Fields) {
		return fmt.Errorf("%s: has %d fields, upstream %d", path, len(fields), len(theirs.Fields))
	}
	for _, field := range theirs.Fields {
		f, ok := fields[field.Name]
		if !ok {
			return fmt.Errorf("%s: lacks field %q", path, field.Name)
		}
		if !reflect.DeepEqual(plain(field.Default), f.Default) {
			return fmt.Errorf("%s.%s: default is %#v, upstream %#v", path, field.Name, f.Default, field.Default)
		}
		if err := o.compare(field.Type, f.Type, path+"."+field.Name); err != nil {
			return err
		}
	}
	if present := elem != (smd.TypeRef{}); present != (ours.Elem() != nil) {
		return fmt.Errorf("%s: has an element type: %v, upstream %v", path, ours.Elem() != nil, present)
	}
	if ours.Elem() == nil {
		return nil
	}
	return o.compare(elem, ours.Elem(), path+"{}")
}
