package plans_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// response is a 409 from a server, which names fields and managers.
type response struct{ details *metav1.StatusDetails }

func (response) Error() string           { return "conflict" }
func (r response) Status() metav1.Status { return metav1.Status{Details: r.details} }

func TestFoundBy(t *testing.T) {
	live := manifest(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, managedFields: [
		{manager: ops, operation: Update, apiVersion: autoscaling/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:maxReplicas: {}}}},
		{manager: ops, operation: Apply, apiVersion: autoscaling/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:minReplicas: {}}}}]}}`)
	answer := func(causes ...metav1.StatusCause) error {
		for i := range causes {
			causes[i].Type = metav1.CauseTypeFieldManagerConflict
		}
		return response{&metav1.StatusDetails{Causes: append(causes, metav1.StatusCause{Type: "Other"})}}
	}
	updated := metav1.StatusCause{Field: ".spec.maxReplicas", Message: `conflict with "ops" using autoscaling/v1 at 2026-01-01`}
	applied := metav1.StatusCause{Field: ".spec.minReplicas", Message: `conflict with "ops"`}
	found, err := plans.FoundBy(answer(updated, applied), live, nil)
	require.NoError(t, err)
	require.Len(t, found, 2)
	for _, c := range found {
		require.Equal(t, "autoscaling/v1", c.APIVersion)
		require.Equal(t, "ops", c.Owner.Manager)
	}
	for why, cause := range map[string]metav1.StatusCause{
		"another manager": {Field: applied.Field, Message: `conflict with "op"`},
		"a prefix of it":  {Field: applied.Field, Message: `conflict with "ops" using apps/v1`},
		"another field":   {Field: ".spec.other", Message: applied.Message},
		"an unborn owner": {Field: ".spec.maxReplicas", Message: `conflict with "before-first-apply" using autoscaling/v2`},
	} {
		_, err := plans.FoundBy(answer(cause), live, nil)
		require.ErrorContains(t, err, "the object has changed", why)
	}
	unborn := conflicts.Conflict{
		Path:       fieldpath.NewPath("spec", "maxReplicas"),
		Owner:      managedfields.KeyOf(fieldmanager.BeforeFirstApply, metav1.ManagedFieldsOperationUpdate, "autoscaling/v2", ""),
		APIVersion: "autoscaling/v2", Live: "x",
	}
	found, err = plans.FoundBy(answer(metav1.StatusCause{
		Field: ".spec.maxReplicas", Message: `conflict with "before-first-apply" using autoscaling/v2`,
	}), live, conflicts.Conflicts{unborn})
	require.NoError(t, err)
	require.Equal(t, conflicts.Conflicts{unborn}, found)
	for _, other := range []error{errors.New("down"), response{}, answer()} {
		found, err := plans.FoundBy(other, live, nil)
		require.NoError(t, err)
		require.Empty(t, found)
	}
}

// TestFoundByOverwrittenPaths: servers before Kubernetes 1.29 name the correct owners with wrong paths.
func TestFoundByOverwrittenPaths(t *testing.T) {
	live := manifest(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, managedFields: [
		{manager: ops, operation: Apply, apiVersion: autoscaling/v2, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:minReplicas: {}, f:maxReplicas: {}}}}]}}`)
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: message}
	}
	conflict := func(name string) conflicts.Conflict {
		return conflicts.Conflict{
			Path: fieldpath.NewPath("spec", name), APIVersion: "autoscaling/v2",
			Owner: managedfields.KeyOf("ops", metav1.ManagedFieldsOperationApply, "", ""),
		}
	}
	known := conflicts.Conflicts{conflict("maxReplicas"), conflict("minReplicas")}
	const ops, other = `conflict with "ops"`, `conflict with "other"`
	for _, row := range []struct {
		why     string
		causes  []metav1.StatusCause
		known   conflicts.Conflicts
		isKnown bool
	}{
		{"a repeated path", []metav1.StatusCause{cause(".spec.minReplicas", ops), cause(".spec.minReplicas", ops)}, known, true},
		{"a path of nobody", []metav1.StatusCause{cause(".spec.metrics", ops), cause(".spec.minReplicas", ops)}, known, true},
		{"without a plan", []metav1.StatusCause{cause(".spec.minReplicas", ops), cause(".spec.minReplicas", ops)}, nil, false},
		{"fewer conflicts", []metav1.StatusCause{cause(".spec.metrics", ops)}, known, false},
		{"more conflicts", []metav1.StatusCause{cause(".spec.minReplicas", ops), cause(".spec.metrics", ops)}, known[:1], false},
		{"another owner", []metav1.StatusCause{cause(".spec.minReplicas", ops), cause(".spec.minReplicas", other)}, known, false},
	} {
		found, err := plans.FoundBy(response{&metav1.StatusDetails{Causes: row.causes}}, live, row.known)
		if !row.isKnown {
			require.ErrorContains(t, err, "the object has changed", row.why)
			continue
		}
		require.NoError(t, err, row.why)
		require.Equal(t, known, found, row.why)
	}
}
