package fieldsets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestRewrite(t *testing.T) {
	set := fieldpath.NewSet(fieldpath.NewPath("a"), fieldpath.NewPath("b", "c"), fieldpath.NewPath("d"))
	keep := func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry { return e }
	require.Same(t, set, fieldsets.Rewrite(set, keep))
	require.Nil(t, fieldsets.Rewrite(nil, keep))
	require.Nil(t, fieldsets.Rewrite(set, func(fieldpath.Element, fieldpath.Entry) fieldpath.Entry {
		return fieldpath.Entry{Below: new(fieldpath.Set)}
	}))
	swapped := fieldsets.Rewrite(set, func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		if e.Equal(fieldpath.FieldElement("b")) {
			return fieldpath.Entry{Member: true}
		}
		return entry
	})
	require.Equal(t, `{"f:a":{},"f:b":{},"f:d":{}}`, string(swapped.AppendJSON(nil)))
}
