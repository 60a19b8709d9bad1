package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// PreviewUpgrade returns the move that precedes the next apply of an intent because of Options.UpgradeFrom; nil if
// nothing moves. PreviewUpgrade writes nothing. The Changes of the result have the fields that the applier gains and
// that the managers in UpgradeFrom lose.
func (c *Client) PreviewUpgrade(
	ctx context.Context, intent runtime.ApplyConfiguration, manager client.FieldOwner,
) (*ownership.Result, error) {
	data, err := json.Marshal(intent)
	if err != nil {
		return nil, fmt.Errorf("intent: %w", err)
	}
	obj, err := treeFrom(data)
	switch {
	case err != nil:
		return nil, err
	case manager == "":
		return nil, errors.New("expected the name of a field manager")
	}
	r := request{kind: obj.GroupVersionKind(), key: client.ObjectKeyFromObject(obj), intent: obj, manager: string(manager)}
	types, why := c.typesOf(ctx, r.kind, "")
	if types == nil {
		return nil, fmt.Errorf("types of %s: %s", r.kind, why)
	}
	live, err := c.readLive(ctx, c.Client, r)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return c.moves(ctx, decision{request: r, types: types, cached: live})
}

// upgrade moves the fields of the updaters in Options.UpgradeFrom to the applier's entry, before a request is sent. If
// they have been moved already, it writes nothing. If the cached object is older than the stored object, the server
// responds with 409.
func (c *core) upgrade(ctx context.Context, with client.Client, d decision) error {
	if len(c.options.UpgradeFrom) == 0 || d.types == nil || d.cached == nil || len(d.dryRun) > 0 || d.subresource != "" {
		return nil
	}
	if d.isStripped() {
		live, err := c.readLive(ctx, with, d.request)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		d.cached = live
	}
	result, err := c.moves(ctx, d)
	if err != nil || result == nil {
		return err
	}
	patch, err := result.Patch()
	if err != nil {
		return err
	}
	moved := &unstructured.Unstructured{}
	moved.SetGroupVersionKind(d.kind)
	moved.SetName(d.key.Name)
	moved.SetNamespace(d.key.Namespace)
	c.write(keyOf(d.kind.GroupKind(), d.key), func() (name, version string) {
		err = with.Patch(ctx, moved, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(d.manager))
		return d.key.Name, moved.GetResourceVersion()
	})
	if err != nil {
		return fmt.Errorf("upgrade the fields of %s: %w", strings.Join(c.options.UpgradeFrom, ", "), err)
	}
	count(c.metrics.upgrades, d.kind)
	return nil
}

// moves returns the result of moving the fields that the updaters in Options.UpgradeFrom own; nil if nothing moves.
func (c *core) moves(ctx context.Context, d decision) (*ownership.Result, error) {
	list, err := managedfields.Read(d.cached)
	if err != nil {
		return nil, err
	}
	to := managedfields.KeyOf(d.manager, metav1.ManagedFieldsOperationApply, "", "")
	var moves []ownership.Move
	for i := range list {
		e := &list[i]
		isUpdate := e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
		if !isUpdate || !slices.Contains(c.options.UpgradeFrom, e.Manager) || e.APIVersion != d.kind.GroupVersion().String() {
			continue
		}
		if fields := moving(e.Owned(), d.intent); !fields.IsEmpty() {
			moves = append(moves, ownership.Transfer{Fields: fields, From: e.Key, To: to})
		}
	}
	if len(moves) == 0 {
		return nil, nil
	}
	mover := ownership.Mover{
		Types: d.types, Plan: d.strategy().Plan(""),
		Options: func(schema.GroupVersionKind, string) fieldmanager.Options { return d.strategy().FieldManager() },
	}
	return mover.Do(ctx, d.cached, moves...)
}

// moving returns the paths that move, each with everything below it: all fields of an updater except the status and
// finalizers. Owner references, and annotations of Kubernetes' own tools, move only if the intent has them.
func moving(owned *fieldpath.Set, intent *unstructured.Unstructured) *fieldpath.Set {
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
					if name == "annotations" && annotationMoves(item, intent) || name == "ownerReferences" && hasOwner(item, intent) {
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

// annotationMoves reports whether an annotation moves: if the intent has it, or if its domain is not Kubernetes' own.
func annotationMoves(annotation fieldpath.Element, intent *unstructured.Unstructured) bool {
	name, _ := annotation.Field()
	domain, _, _ := strings.Cut(name, "/")
	_, isIntended := intent.GetAnnotations()[name]
	return isIntended || !strings.HasSuffix("."+domain, ".kubernetes.io") && !strings.HasSuffix("."+domain, ".k8s.io")
}

// hasOwner reports whether an intent contains an owner reference.
func hasOwner(reference fieldpath.Element, intent *unstructured.Unstructured) bool {
	fields, _ := reference.Key()
	return len(fields) == 1 && slices.ContainsFunc(intent.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return string(r.UID) == fields[0].Value
	})
}
