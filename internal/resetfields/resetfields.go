// Package resetfields has the fields that a write to a Kubernetes API server resets to the values of the live object.
// The strategies of registry/rest list these fields in GetResetFields. The manager of such a write never owns them
// (spec rule 2.9).
package resetfields

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Write is a write to objects of a kind at a version.
type Write struct {
	Kind schema.GroupVersionKind
	// Subresource is the name of the written subresource; "" for the main resource.
	Subresource string
	// IsBuiltin is false for custom resources.
	IsBuiltin bool
	Types     Types
}

// Types provides data about kinds. *openapi.Registry implements it.
type Types interface {
	Versions(schema.GroupKind) []string
	// HasStatus reports whether the status of a kind is a subresource.
	HasStatus(schema.GroupVersionKind) bool
}

// forStatus are the fields of built-in kinds, in addition to spec, that a write to the status subresource resets.
var forStatus = map[schema.GroupKind][]fieldpath.Path{
	{Kind: "Pod"}: {
		fieldpath.NewPath("metadata", "deletionTimestamp"), fieldpath.NewPath("metadata", "ownerReferences"),
	},
	{Group: "apps", Kind: "Deployment"}: {fieldpath.NewPath("metadata", "labels")},

	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:  {metadata},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                       {metadata},
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:               {metadata},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 {metadata},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: {metadata},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                           {metadata},
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                         {metadata},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                           {metadata},
	{Group: "storage.k8s.io", Kind: "CSINode"}:                                  {metadata},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                         {metadata},
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:         {metadata},
}

// forCSR are the fields, in addition to spec, that a write to a CertificateSigningRequest resets, by subresource.
var forCSR = map[string]fieldpath.Path{
	"":         status,
	"status":   fieldpath.NewPath("status", "conditions"),
	"approval": fieldpath.NewPath("status", "certificate"),
}

var (
	spec, metadata, status = fieldpath.NewPath("spec"), fieldpath.NewPath("metadata"), fieldpath.NewPath("status")

	csrKind = schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}
)

// Paths returns the paths of the fields that the write resets, each with everything below it.
func (w Write) Paths() *fieldpath.Set {
	kind, hasStatus := w.Kind.GroupKind(), w.Types.HasStatus(w.Kind)
	switch {
	case !w.IsBuiltin && w.Subresource == "status" && hasStatus:
		return fieldpath.NewSet(spec, metadata)
	case kind == csrKind && forCSR[w.Subresource] != nil:
		return fieldpath.NewSet(spec, forCSR[w.Subresource])
	case w.Subresource == "status" && hasStatus:
		return fieldpath.NewSet(append([]fieldpath.Path{spec}, forStatus[kind]...)...)
	case w.Subresource == "" && hasStatus, w.Subresource == "finalize":
		return fieldpath.NewSet(status)
	}
	return nil
}

// Filters returns the filters for fieldmanager.Options.ResetFields; nil for a write that resets nothing. For a write to
// the main resource of a custom resource, only the version of the write has a filter, as in kube-apiserver. For all
// other writes, each version has a filter, because entries of other versions are compared, too.
func (w Write) Filters() map[string]fieldpath.Filter {
	versions := w.Types.Versions(w.Kind.GroupKind())
	if !w.IsBuiltin && w.Subresource == "" {
		versions = []string{w.Kind.Version}
	}
	var out map[string]fieldpath.Filter
	for _, version := range versions {
		w.Kind.Version = version
		if paths := w.Paths(); !paths.IsEmpty() {
			if out == nil {
				out = map[string]fieldpath.Filter{}
			}
			out[w.Kind.GroupVersion().String()] = fieldpath.Excluding{Set: paths}
		}
	}
	return out
}

// Restore returns tree, which is about to be stored, with live's values of all fields that the write must not change:
// the reset fields, and, for a write to the status of a custom resource, everything except the status. If metadata is
// reset, the result has live's managed fields, too. The result shares memory with both.
func (w Write) Restore(live, tree map[string]any) map[string]any {
	if !w.IsBuiltin && w.Subresource == "status" && w.Types.HasStatus(w.Kind) {
		return Restore(tree, live, fieldpath.NewSet(status))
	}
	return Restore(live, tree, w.Paths())
}

// Restore returns tree with live's values of the fields in set; live may be nil. If set has a field and also fields
// below it, only the fields below are replaced. Elements other than fields are ignored. The result shares memory with
// both.
func Restore(live, tree map[string]any, set *fieldpath.Set) map[string]any {
	out := make(map[string]any, len(tree)+1)
	maps.Copy(out, tree)
	for e, entry := range set.Level() {
		name, isField := e.Field()
		v, ok := live[name]
		switch {
		case !isField:
		case !entry.Below.IsEmpty():
			from, _ := v.(map[string]any)
			to, _ := tree[name].(map[string]any)
			if restored := Restore(from, to, entry.Below); to != nil || len(restored) > 0 {
				out[name] = restored
			}
		case ok:
			out[name] = v
		default:
			delete(out, name)
		}
	}
	return out
}
