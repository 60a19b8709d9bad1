package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/csaupgrade"
	upstreampath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/txtar"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

var update = flag.Bool("update", false, "write what the scenarios under testdata/upgrade come to")

// scenario is a file of testdata/upgrade. Its inputs are an object (live.yaml, optional), the writes to the object
// (history.yaml), the options of its migration to server-side apply (options.yaml), and the next applied configuration
// (intent.yaml). The other sections are results: the object before, the object after csaupgrade and after Tenure, and
// each of these after the next apply.
type scenario struct {
	t       *testing.T
	archive *txtar.Archive
	seconds int
	manager *fieldmanager.FieldManager
}

type step struct {
	Apply    string         `json:"apply"`
	Intent   string         `json:"intent"`
	Update   string         `json:"update"`
	Patch    map[string]any `json:"patch"`
	CSA      string         `json:"csa"`
	Defaults map[string]any `json:"defaults"`
}

type options struct {
	Manager         string   `json:"manager"`
	From            []string `json:"from"`
	Also            string   `json:"also"`
	KeepLastApplied bool     `json:"keepLastApplied"`
}

func (s *scenario) section(name string) []byte {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func (s *scenario) want(name string, got []byte) {
	s.t.Helper()
	if *update {
		for i := range s.archive.Files {
			if s.archive.Files[i].Name == name {
				s.archive.Files[i].Data = got
				return
			}
		}
		s.archive.Files = append(s.archive.Files, txtar.File{Name: name, Data: got})
		return
	}
	require.Equal(s.t, string(s.section(name)), string(got), name)
}

func fromYAML(t *testing.T, text []byte) *unstructured.Unstructured {
	t.Helper()
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	data, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(data))
	return u
}

func toYAML(t *testing.T, obj runtime.Object) []byte {
	t.Helper()
	b, err := yaml.Marshal(obj.(*unstructured.Unstructured).Object)
	require.NoError(t, err)
	return b
}

// merged returns obj with a tree merged into it as a merge patch, so that lists are replaced.
func merged(t *testing.T, obj *unstructured.Unstructured, tree map[string]any) *unstructured.Unstructured {
	t.Helper()
	before, err := json.Marshal(obj.Object)
	require.NoError(t, err)
	patch, err := json.Marshal(tree)
	require.NoError(t, err)
	after, err := jsonpatch.MergePatch(before, patch)
	require.NoError(t, err)
	return fromYAML(t, after)
}

// do applies one step of the history as a server would.
func (s *scenario) do(live *unstructured.Unstructured, st step) *unstructured.Unstructured {
	s.t.Helper()
	s.seconds++
	var out runtime.Object
	var err error
	switch {
	case st.Apply != "":
		var intent *unstructured.Unstructured
		if st.Intent == "last-applied" {
			var err error
			intent, err = writetest.LastApplied(live)
			require.NoError(s.t, err)
		} else {
			intent = fromYAML(s.t, []byte(st.Intent))
		}
		out, err = writetest.Apply(s.manager, orNil(live), intent, st.Apply, true)
	case st.Update != "":
		out, err = writetest.Update(s.manager, live, merged(s.t, live, st.Patch), st.Update)
	default:
		applied, applyErr := writetest.ClientSideApply(live, fromYAML(s.t, []byte(st.CSA)))
		require.NoError(s.t, applyErr)
		updated := merged(s.t, applied, st.Defaults)
		out, err = writetest.Update(s.manager, orNil(live), updated, upgrade.ClientSideManager)
	}
	require.NoError(s.t, err)
	u := out.(*unstructured.Unstructured)
	u.SetResourceVersion("100")
	u.SetUID("56f45eff-ee80-4f81-bfc4-b71cd663085e")
	return fromYAML(s.t, toYAML(s.t, u))
}

// next returns the object after the next apply.
func (s *scenario) next(live runtime.Object, manager string) runtime.Object {
	s.t.Helper()
	out, err := writetest.Apply(s.manager, live, fromYAML(s.t, s.section("intent.yaml")), manager, true)
	require.NoError(s.t, err)
	return out
}

var lastApplied = upstreampath.NewSet(
	upstreampath.MakePathOrDie("metadata", "annotations", fieldmanager.LastAppliedAnnotation),
)

// TestFaultsOfUpgrade shows bugs of csaupgrade from the issue trackers of its users: the object before, after
// csaupgrade, and after Tenure.
func TestFaultsOfUpgrade(t *testing.T) {
	files, err := filepath.Glob("testdata/upgrade/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			archive := txtar.Parse(text)
			s := &scenario{t: t, archive: archive}
			s.manager, err = fieldmanager.New(fromYAML(t, s.section("intent.yaml")).GroupVersionKind(), openapi.Builtin(),
				fieldmanager.Options{Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, s.seconds, 0, time.UTC) }})
			require.NoError(t, err)
			var o options
			require.NoError(t, yaml.UnmarshalStrict(s.section("options.yaml"), &o))
			var history []step
			require.NoError(t, yaml.UnmarshalStrict(s.section("history.yaml"), &history))

			live := fromYAML(t, s.section("live.yaml"))
			for _, st := range history {
				live = s.do(live, st)
			}
			s.seconds++
			s.want("before.yaml", toYAML(t, live))
			s.want("before-next-apply.yaml", toYAML(t, s.next(live, o.Manager)))

			names := sets.New(o.From...)
			if names.Len() == 0 {
				for _, e := range csaupgrade.FindFieldsOwners(
					live.GetManagedFields(), metav1.ManagedFieldsOperationUpdate, lastApplied,
				) {
					names.Insert(e.Manager)
				}
			}
			theirs := live.DeepCopy()
			require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, names, o.Manager))
			s.want("csaupgrade.yaml", toYAML(t, theirs))
			s.want("csaupgrade-next-apply.yaml", toYAML(t, s.next(theirs, o.Manager)))

			move := upgrade.ServerSideOptions{
				Types: openapi.Builtin(), Manager: o.Manager, From: o.From, KeepLastApplied: o.KeepLastApplied,
				Intent: fromYAML(t, s.section("intent.yaml")),
			}
			if o.Also != "" {
				move.Also = upgrade.RestartedAt()
			}
			before := live.DeepCopy()
			ours, err := upgrade.ToServerSide(t.Context(), live, move)
			require.NoError(t, err)
			require.Equal(t, before, live, "inputs are never changed")
			s.want("tenure.yaml", toYAML(t, ours.Object))
			var preview bytes.Buffer
			require.NoError(t, ours.Preview.Render(&preview, "deployment.apps/web"))
			s.want("tenure-preview.txt", preview.Bytes())
			after := s.next(ours.Object, o.Manager)
			s.want("tenure-next-apply.yaml", toYAML(t, after))
			s.want("tenure-later-apply.yaml", toYAML(t, s.next(after, o.Manager)))
			requireAccepted(t, live, ours)

			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
		})
	}
}

// requireAccepted checks that a server would accept the patch of a move, and store the resulting object.
func requireAccepted(t *testing.T, live *unstructured.Unstructured, moved upgrade.Result) {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(moved.Patch)
	require.NoError(t, err)
	data, err := json.Marshal(live.Object)
	require.NoError(t, err)
	data, err = patch.Apply(data)
	require.NoError(t, err)
	patched := fromYAML(t, data)
	want := moved.Object.(*unstructured.Unstructured)
	require.Equal(t, oracle.JSON(want.Object), oracle.JSON(patched.Object), "the patch and the object are the same move")
	require.Empty(
		t,
		validation.ValidateManagedFields(patched.GetManagedFields(), field.NewPath("metadata", "managedFields")),
	)

	// The server tracks the patch as an update, which must not change the moved fields.
	m, err := fieldmanager.New(live.GroupVersionKind(), openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	stored, err := writetest.Update(m, live, patched, upgrade.ClientSideManager)
	require.NoError(t, err)
	require.Equal(t, sorted(t, want), sorted(t, stored.(*unstructured.Unstructured)))
}

// sorted returns the managed fields in the order in which servers write them.
func sorted(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	entries, err := managedfields.Decode(obj.GetManagedFields())
	require.NoError(t, err)
	b, err := yaml.Marshal(entries.Encode())
	require.NoError(t, err)
	return string(b)
}

// orNil converts a nil pointer to a nil interface.
func orNil[T interface {
	comparable
	runtime.Object
}](obj T) runtime.Object {
	var none T
	if obj == none {
		return nil
	}
	return obj
}
