package upgrade

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ClientSideOptions configure ToClientSide.
type ClientSideOptions struct {
	// Types has the topology of the object's kind.
	Types fieldmanager.Types
	// Converter is needed if Manager last applied at another version than the object's.
	Converter fieldmanager.Converter
	// Manager is the server-side applier. It must not be empty.
	Manager string
	// To is the manager of the client-side writes; ClientSideManager if it is empty.
	To string
	// Empty is an object before it is created, as for fieldmanager.WithEmptyObject: To does not own its containers. By
	// default it has only an apiVersion and a kind, as a custom resource. For built-in types, which servers decode into
	// Go structs, it is the zero value, such as &appsv1.Deployment{} with its TypeMeta.
	Empty runtime.Object
}

// ToClientSide moves the fields that a manager applied server-side back to client-side apply. The annotation becomes
// the intent of the manager's Apply entry, with live's values, and its ownership becomes that of an Update, as if
// kubectl apply had created it. Entries of subresources do not change, as client-side apply does not write
// subresources.
//
// Nulls and empty lists of the intent are lost: live has no nulls, and an empty list owns nothing.
//
// The error is ErrNoApplyEntry if the manager has applied nothing; SizeError if the annotations would be too large;
// *managedfields.Error if an entry that must change is malformed; ErrNoType or ErrNoConverter. The Patch must be sent
// as the manager To.
func ToClientSide(obj runtime.Object, o ClientSideOptions) (Result, error) {
	live, err := read(obj)
	if err != nil {
		return Result{}, err
	}
	entries, err := live.entries()
	if err != nil {
		return Result{}, err
	}
	key := managedfields.KeyOf(o.Manager, managedfields.Apply, "", "")
	applier := entries.Get(key)
	if applier == nil {
		return Result{}, fmt.Errorf("%q: %w", o.Manager, ErrNoApplyEntry)
	}
	if _, err := applier.Fields(); err != nil {
		return Result{}, err
	}
	mine := *applier
	entries = entries.Without(key)

	v := versions{o.Types, o.Converter}
	t, err := v.typeOf(live, mine.APIVersion)
	if err != nil {
		return Result{}, err
	}
	at, err := v.at(live, mine.APIVersion)
	if err != nil {
		return Result{}, err
	}
	if err := t.Validate(at.tree, typed.Rules{Duplicates: true, Unknown: true}); err != nil {
		return Result{}, err
	}
	owned := t.Reconcile(mine.Owned()).Difference(fieldpath.NewSet(annotationPath))
	intent := at.intentOf(t, owned)
	text, err := encodeIntent(intent)
	if err != nil {
		return Result{}, err
	}
	annotations, err := live.annotated(text)
	if err != nil {
		return Result{}, err
	}

	empty, err := o.empty(v, at, t)
	if err != nil {
		return Result{}, err
	}
	updater := managedfields.KeyOf(cmp.Or(o.To, ClientSideManager), managedfields.Update, mine.APIVersion, "")
	entries, err = asUpdate(entries, updater, mine, heldBy(t, empty, withAnnotations(intent, annotations)).Union(owned))
	if err != nil {
		return Result{}, err
	}
	list := withoutEmpty(entries)
	now, err := live.with(map[string]any{"annotations": annotations})
	if err == nil {
		now, err = now.withEntries(list)
	}
	if err != nil {
		return Result{}, err
	}
	result := Result{Object: now.given, Changed: true, Preview: Preview{
		Applier: key, APIVersion: mine.APIVersion,
		Moves: []Share{{Key: key, APIVersion: mine.APIVersion, Fields: mine.Owned()}},
	}}
	result.Patch, err = live.patch(&text, list)
	return result, err
}

// empty returns the tree of Empty at the version of live.
func (o ClientSideOptions) empty(v versions, live object, t *typed.Type) (map[string]any, error) {
	if o.Empty == nil {
		return map[string]any{}, nil
	}
	empty, err := read(o.Empty)
	if err == nil && empty.kind() != live.kind() {
		err = fmt.Errorf("expected %s, got %s", live.kind(), empty.kind())
	}
	if err == nil {
		empty, err = v.at(empty, live.version())
	}
	if err == nil {
		err = t.Validate(empty.tree, typed.Rules{Duplicates: true, Unknown: true})
	}
	if err != nil {
		return nil, fmt.Errorf("empty object: %w", err)
	}
	return empty.tree, nil
}

// intentOf returns the intent that owns set: its leaves, with the keys of the items around them, and the name of o.
func (o object) intentOf(t *typed.Type, set *fieldpath.Set) map[string]any {
	intent, _ := t.Extract(o.tree, set.Leaves(), true).(map[string]any)
	named := object{tree: map[string]any{}}
	for name, v := range intent {
		named.tree[name] = v
	}
	named.tree["apiVersion"], named.tree["kind"] = o.version(), o.kind()
	metadata := map[string]any{}
	for name, v := range (object{tree: intent}).metadata() {
		metadata[name] = v
	}
	for _, name := range []string{"name", "namespace"} {
		if s := o.meta(name); s != "" {
			metadata[name] = s
		}
	}
	named.tree["metadata"] = metadata
	return named.tree
}

// asUpdate returns the entries after updater wrote the fields of set, which mine owned: updater owns them, the
// annotation, and the containers that nobody else owns.
func asUpdate(
	entries managedfields.Entries, updater managedfields.Key, mine managedfields.Entry, set *fieldpath.Set,
) (managedfields.Entries, error) {
	written := fieldpath.NewSet(annotationPath)
	at := mine.Time
	var others []*fieldpath.Set
	for i := range entries {
		r := &entries[i]
		if r.Key == updater {
			continue
		}
		owned, err := r.Fields()
		if err != nil {
			continue
		}
		// updater also writes the annotation, so others lose it.
		owned = owned.Difference(written)
		setFields(r, owned)
		if r.APIVersion == mine.APIVersion {
			others = append(others, owned)
		}
	}
	made := set.Difference(set.Leaves()).Difference(mine.Owned())
	owned := set.Difference(made.Intersection(fieldpath.UnionOf(others...))).Union(written)
	if r := entries.Get(updater); r != nil {
		before, err := r.Fields()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("entry of %q", r.Manager), err)
		}
		owned = owned.Union(before)
		if at == nil || at.Before(r.Time) {
			at = r.Time
		}
		entries = entries.Without(updater)
	}
	return append(entries, managedfields.NewEntry(updater, mine.APIVersion, at, owned)), nil
}
