package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// PreviewAdopt returns what the next apply of an intent moves because of Options.Adopt, before it applies; nil for nothing.
// Nothing is written. The Changes of the result say which fields the applier gains and the updaters lose.
func (a *Applier) PreviewAdopt(ctx context.Context, intent runtime.ApplyConfiguration) (*ownership.Result, error) {
	obj, err := treeOf(intent)
	if err != nil {
		return nil, err
	}
	key := kindKey{GroupVersionKind: obj.GroupVersionKind()}
	group, _, err := a.group(ctx, key)
	if err != nil {
		return nil, err
	}
	r := resource{client: a.client, object: client.ObjectKeyFromObject(obj), kind: key.GroupVersionKind}
	cached, err := r.read(ctx, a.client, key.GroupVersionKind)
	if err != nil || cached == nil {
		return nil, err
	}
	return a.moves(ctx, key, group, cached, obj)
}

// adopt moves the fields of the updaters of Options.Adopt to the applier's entry. It writes nothing once they are moved. The
// object is the one that the cache has: if it is older than the stored one, the server responds with 409.
func (a *Applier) adopt(
	ctx context.Context, key kindKey, group Group, cached applier.Object, intent *unstructured.Unstructured,
) error {
	result, err := a.moves(ctx, key, group, cached, intent)
	if err != nil || result == nil {
		return err
	}
	patch, err := result.Patch()
	if err != nil {
		return err
	}
	moved := &unstructured.Unstructured{}
	moved.SetGroupVersionKind(key.GroupVersionKind)
	moved.SetName(cached.GetName())
	moved.SetNamespace(cached.GetNamespace())
	written := a.answers.Begin(applier.KeyOf(key.GroupKind(), moved))
	err = a.client.Patch(ctx, moved, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.options.Manager))
	written(applier.KeyOf(key.GroupKind(), moved), moved.GetResourceVersion())
	if err != nil {
		return fmt.Errorf("adopt the fields of %s: %w", strings.Join(a.options.Adopt, ", "), err)
	}
	return nil
}

// moves returns the result of the moves of what the updaters of Options.Adopt own; nil if they own nothing that moves.
func (a *Applier) moves(
	ctx context.Context, key kindKey, group Group, cached applier.Object, intent *unstructured.Unstructured,
) (*ownership.Result, error) {
	if key.subresource != "" || group.Types == nil {
		return nil, nil
	}
	list, err := managedfields.Read(cached)
	if err != nil {
		return nil, err
	}
	to := managedfields.KeyOf(a.options.Manager, metav1.ManagedFieldsOperationApply, "", "")
	var moves []ownership.Move
	for i := range list {
		e := &list[i]
		isUpdate := e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
		if !isUpdate || !slices.Contains(a.options.Adopt, e.Manager) || e.APIVersion != key.GroupVersion().String() {
			continue
		}
		if fields := adopted(e.Owned(), intent); !fields.IsEmpty() {
			moves = append(moves, ownership.Transfer{Fields: fields, From: e.Key, To: to})
		}
	}
	if len(moves) == 0 {
		return nil, nil
	}
	mover := ownership.Mover{
		Types: group.Types, Plan: strategyOf(key, group).Plan(""),
		Options: func(schema.GroupVersionKind, string) fieldmanager.Options {
			return strategyOf(key, group).FieldManager()
		},
	}
	return mover.Do(ctx, cached, moves...)
}

// adopted returns the paths of what moves, each with all below it: everything that an updater owns but the status,
// finalizers, and those owner references and annotations of Kubernetes' own tools that the intent does not have.
func adopted(owned *fieldpath.Set, intent *unstructured.Unstructured) *fieldpath.Set {
	var paths []fieldpath.Path
	add := func(parent fieldpath.Path, e fieldpath.Element) {
		paths = append(paths, append(slices.Clone(parent), e))
	}
	metadata := fieldpath.NewPath("metadata")
	for e, entry := range owned.Level() {
		switch e {
		case fieldpath.FieldElement("status"):
		case metadata[0]:
			for e, entry := range entry.Below.Level() {
				name, _ := e.Field()
				for item := range entry.Below.Level() {
					if name == "annotations" && isAdopted(item, intent) || name == "ownerReferences" && hasOwner(item, intent) {
						add(append(metadata, e), item)
					}
				}
				if !slices.Contains([]string{"annotations", "ownerReferences", "finalizers"}, name) {
					add(metadata, e)
				}
			}
		default:
			add(nil, e)
		}
	}
	return fieldpath.NewSet(paths...)
}

// isAdopted reports whether an annotation moves: one of the intent, or of a domain that is not Kubernetes' own.
func isAdopted(annotation fieldpath.Element, intent *unstructured.Unstructured) bool {
	name, _ := annotation.Field()
	domain, _, _ := strings.Cut(name, "/")
	_, isIntended := intent.GetAnnotations()[name]
	return isIntended || !strings.HasSuffix("."+domain, ".kubernetes.io") && !strings.HasSuffix("."+domain, ".k8s.io")
}

// hasOwner reports whether an intent has an owner reference.
func hasOwner(reference fieldpath.Element, intent *unstructured.Unstructured) bool {
	fields, _ := reference.Key()
	return len(fields) == 1 && slices.ContainsFunc(intent.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return string(r.UID) == fields[0].Value
	})
}
