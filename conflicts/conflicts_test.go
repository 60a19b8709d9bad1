package conflicts_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func applier(name string) managedfields.Key {
	return managedfields.KeyOf(name, metav1.ManagedFieldsOperationApply, "", "")
}

func updater(name, subresource string) managedfields.Key {
	return managedfields.KeyOf(name, metav1.ManagedFieldsOperationUpdate, "apps/v1", subresource)
}

func on(owner managedfields.Key, path ...string) conflicts.Conflict {
	return conflicts.Conflict{Path: fieldpath.NewPath(path...), Owner: owner}
}

// The expected texts are those of upstream's getConflictMessage.
func TestMessage(t *testing.T) {
	item := conflicts.Conflict{Owner: applier("a"), Path: fieldpath.Path{
		fieldpath.FieldElement("spec"), fieldpath.FieldElement("ports"),
		fieldpath.KeyElement(fieldpath.KeyField{Name: "port", Value: 80}, fieldpath.KeyField{Name: "protocol", Value: "TCP"}),
		fieldpath.FieldElement("name"),
	}}
	for _, row := range []struct {
		name, why string
		in        conflicts.Conflicts
		want      string
		causes    []string
	}{
		{"one", "one conflict is one line", conflicts.Conflicts{on(applier("a"), "spec", "x")},
			`Apply failed with 1 conflict: conflict with "a": .spec.x`, []string{`conflict with "a"|.spec.x`}},
		{"update", "an updater is named with its version", conflicts.Conflicts{on(updater("a", ""), "spec", "x")},
			`Apply failed with 1 conflict: conflict with "a" using apps/v1: .spec.x`,
			[]string{`conflict with "a" using apps/v1|.spec.x`}},
		{"subresource", "and its subresource", conflicts.Conflicts{on(updater("a", "status"), "status", "x")},
			`Apply failed with 1 conflict: conflict with "a" with subresource "status" using apps/v1: .status.x`,
			[]string{`conflict with "a" with subresource "status" using apps/v1|.status.x`}},
		{"applied subresource", "an applier without a version",
			conflicts.Conflicts{on(managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "v1", "scale"), "spec", "x")},
			`Apply failed with 1 conflict: conflict with "a" with subresource "scale": .spec.x`,
			[]string{`conflict with "a" with subresource "scale"|.spec.x`}},
		{"quotes", "names are quoted", conflicts.Conflicts{on(applier(`a "b"`), "x")},
			`Apply failed with 1 conflict: conflict with "a \"b\"": .x`, []string{`conflict with "a \"b\""|.x`}},
		{"item", "an item is named by its key", conflicts.Conflicts{item},
			`Apply failed with 1 conflict: conflict with "a": .spec.ports[port=80,protocol="TCP"].name`,
			[]string{`conflict with "a"|.spec.ports[port=80,protocol="TCP"].name`}},
		{"two of one", "the conflicts of one manager are together",
			conflicts.Conflicts{on(applier("a"), "x"), on(applier("a"), "y")},
			"Apply failed with 2 conflicts: conflicts with \"a\":\n- .x\n- .y",
			[]string{`conflict with "a"|.x`, `conflict with "a"|.y`}},
		{"many", "", conflicts.Conflicts{on(applier("a"), "x"), on(updater("b", ""), "y"), on(updater("b", ""), "z")},
			"Apply failed with 3 conflicts: conflicts with \"a\":\n- .x\nconflicts with \"b\" using apps/v1:\n- .y\n- .z",
			[]string{`conflict with "a"|.x`, `conflict with "b" using apps/v1|.y`, `conflict with "b" using apps/v1|.z`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.EqualError(t, row.in, row.want, row.why)
			status := row.in.Status()
			var causes []string
			var given []metav1.StatusCause
			for _, c := range status.Details.Causes {
				require.Equal(t, metav1.CauseTypeFieldManagerConflict, c.Type)
				causes = append(causes, c.Message+"|"+c.Field)
				given = append(given, c)
			}
			require.Equal(t, row.causes, causes)
			require.Equal(t, apierrors.NewApplyConflict(given, row.want).ErrStatus, status, "the answer of a real server")

			err := fmt.Errorf("applying: %w", row.in)
			require.True(t, apierrors.IsConflict(err))
			require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict))
		})
	}
}

func TestSort(t *testing.T) {
	c := conflicts.Conflicts{
		on(updater("b", ""), "z"), on(applier("b"), "y"), on(updater("a", "status"), "x"), on(updater("a", ""), "w"),
		on(updater("b", ""), "a"),
	}
	c.Sort()
	var got []string
	for _, conflict := range c {
		got = append(got,
			fmt.Sprintf("%s %s %s%s", conflict.Owner.Manager, conflict.Owner.Operation, conflict.Owner.Subresource,
				conflict.Path))
	}
	require.Equal(t, []string{"a Update status.x", "a Update .w", "b Apply .y", "b Update .z", "b Update .a"}, got,
		"by owner; the paths of an owner stay in their order")
}

// TestJSON shows the whole JSON, so that the test fails for each change of it.
func TestJSON(t *testing.T) {
	since := &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	hpa := updater("hpa", "scale")
	known := conflicts.Conflict{Path: fieldpath.NewPath("spec", "replicas"), Owner: hpa, APIVersion: "apps/v1",
		Since: since, Live: int64(3), Applied: int64(1)}
	const hpaJSON = `{"manager":"hpa","operation":"Update","apiVersion":"apps/v1","subresource":"scale"}`
	for _, row := range []struct {
		name, why string
		in        conflicts.Conflict
		want      string
	}{
		{"all is known", "a time is as on the wire", known,
			`{"field":".spec.replicas","owner":` + hpaJSON + `,"since":"2026-01-02T03:04:05Z","live":3,"applied":1}`},
		{"little is known", "what is not known is left out, and values that are not there are null", on(applier("a"), "x"),
			`{"field":".x","owner":{"manager":"a","operation":"Apply"},"live":null,"applied":null}`},
		{"the version of an applier", "the key has none, so it comes from the conflict",
			conflicts.Conflict{Path: fieldpath.NewPath("x"), Owner: applier("a"), APIVersion: "v1"},
			`{"field":".x","owner":{"manager":"a","operation":"Apply","apiVersion":"v1"},"live":null,"applied":null}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			data, err := json.Marshal(row.in)
			require.NoError(t, err)
			require.JSONEq(t, row.want, string(data), row.why)
		})
	}
}

// TestTextLimit shows that a message counts the conflicts beyond the limit
// (spec rule 12.7).
func TestTextLimit(t *testing.T) {
	var c conflicts.Conflicts
	name := strings.Repeat("a", 10_000)
	for i := range 2000 {
		c = append(c, conflicts.Conflict{
			Path:  fieldpath.NewPath(name, fmt.Sprint(i)),
			Owner: managedfields.Key{Manager: name, Operation: metav1.ManagedFieldsOperationApply},
		})
	}
	text := c.Error()
	require.Less(t, len(text), conflicts.MaxText+50_000)
	require.Regexp(t, `\nand \d+ more$`, text)
	causes := c.Status().Details.Causes
	require.Greater(t, len(causes), 200)
	require.Less(t, len(causes), 220, "20 KB each")
}
