package managedfields_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// entry parses an entry from "manager operation version[/subresource] second field…"; second is - if there is no time.
func entry(text string) managedfields.Entry {
	words := strings.Fields(text)
	version, subresource, _ := strings.Cut(words[2], "/")
	key := managedfields.KeyOf(words[0], metav1.ManagedFieldsOperationType(words[1]), version, subresource)
	e := managedfields.NewEntry(key, version, nil, nil)
	if words[3] != "-" {
		var seconds int64
		fmt.Sscan(words[3], &seconds)
		e.Time = &metav1.Time{Time: time.Unix(seconds, 0)}
	}
	for _, name := range words[4:] {
		e.Add(fieldpath.NewSet(fieldpath.NewPath(name)))
	}
	return e
}

func entries(lines ...string) managedfields.Entries {
	var out managedfields.Entries
	for _, line := range lines {
		out = append(out, entry(line))
	}
	return out
}

func text(e managedfields.Entries) (out []string) {
	for _, entry := range e {
		when := "-"
		if entry.Time != nil {
			when = fmt.Sprint(entry.Time.Unix())
		}
		version := entry.APIVersion
		if entry.Subresource != "" {
			version += "/" + entry.Subresource
		}
		line := fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, version, when)
		for p := range entry.Owned().All() {
			line += " " + p[0].Text()
		}
		out = append(out, line)
	}
	return out
}

func TestCap(t *testing.T) {
	for _, row := range []struct {
		name, why string
		limit     int
		in, want  []string
	}{
		{"few", "nothing happens below the limit", 2, []string{"a Update v1 1 x", "b Update v1 2 y"},
			[]string{"a Update v1 1 x", "b Update v1 2 y"}},
		{"applies", "appliers do not count and are never merged", 1,
			[]string{"a Apply v1 1 x", "b Apply v1 2 y", "c Update v1 3 z"},
			[]string{"a Apply v1 1 x", "b Apply v1 2 y", "c Update v1 3 z"}},
		{"one too many", "the two oldest are merged, with the time of the younger", 2,
			[]string{"a Update v1 1 x", "b Update v1 2 y", "c Update v1 3 z"},
			[]string{"ancient-changes Update v1 2 x y", "c Update v1 3 z"}},
		{"two too many", "and the next with them", 1, []string{"a Update v1 1 x", "b Update v1 2 y", "c Update v1 3 z"},
			[]string{"ancient-changes Update v1 3 x y z"}},
		{"order in the list", "age decides, not the place", 2,
			[]string{"c Update v1 3 z", "a Update v1 1 x", "b Update v1 2 y"},
			[]string{"ancient-changes Update v1 2 x y", "c Update v1 3 z"}},
		{"no time", "no time is the oldest", 2, []string{"a Update v1 1 x", "b Update v1 2 y", "c Update v1 - z"},
			[]string{"ancient-changes Update v1 1 x z", "b Update v1 2 y"}},
		{"ties", "of the same time the key decides", 2, []string{"c Update v1 1 z", "b Update v1 1 y", "a Update v1 1 x"},
			[]string{"ancient-changes Update v1 1 x y", "c Update v1 1 z"}},
		{"none has a time", "", 2, []string{"c Update v1 - z", "a Update v1 - x", "b Update v1 - y"},
			[]string{"ancient-changes Update v1 - x y", "c Update v1 - z"}},
		{"alone at its version", "the oldest of a version stays by itself until it has company", 2,
			[]string{"a Update v1 1 x", "b Update v2 2 y", "c Update v2 3 z"},
			[]string{"a Update v1 1 x", "ancient-changes Update v2 3 y z"}},
		{"no company", "nothing can be merged across versions", 1, []string{"a Update v1 1 x", "b Update v2 2 y"},
			[]string{"a Update v1 1 x", "b Update v2 2 y"}},
		{"a tie with the bucket", "who sorts before it joins it", 2,
			[]string{"a Update v1 1 x", "ancient-changes Update v1 1 y", "z Update v1 2 z"},
			[]string{"ancient-changes Update v1 1 x y", "z Update v1 2 z"}},
		{"two versions", "each version has a bucket", 2,
			[]string{"a Update v1 1 x", "b Update v2 2 y", "c Update v1 3 z", "d Update v2 4 w"},
			[]string{"ancient-changes Update v1 3 x z", "ancient-changes Update v2 4 w y"}},
		{"existing bucket", "an old bucket takes in more", 2,
			[]string{"ancient-changes Update v1 1 x", "b Update v1 2 y", "c Update v1 3 z"},
			[]string{"ancient-changes Update v1 2 x y", "c Update v1 3 z"}},
		{"younger bucket", "a bucket that is not the oldest takes in what is older", 2,
			[]string{"a Update v1 1 x", "b Update v1 2 y", "ancient-changes Update v1 3 z"},
			[]string{"a Update v1 1 x", "ancient-changes Update v1 2 y z"}},
		{"subresources", "updates through subresources count, and lose theirs in the bucket", 1,
			[]string{"a Update v1/status 1 x", "b Update v1 2 y"},
			[]string{"ancient-changes Update v1 2 x y"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := entries(row.in...)
			require.ElementsMatch(t, row.want, text(in.Cap(row.limit)), row.why)
			require.Equal(t, row.in, text(in), "the entries that it was given stay")
		})
	}
}

// TestCapLosesNothing: whatever the times, at most limit updates remain, and every field is still owned at its version.
func TestCapLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		versions := 1 + r.IntN(2)
		seen := map[string]bool{}
		var lines []string
		for i := range 1 + r.IntN(8) {
			manager := []string{"a", managedfields.Ancient, "b", "z"}[r.IntN(4)]
			key := fmt.Sprintf("%s Update v%d", manager, 1+r.IntN(versions))
			if !seen[key] {
				seen[key] = true
				lines = append(lines, fmt.Sprintf("%s %d f%d", key, r.IntN(3), i))
			}
		}
		in, limit := entries(lines...), versions+r.IntN(3)
		out := in.Cap(limit)
		require.LessOrEqual(t, len(out), limit, lines)
		for _, version := range []string{"v1", "v2"} {
			require.Equal(t, in.OwnedAt(version).String(), out.OwnedAt(version).String(), lines)
		}
	}
}

func TestEntries(t *testing.T) {
	e := entries("a Apply v1 1 x", "b Update v1 2 y")
	require.Equal(t, text(e), text(e.Without(managedfields.Key{})), "of no such key")
	got := e.Get(managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "v7", ""))
	require.NotNil(t, got, "an applier's key has no version")
	require.Equal(t, "v1", got.APIVersion)
	none := e.Get(managedfields.KeyOf("b", metav1.ManagedFieldsOperationUpdate, "v7", ""))
	require.Nil(t, none)
	require.Nil(t, none.Owned())
	require.Equal(t, []string{"b Update v1 2 y"}, text(e.Without(e[0].Key)))

	require.Equal(t, "x", strings.TrimPrefix(entries("a Apply v1 1 x", "b Update v2 2 y").OwnedAt("v1").String(), "."))
	require.True(t, e.OwnedAt("v3").IsEmpty())
	sorted := entries("a Apply v1 1 x", "b Apply v1 2 y")
	sorted.Sort()
	require.Equal(t, []string{"a Apply v1 1 x", "b Apply v1 2 y"}, text(sorted))
}

func TestUnowned(t *testing.T) {
	owned := fieldpath.NewSet(
		fieldpath.NewPath("apiVersion"), fieldpath.NewPath("kind"), fieldpath.NewPath("metadata"),
		fieldpath.NewPath("metadata", "name"), fieldpath.NewPath("metadata", "uid"),
		fieldpath.NewPath("metadata", "managedFields"),
		fieldpath.NewPath("metadata", "labels", "a"), fieldpath.NewPath("metadata", "generateName"),
		fieldpath.NewPath("spec", "name"),
	)
	owned = owned.Difference(managedfields.Unowned())
	require.Equal(t, ".metadata.generateName\n.metadata.labels.a\n.spec.name", owned.String())
	require.True(t, managedfields.Unowned().Has(fieldpath.NewPath("metadata", "resourceVersion")))
}

func TestValidateManager(t *testing.T) {
	for _, row := range []struct{ name, why, manager, want string }{
		{"empty", "an update may name none", "", ""},
		{"plain", "", "kube-controller-manager", ""},
		{"spaces", "a space prints", "a b", ""},
		{"not ASCII", "", "größe 世界", ""},
		{"longest", "", strings.Repeat("x", 128), ""},
		{"too long", "the limit is in bytes", strings.Repeat("é", 65),
			"manager name: may not be longer than 128 bytes, got 130"},
		{"newline", "", "a\nb", `manager name: should only contain printable characters, got '\n' at byte 1`},
		{"zero width", "what does not show does not print", "a\u200bb",
			`manager name: should only contain printable characters, got '\u200b' at byte 1`},
		{"no-break space", "", "a\u00a0b", `manager name: should only contain printable characters, got '\u00a0' at byte 1`},
		{"not UTF-8", "a broken byte reads as a replacement character, which prints", "a\xff", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := managedfields.ValidateManager(row.manager)
			theirs := validation.ValidateFieldManager(row.manager, field.NewPath("x"))
			require.Equal(t, len(theirs) > 0, err != nil, "upstream: %v", theirs)
			if row.want == "" {
				require.NoError(t, err, row.why)
				return
			}
			require.EqualError(t, err, row.want, row.why)
		})
	}
}

func TestManagerFromUserAgent(t *testing.T) {
	for _, row := range []struct{ name, why, agent, want string }{
		{"kubectl", "", "kubectl/v1.36 (linux/amd64)", "kubectl"},
		{"no version", "", "curl", "curl"},
		{"empty", "", "", ""},
		{"only a version", "", "/v1", ""},
		{"long", "cut to the limit", strings.Repeat("x", 200) + "/1", strings.Repeat("x", 128)},
		{"cut at a character", "never inside one", strings.Repeat("x", 127) + "é/1", strings.Repeat("x", 127)},
		{"control characters", "left out", "a\tb\x00c/1", "abc"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := managedfields.ManagerFromUserAgent(row.agent)
			require.Equal(t, row.want, got, row.why)
			require.NoError(t, managedfields.ValidateManager(got))
		})
	}
}
