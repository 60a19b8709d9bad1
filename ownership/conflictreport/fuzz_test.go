package conflictreport_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FuzzRender renders conflicts of any content: nothing panics, there is a line for
// each, and all of it is printable.
func FuzzRender(f *testing.F) {
	f.Add("alice", "status", "v1", `{"a":["<",1,null]}`, `"x"`, "f:a", `k:{"a":"\n"}`)
	f.Add("a\tb\n", "", "", strings.Repeat("[", 100), `{`, "v:1e300", "i:-1")
	f.Add("\xff", "é", "日本", `"日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本"`, `-0`, "f:", "f:\xff")
	f.Add("a\x1b[2J", "\u202e", "v1\u009b31m", `"\u202e\u009b"`, `{"\u2066":"\u200b"}`, "f:a\x1b]0;t\a", "f:\u202e")
	f.Fuzz(func(t *testing.T, manager, subresource, version, live, applied, first, second string) {
		owner := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationUpdate, version, subresource)
		c := conflicts.Conflict{Owner: owner}
		if json.Unmarshal([]byte(live), &c.Live) != nil {
			c.Live = live
		}
		if json.Unmarshal([]byte(applied), &c.Applied) != nil {
			c.Applied = applied
		}
		for _, name := range []string{first, second} {
			set, _ := fieldpath.FromTree(map[string]any{name: nil})
			for e := range set.Level() {
				c.Path = append(c.Path, e)
			}
		}
		other := c
		other.Owner.Operation = metav1.ManagedFieldsOperationApply
		all := conflicts.Conflicts{c, other}
		all.Sort()
		var b strings.Builder
		require.NoError(t, render(&b, version, manager, all...))
		require.Equal(t, printable.Lines(b.String()), b.String())
		require.GreaterOrEqual(t, strings.Count(b.String(), "\n"), 2+len(all)+4)
	})
}
