package resetfields

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestRestore requires that a write to the status of a custom resource changes nothing else, and that a write to the
// status of a built-in kind can also change metadata that it does not reset.
func TestRestore(t *testing.T) {
	object := func(label, spec, status, other string) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"l": label}},
			"spec":     map[string]any{"s": spec}, "status": map[string]any{"s": status}, "other": other,
		}
	}
	live, given := object("1", "1", "1", "1"), object("2", "2", "2", "2")
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	replicaSet := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	all, none := known{"v1": true}, known{"v1": false}
	for _, row := range []struct {
		why   string
		write Write
		want  map[string]any
	}{
		{"a custom resource's status is all that changes",
			Write{Kind: custom("v1"), Subresource: "status", Types: all}, object("1", "1", "2", "1")},
		{"metadata of a ReplicaSet is written with its status",
			Write{replicaSet, "status", true, all}, object("2", "1", "2", "2")},
		{"labels of a Deployment are not", Write{deployment, "status", true, all}, object("1", "1", "2", "2")},
		{"the object itself keeps its status", Write{deployment, "", true, all}, object("2", "2", "1", "2")},
		{"if that is a subresource", Write{Kind: custom("v1"), Types: none}, given},
	} {
		require.Equal(t, row.want, row.write.Restore(live, given), row.why)
	}
	created := Write{deployment, "", true, all}.Restore(nil, given)
	require.NotContains(t, created, "status", "a create has no status")
}

// custom returns a kind of custom resource.
func custom(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Thing"}
}

// known has the versions of each kind, and whether a version has a status subresource.
type known map[string]bool

func (k known) Versions(schema.GroupKind) []string { return slices.Sorted(maps.Keys(k)) }

func (k known) HasStatus(kind schema.GroupVersionKind) bool { return k[kind.Version] }

// TestFilters shows which fields a write resets at which versions of a kind.
func TestFilters(t *testing.T) {
	versions := known{"v1": true, "v2": true, "v3": false}
	excluding := func(paths ...fieldpath.Path) fieldpath.Filter {
		return fieldpath.Excluding{Set: fieldpath.NewSet(paths...)}
	}
	autoscaler := schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	for _, row := range []struct {
		why   string
		write Write
		want  map[string]fieldpath.Filter
	}{
		{"a custom resource itself has the filter of its version alone", Write{custom("v1"), "", false, versions},
			map[string]fieldpath.Filter{"example.com/v1": excluding(status)}},
		{"its status those of all versions that have the subresource", Write{custom("v1"), "status", false, versions},
			map[string]fieldpath.Filter{
				"example.com/v1": excluding(spec, metadata), "example.com/v2": excluding(spec, metadata),
			}},
		{"a version without the subresource has a field of this name", Write{custom("v3"), "", false, versions}, nil},
		{"a Scale has fields of its own", Write{custom("v1"), "scale", false, versions}, nil},
		{"a built-in kind has one for each version", Write{autoscaler, "", true, known{"v1": true, "v2": true}},
			map[string]fieldpath.Filter{"autoscaling/v1": excluding(status), "autoscaling/v2": excluding(status)}},
	} {
		require.Equal(t, row.want, row.write.Filters(), row.why)
	}
}
