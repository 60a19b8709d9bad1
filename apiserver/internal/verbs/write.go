package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/managedfields"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// write is one write to one object.
type write struct {
	name   string
	dryRun bool
	// mayCreate lets the write make an object that is not there.
	mayCreate bool
	// uid, if not empty, is what the object has to have.
	uid string
	// change returns the object as it is to be, which shares no memory with live.
	// live is not to be changed; it is nil when there is no object.
	change func(ctx context.Context, live resources.Object) (resources.Object, error)
}

// run does a write: it reads the object, changes it and stores it, and starts
// anew when somebody else was faster. Nothing is stored when nothing changed.
// gone says that the write took away what an object under deletion waited for.
func (c *Call) run(w write) (obj resources.Object, created bool, err error) {
	ctx := c.Request.Context()
	warned := len(c.warnings)
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		c.warnings = c.warnings[:warned]
		live, record, _, err := c.read(ctx, w.name)
		if err != nil {
			return nil, false, err
		}
		if live == nil {
			if !w.mayCreate {
				return nil, false, apierrors.NewNotFound(c.Resource.GroupResource(), w.name)
			}
			if w.uid != "" {
				return nil, false, c.uidConflict(w, "")
			}
			obj, err = w.change(ctx, nil)
			if err == nil {
				obj, err = c.insert(ctx, obj, w.dryRun)
			}
			created = true
		} else {
			obj, err = c.replace(ctx, w, live, record)
			created = false
		}
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			return obj, created, err
		}
	}
}

// insert stores a new object. The error is a *storage.ConflictError when there is
// one of its name.
func (c *Call) insert(ctx context.Context, obj resources.Object, dryRun bool) (resources.Object, error) {
	if c.Resource.Closed != "" {
		return nil, apierrors.NewForbidden(c.Resource.GroupResource(), obj.GetName(), errors.New(c.Resource.Closed))
	}
	if err := c.prepareNew(ctx, obj); err != nil {
		return nil, err
	}
	if err := c.admit(ctx, admission.Create, obj, nil, dryRun); err != nil {
		return nil, err
	}
	c.Kind.PrepareCreate(ctx, obj)
	if err := c.validate(ctx, obj, nil, dryRun); err != nil {
		return nil, err
	}
	if err := c.noVersion(obj, dryRun); err != nil {
		return nil, err
	}
	data, err := c.Kind.EncodeStored(obj)
	if err != nil {
		return nil, err
	}
	if err := resources.CheckSize(data, c.MaxObject); err != nil {
		return nil, err
	}
	if obj, err = c.asStored(obj, data); err != nil {
		return nil, err
	}
	key := c.Resource.Key(obj.GetNamespace(), obj.GetName())
	// Work that took too long is answered as such, and must not be stored then.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if dryRun {
		record, _, err := c.Store.Get(ctx, key, 0)
		if err == nil && record != nil {
			err = &storage.ConflictError{Key: key, Current: record}
		}
		return obj, err
	}
	revision, err := c.Store.Put(ctx, key, data, 0)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(versionText(revision))
	c.tell(obj)
	return obj, nil
}

// noVersion takes the resourceVersion from a new object. A create must not give one, which
// only the store of a real server says: a dry run answers the one that it was given. Of an
// apply or an update it says what the object was made from, which is not there any more.
func (c *Call) noVersion(obj resources.Object, dryRun bool) error {
	if c.Info.Verb == "create" && dryRun {
		return nil
	}
	said, err := parseVersion(obj.GetResourceVersion())
	switch {
	case c.Info.Verb != "create" && err != nil:
		return err
	case c.Info.Verb == "create" && err == nil && said != 0:
		return errors.New("resourceVersion should not be set on objects to be created")
	}
	obj.SetResourceVersion("")
	return nil
}

// prepareNew sets the metadata that a server sets.
func (c *Call) prepareNew(ctx context.Context, obj resources.Object) error {
	obj.SetSelfLink("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetCreationTimestamp(metav1.NewTime(c.Now()).Rfc3339Copy())
	obj.SetUID(c.NewUID())
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(generated(obj.GetGenerateName(), c.Suffix()))
	}
	if err := c.matchNamespace(obj); err != nil {
		return err
	}
	return c.namespaceOpen(ctx, obj)
}

// maxGenerated is how much of a generateName fits before its suffix.
const maxGenerated = 63 - 5

func generated(prefix, suffix string) string {
	if len(prefix) > maxGenerated {
		prefix = prefix[:maxGenerated]
	}
	return prefix + suffix
}

// matchNamespace sets the namespace of the request, if the object has none, and
// refuses another one.
func (c *Call) matchNamespace(obj resources.Object) error {
	want := c.Info.Namespace
	if !c.Resource.Namespaced {
		want = ""
	}
	switch obj.GetNamespace() {
	case want:
	case "":
		obj.SetNamespace(want)
	default:
		if want != "" {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		obj.SetNamespace("")
	}
	return nil
}

// replace stores an object in the place of live.
func (c *Call) replace(ctx context.Context, w write, live resources.Object, record *storage.Record) (resources.Object, error) {
	if w.uid != "" && w.uid != string(live.GetUID()) {
		return nil, c.uidConflict(w, live.GetUID())
	}
	obj, err := w.change(ctx, live)
	if err != nil {
		return nil, err
	}
	if err := c.matchNamespace(obj); err != nil {
		return nil, err
	}
	if obj.GetName() != w.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), w.name))
	}
	if err := c.matchVersion(obj, live); err != nil {
		return nil, err
	}
	c.warnDuplicateOwners(obj)
	if err := c.admit(ctx, admission.Update, obj, live, w.dryRun); err != nil {
		return nil, err
	}
	c.prepareChanged(obj, live)
	if err := c.validate(ctx, obj, live, w.dryRun); err != nil {
		return nil, err
	}
	data, err := c.encodeChanged(obj, live, record)
	if err != nil {
		return nil, err
	}
	if live.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && c.mayGo(obj) {
		return obj, c.drop(ctx, record, obj, w.dryRun)
	}
	if data == nil {
		return c.asStored(obj, record.Value)
	}
	// What is stored already, and larger than the limit, may become smaller.
	if err := resources.CheckSize(data, max(c.MaxObject, int64(len(record.Value)))); err != nil {
		return nil, err
	}
	if obj, err = c.asStored(obj, data); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil || w.dryRun {
		return obj, err
	}
	revision, err := c.Store.Put(ctx, record.Key, data, record.Revision)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(versionText(revision))
	c.tell(obj)
	return obj, nil
}

// asStored returns what a read answers of an object that is stored as data. An object of
// a built-in type that is stored at the version of the request is that already. Any other
// one is decoded again: a custom resource gets the defaults of fields that the write could
// not set (those of a status), one of another version what its conversion leaves.
func (c *Call) asStored(obj resources.Object, data []byte) (resources.Object, error) {
	if !c.Resource.Custom && c.Resource.Stored == c.Resource.GVK() {
		return obj, nil
	}
	out, err := c.decodeAnew(data, 0)
	if err == nil {
		out.SetResourceVersion(obj.GetResourceVersion())
	}
	return out, err
}

// matchVersion sets the resourceVersion of live, if the object has none and need
// not have one, and refuses another one. 0 is none.
func (c *Call) matchVersion(obj, live resources.Object) error {
	version := obj.GetResourceVersion()
	if version == live.GetResourceVersion() {
		return nil
	}
	said, err := parseVersion(version)
	switch {
	case err != nil:
		return err
	case said != 0:
		return apierrors.NewConflict(c.Resource.GroupResource(), obj.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case !c.Kind.Unconditional():
		// Of a kind that is named as the resource, as a server has it.
		return apierrors.NewInvalid(schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Plural}, obj.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), uint64(0), "must be specified for an update"),
		})
	}
	obj.SetResourceVersion(live.GetResourceVersion())
	return nil
}

// prepareChanged keeps what no write changes.
func (c *Call) prepareChanged(obj, live resources.Object) {
	obj.SetSelfLink("")
	c.Kind.PrepareUpdate(obj, live, c.Info.Subresource)
	if obj.GetUID() == "" {
		obj.SetUID(live.GetUID())
	}
	obj.SetCreationTimestamp(live.GetCreationTimestamp())
	if live.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
	}
	if live.GetDeletionGracePeriodSeconds() != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	}
}

// encodeChanged returns obj as it is to be stored, nil when that is what is stored
// already. When nothing changed but the times of managed fields they are set back
// to those of live.
func (c *Call) encodeChanged(obj, live resources.Object, record *storage.Record) ([]byte, error) {
	version := obj.GetResourceVersion()
	obj.SetResourceVersion("")
	defer obj.SetResourceVersion(version)
	fields := obj.GetManagedFields()
	if sameButTimes(fields, live.GetManagedFields()) {
		obj.SetManagedFields(live.GetManagedFields())
		data, err := c.Kind.EncodeStored(obj)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(data, record.Value) {
			return nil, nil
		}
		if sameTimes(fields, live.GetManagedFields()) {
			return data, nil
		}
		obj.SetManagedFields(fields)
	}
	return c.Kind.EncodeStored(obj)
}

// sameButTimes reports whether managed fields are equal but for their times.
func sameButTimes(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion ||
			x.Subresource != y.Subresource || x.FieldsType != y.FieldsType || (x.FieldsV1 == nil) != (y.FieldsV1 == nil) {
			return false
		}
		return x.FieldsV1 == nil || bytes.Equal(x.FieldsV1.GetRawBytes(), y.FieldsV1.GetRawBytes())
	})
}

// sameTimes reports whether the times of managed fields are equal.
func sameTimes(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool { return x.Time.Equal(y.Time) })
}

// admit lets the host change the object.
func (c *Call) admit(ctx context.Context, op admission.Operation, obj, live resources.Object, dryRun bool) error {
	if c.Hooks.Mutate == nil {
		return nil
	}
	if err := c.Hooks.Mutate(ctx, c.admission(ctx, op, obj, live, dryRun)); err != nil {
		if _, ok := err.(apierrors.APIStatus); ok {
			return err
		}
		return apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, err)
	}
	return nil
}

func (c *Call) admission(ctx context.Context, op admission.Operation, obj, live resources.Object, dryRun bool) *admission.Write {
	w := &admission.Write{
		Operation: op, Resource: c.Resource.GVR(), Kind: c.Resource.GVK(), Subresource: c.Info.Subresource,
		User: auth.UserOf(ctx), DryRun: dryRun,
	}
	if obj != nil {
		w.Object = obj
	}
	if live != nil {
		w.Live = live
	}
	return w
}

// validate checks obj as the kind and the host do.
func (c *Call) validate(ctx context.Context, obj, live resources.Object, dryRun bool) error {
	var errs field.ErrorList
	op := admission.Create
	if live != nil {
		op = admission.Update
		errs = apivalidation.ValidateObjectMetaAccessorUpdate(obj, live, field.NewPath("metadata"))
	}
	more, warnings := c.Kind.Validate(ctx, obj, live, c.Info.Subresource)
	errs = append(errs, more...)
	if live == nil && len(errs) == 0 {
		errs = apivalidation.ValidateObjectMetaAccessor(obj, c.Resource.Namespaced, anyName, field.NewPath("metadata"))
	}
	if c.Hooks.Validate != nil && len(errs) == 0 {
		w := c.admission(ctx, op, obj, live, dryRun)
		hostErrs, hostWarnings := c.Hooks.Validate(ctx, w)
		errs, warnings = append(errs, hostErrs...), append(warnings, hostWarnings...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(c.Resource.GroupKind(), obj.GetName(), errs)
	}
	c.warnings = append(c.warnings, warnings...)
	return c.guard(ctx, obj, live)
}

// anyName lets a kind's own rule for names decide, as far as a name fits in a path.
func anyName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// guard asks whether the user may make of live what obj is.
func (c *Call) guard(ctx context.Context, obj, live resources.Object) error {
	if c.Guard == nil || c.quiet {
		return nil
	}
	a := auth.Attributes{
		User: auth.UserOf(ctx), Verb: c.Info.Verb, Group: c.Info.Group, Version: c.Info.Version, Resource: c.Info.Plural,
		Subresource: c.Info.Subresource, Namespace: c.Info.Namespace, Name: obj.GetName(),
	}
	if live == nil {
		return c.Guard(ctx, a, obj, nil)
	}
	return c.Guard(ctx, a, obj, live)
}

// warnDuplicateOwners drops owner references that stand twice, and says so.
func (c *Call) warnDuplicateOwners(obj resources.Object) {
	owners := obj.GetOwnerReferences()
	seen := map[metav1.OwnerReference]bool{}
	var kept []metav1.OwnerReference
	for _, o := range owners {
		key := o
		key.Controller, key.BlockOwnerDeletion = nil, nil
		if seen[key] {
			continue
		}
		seen[key] = true
		kept = append(kept, o)
	}
	if len(kept) < len(owners) {
		obj.SetOwnerReferences(kept)
		c.warnings = append(c.warnings,
			".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests")
	}
}

// uidConflict is the answer to an update of another object than is there.
func (c *Call) uidConflict(w write, uid types.UID) error {
	return apierrors.NewConflict(c.Resource.GroupResource(), w.name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: /registry/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
		c.registryKey(w.name), w.uid, uid))
}

// registryKey is where a server keeps an object in its own store, as errors show it.
func (c *Call) registryKey(name string) string {
	key := strings.TrimPrefix(c.key(name), "/")
	if !c.Resource.Custom {
		_, key, _ = strings.Cut(key, "/")
	}
	return key
}

// drop removes an object's record.
func (c *Call) drop(ctx context.Context, record *storage.Record, obj resources.Object, dryRun bool) error {
	if dryRun {
		return nil
	}
	if _, err := c.Store.Delete(ctx, record.Key, record.Revision); err != nil {
		return err
	}
	c.tell(obj)
	return nil
}

// tell tells the host's server that an object was written.
func (c *Call) tell(obj resources.Object) {
	if c.Written != nil && !c.quiet {
		c.Written(c.Request.Context(), c.Resource, obj)
	}
}

// managerOf returns who manages the fields of a write.
func (c *Call) managerOf(asked string) string {
	if asked != "" {
		return asked
	}
	return managedfields.ManagerFromUserAgent(c.Request.UserAgent())
}
