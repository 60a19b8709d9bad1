// Package resetfields knows which fields the writes of a Kubernetes API server leave as they are in live: the
// strategies of registry/rest list them as GetResetFields. No manager of such a write owns them (spec rule 2.9).
package resetfields

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Write is a write to objects of a kind at a version.
type Write struct {
	Kind schema.GroupVersionKind
	// Subresource is the name of the one that is written; "" for the object itself.
	Subresource string
	// IsBuiltin is false for custom resources.
	IsBuiltin bool
	Types     Types
}

// Types are what is known of kinds. *openapi.Registry has them.
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

// Paths returns the paths of the fields that the write resets, each with all below it.
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

// Filters returns the filters for fieldmanager.Options.ResetFields; nil for a write that resets nothing. Entries of
// other versions are compared as well, so that a filter of each version is needed. But a write to a custom resource
// itself has only the one of its own version, in kube-apiserver too.
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

// Restore returns tree, which is about to be stored, with what the write must not change as it is in live: what it
// resets, and all but the status if it writes the status of a custom resource. Managed fields in metadata that is reset
// are live's. The result shares memory with both.
func (w Write) Restore(live, tree map[string]any) map[string]any {
	if !w.IsBuiltin && w.Subresource == "status" && w.Types.HasStatus(w.Kind) {
		return Restore(tree, live, fieldpath.NewSet(status))
	}
	return Restore(live, tree, w.Paths())
}

// Restore returns tree with the fields of set as they are in live, which may be nil. If set has a field and fields
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
