package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestOracleWarnings compares the warnings of creates and of updates through each subresource.
func TestOracleWarnings(t *testing.T) {
	for _, s := range subjects(t) {
		theirs := upstream()[s.GroupKind()]
		t.Run(s.name(), func(t *testing.T) {
			fuzz(t, 8, 1, func(t *testing.T, seed int64) (compared bool) {
				obj, live := s.pair(t, seed)
				var want, got recorder
				ok := attempt(func() {
					obj, ctx := s.internal(t, obj), want.record(s.request(obj, nil, ""))
					s.prepareForCreate(t, ctx, obj)
					want = append(want, theirs.WarningsOnCreate(ctx, obj)...)
				})
				if compared = ok; ok {
					obj := obj.DeepCopyObject().(resources.Object)
					ctx := got.record(s.request(obj, nil, ""))
					s.strategy.PrepareForCreate(ctx, obj)
					_, list := s.strategy.Validate(ctx, obj, nil, "")
					got = append(got, list...)
					require.Empty(t, difference(want.sorted(s), got.sorted(s)), "seed %d: create", seed)
				}
				for _, sub := range s.updates() {
					ctx, list := s.request(obj, live, sub), recorder{}
					ok := attempt(func() {
						obj, live := s.internal(t, obj), s.internal(t, live)
						s.prepareForUpdate(t, ctx, obj, live, sub)
						list = theirs.update[sub].WarningsOnUpdate(ctx, obj, live)
					})
					if compared = compared || ok; ok {
						obj := obj.DeepCopyObject().(resources.Object)
						s.strategy.PrepareForUpdate(obj, live, sub)
						_, got := s.strategy.Validate(ctx, obj, live, sub)
						require.Empty(t, difference(list.sorted(s), recorder(got).sorted(s)), "seed %d: /%s", seed, sub)
					}
				}
				return compared
			})
		})
	}
}

// recorder records warnings.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

func (r *recorder) record(ctx context.Context) context.Context {
	return warning.WithWarningRecorder(ctx, r)
}

// sorted is text, with the warnings about CustomResourceDefinitions sorted: upstream finds them in the order of a map.
func (r recorder) sorted(s subject) string {
	if s.Kind == "CustomResourceDefinition" {
		slices.Sort(r)
	}
	return r.text()
}

func (r recorder) text() string { return strings.Join(r, "\n") }
