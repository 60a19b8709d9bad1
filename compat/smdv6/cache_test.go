// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v6schema "sigs.k8s.io/structured-merge-diff/v6/schema"
	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/typed"
)

const cachedSchema = `types: [{name: a, map: {fields: [{name: s, type: {scalar: string}}]}}, {name: bad, scalar: string, list: {elementType: {namedType: none}}}]`

func cachedParser(t *testing.T) *v6typed.Parser {
	t.Helper()
	p, err := v6typed.NewParser(cachedSchema)
	require.NoError(t, err)
	return p
}

func TestCachedType(t *testing.T) {
	p := cachedParser(t)
	first, err := smdv6.CachedType(p.Type("a").Schema, p.Type("a").TypeRef)
	require.NoError(t, err)
	same := make([]*typed.Type, 8)
	var wg sync.WaitGroup
	for i := range same {
		wg.Go(func() { same[i], _ = smdv6.CachedType(p.Type("a").Schema, p.Type("a").TypeRef) })
	}
	wg.Wait()
	for _, again := range same {
		require.Same(t, first, again, "a type is compiled once for its schema")
	}
	other := cachedParser(t)
	another, err := smdv6.CachedType(&other.Schema, other.Type("a").TypeRef)
	require.NoError(t, err)
	require.NotSame(t, first, another, "schemas are told apart by their address")

	_, err = smdv6.CachedType(&p.Schema, p.Type("bad").TypeRef)
	require.Error(t, err)
	_, err = smdv6.CachedType(&p.Schema, p.Type("none").TypeRef)
	require.EqualError(t, err, `no type called "none" in the schema`)
	_, err = smdv6.CachedType(nil, v6schema.TypeRef{})
	require.EqualError(t, err, "no schema, want that of the type")
	runtime.KeepAlive(other)
}

// TestCacheKeepsNoSchema: a schema that nobody holds is collected, although its types
// were cached.
func TestCacheKeepsNoSchema(t *testing.T) {
	gone := make(chan struct{})
	func() {
		p := cachedParser(t)
		runtime.AddCleanup(p, func(done chan struct{}) { close(done) }, gone)
		_, err := smdv6.CachedType(&p.Schema, p.Type("a").TypeRef)
		require.NoError(t, err)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, time.Minute, time.Millisecond)
}
