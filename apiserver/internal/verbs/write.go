package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/managedfields"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// A write is a write to one object.
type write struct {
	name    string
	options metav1.UpdateOptions // of a patch or create too
	// mayCreate: the write creates an object that does not exist.
	mayCreate bool
	// uid, if not empty, is the expected UID of the object.
	uid string
	// change returns the new object, which must not share memory with live, or live itself if nothing
	// changes. live is read-only, and nil if the object does not exist.
	change func(ctx context.Context, live resources.Object) (resources.Object, error)
	// subject, if not nil, returns what validating admission sees in the place of an object.
	// change then calls mutating admission itself.
	subject func(obj resources.Object) (resources.Object, error)
}

// guaranteedUpdate performs a write: it reads the object, changes it and stores it, and
// retries if the object was written in between. It stores nothing if nothing changed.
func (c *Call) guaranteedUpdate(w write) (obj resources.Object, created bool, err error) {
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
				obj, err = c.insertNew(ctx, obj, w.options)
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

// insertNew calls mutating admission and creates an object.
func (c *Call) insertNew(
	ctx context.Context, obj resources.Object, options metav1.UpdateOptions,
) (resources.Object, error) {
	if err := c.prepareMutation(ctx, obj, options); err != nil {
		return nil, err
	}
	return c.insert(ctx, obj, options)
}

// prepareMutation checks whether an object may be created and calls mutating admission.
func (c *Call) prepareMutation(ctx context.Context, obj resources.Object, options metav1.UpdateOptions) error {
	if c.Resource.Closed != "" {
		return apierrors.NewForbidden(c.Resource.GroupResource(), obj.GetName(), errors.New(c.Resource.Closed))
	}
	if err := c.matchNamespace(obj); err != nil {
		return err
	}
	if err := c.checkNamespace(ctx, obj); err != nil {
		return err
	}
	if err := c.admitPriority(ctx, obj, nil); err != nil {
		return err
	}
	return c.mutate(ctx, writeRequest(obj, nil, options))
}

// insert creates an object. The error is a *storage.ConflictError if the object exists.
func (c *Call) insert(
	ctx context.Context, obj resources.Object, options metav1.UpdateOptions,
) (resources.Object, error) {
	dryRun := isDryRun(options.DryRun)
	if err := c.prepareNew(obj); err != nil {
		return nil, err
	}
	if c.Controllers {
		addProtection(obj)
	}
	c.Strategy.PrepareForCreate(warning.WithWarningRecorder(ctx, &recorder{call: c}), obj)
	if err := c.validate(ctx, writeRequest(obj, nil, options)); err != nil {
		return nil, err
	}
	if err := c.admit(ctx, writeRequest(obj, nil, options)); err != nil {
		return nil, err
	}
	if err := c.guard(ctx, obj, nil); err != nil {
		return nil, err
	}
	if err := c.dropResourceVersion(obj, dryRun); err != nil {
		return nil, err
	}
	c.Strategy.Canonicalize(obj)
	data, err := c.Strategy.EncodeStored(obj)
	if err != nil {
		return nil, err
	}
	if err := resources.CheckSize(data, c.MaxObject); err != nil {
		return nil, err
	}
	c.storedAs(obj, data)
	if obj, err = c.asStored(obj, data); err != nil {
		return nil, err
	}
	key := c.Resource.Key(obj.GetNamespace(), obj.GetName())
	// A request that timed out must not be stored.
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
	return obj, c.put(ctx, key, obj, data, 0)
}

// dropResourceVersion clears the resourceVersion of a new object. A create must not set it;
// kube-apiserver's storage checks that, so a dry run, which does not reach the storage,
// responds with the client's value. An apply or update may set it: it is the version that the
// client last read.
func (c *Call) dropResourceVersion(obj resources.Object, dryRun bool) error {
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

// prepareNew sets the metadata of a new object.
func (c *Call) prepareNew(obj resources.Object) error {
	obj.SetSelfLink("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetCreationTimestamp(metav1.NewTime(c.Now()).Rfc3339Copy())
	obj.SetUID(c.NewUID())
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(appendNameSuffix(obj.GetGenerateName(), c.Suffix()))
	}
	return c.matchNamespace(obj)
}

// maxGenerated is the maximum length of a generateName without its suffix.
const maxGenerated = 63 - 5

func appendNameSuffix(prefix, suffix string) string {
	if len(prefix) > maxGenerated {
		prefix = prefix[:maxGenerated]
	}
	return prefix + suffix
}

// matchNamespace sets the namespace of the request if the object has none, and rejects any
// other.
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
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the " +
				"request")
		}
		obj.SetNamespace("")
	}
	return nil
}

// replace updates the stored object live.
func (c *Call) replace(
	ctx context.Context, w write, live resources.Object, record *storage.Record,
) (resources.Object, error) {
	if w.uid != "" && w.uid != string(live.GetUID()) {
		return nil, c.uidConflict(w, live.GetUID())
	}
	c.changed = record
	obj, err := w.change(ctx, live)
	if err != nil {
		return nil, err
	}
	keeps := obj == live
	if keeps {
		if known := c.knownUnchanged(record.Key, record.Revision); known != nil {
			return c.keep(ctx, w, known, live, record)
		}
		if obj, err = c.copyOf(live); err != nil {
			return nil, err
		}
	}
	if err := c.matchNamespace(obj); err != nil {
		return nil, err
	}
	if obj.GetName() != w.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			obj.GetName(), w.name))
	}
	c.warnDuplicateOwners(obj)
	if w.subject == nil {
		if err := c.admitPriority(ctx, obj, live); err != nil {
			return nil, err
		}
		if err := c.mutate(ctx, writeRequest(obj, live, w.options)); err != nil {
			return nil, err
		}
	}
	if err := c.matchVersion(obj, live); err != nil {
		return nil, err
	}
	c.prepareChanged(obj, live)
	from := len(c.warnings)
	if err := c.validate(ctx, writeRequest(obj, live, w.options)); err != nil {
		return nil, err
	}
	warned := c.warnings[from:]
	if err := c.admitUpdate(ctx, w, obj, live); err != nil {
		return nil, err
	}
	if err := c.guard(ctx, obj, live); err != nil {
		return nil, err
	}
	dryRun := isDryRun(w.options.DryRun)
	c.Strategy.Canonicalize(obj)
	data, err := c.encodeChanged(obj, live, record)
	if err != nil {
		return nil, err
	}
	if live.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && c.isDeletionComplete(obj) {
		return obj, c.deleteRecord(ctx, record, obj, dryRun)
	}
	if data == nil {
		if keeps {
			c.rememberUnchanged(record, warned)
		}
		c.storedAs(obj, record.Value)
		return c.asStored(obj, record.Value)
	}
	// An object that exceeds the limit already must not grow.
	if err := resources.CheckSize(data, max(c.MaxObject, int64(len(record.Value)))); err != nil {
		return nil, err
	}
	c.storedAs(obj, data)
	if obj, err = c.asStored(obj, data); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil || dryRun {
		return obj, err
	}
	return obj, c.put(ctx, record.Key, obj, data, record.Revision)
}

// put stores obj, whose JSON is data, and sets its resourceVersion.
func (c *Call) put(ctx context.Context, key string, obj resources.Object, data []byte, expected int64) error {
	revision, err := c.Store.Put(ctx, key, data, expected)
	if err != nil {
		return err
	}
	obj.SetResourceVersion(versionText(revision))
	c.cacheWritten(key, revision, obj, data)
	c.notifyWritten(obj)
	return nil
}

// copyOf returns a copy of a stored object with its defaults.
func (c *Call) copyOf(live resources.Object) (resources.Object, error) {
	obj, err := copyAndDecode(c.Strategy, live)
	if err == nil && c.Hooks.Default != nil {
		c.Hooks.Default(obj)
	}
	return obj, err
}

// asStored returns obj as a read returns it after the write. Objects of built-in kinds at the
// storage version do not change. Others are decoded again: custom resources get defaults for
// fields that the write could not set, such as those of the status, and other versions lose
// what conversion drops.
func (c *Call) asStored(obj resources.Object, data []byte) (resources.Object, error) {
	if !c.Resource.Custom && c.Resource.Stored == c.Resource.GVK() {
		return obj, nil
	}
	out, err := c.decodeUncached(data, 0)
	if err == nil {
		out.SetResourceVersion(obj.GetResourceVersion())
	}
	return out, err
}

// matchVersion rejects a resourceVersion that is not that of live. It sets the resourceVersion
// if the object has none (or 0) and the strategy allows unconditional updates.
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
	case !c.Strategy.AllowUnconditionalUpdate():
		// kube-apiserver has the resource in the place of the kind here.
		return apierrors.NewInvalid(schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Plural}, obj.GetName(),
			field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), uint64(0), "must be specified for an update"),
			})
	}
	obj.SetResourceVersion(live.GetResourceVersion())
	return nil
}

// prepareChanged resets the fields that no write may change.
func (c *Call) prepareChanged(obj, live resources.Object) {
	obj.SetSelfLink("")
	c.Strategy.PrepareForUpdate(obj, live, c.Info.Subresource)
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

// encodeChanged returns the stored form of obj, or nil if it did not change. If only the
// timestamps of managed fields changed it restores those of live.
func (c *Call) encodeChanged(obj, live resources.Object, record *storage.Record) ([]byte, error) {
	version := obj.GetResourceVersion()
	obj.SetResourceVersion("")
	defer obj.SetResourceVersion(version)
	fields := obj.GetManagedFields()
	if sameButTimes(fields, live.GetManagedFields()) {
		obj.SetManagedFields(live.GetManagedFields())
		data, err := c.Strategy.EncodeStored(obj)
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
	return c.Strategy.EncodeStored(obj)
}

// sameButTimes reports whether managed fields are equal except for their timestamps.
func sameButTimes(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion ||
			x.Subresource != y.Subresource || x.FieldsType != y.FieldsType || (x.FieldsV1 == nil) != (y.FieldsV1 == nil) {
			return false
		}
		return x.FieldsV1 == nil || bytes.Equal(x.FieldsV1.GetRawBytes(), y.FieldsV1.GetRawBytes())
	})
}

// sameTimes reports whether the timestamps of managed fields are equal.
func sameTimes(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool { return x.Time.Equal(y.Time) })
}

// admitUpdate calls validating admission for an update.
func (c *Call) admitUpdate(ctx context.Context, w write, obj, live resources.Object) (err error) {
	if w.subject != nil {
		if obj, err = w.subject(obj); err != nil {
			return err
		}
		if live, err = w.subject(live); err != nil {
			return err
		}
	}
	return c.admit(ctx, writeRequest(obj, live, w.options))
}

// validate validates the metadata and the object of a create or update.
func (c *Call) validate(ctx context.Context, r admissionRequest) error {
	var errs field.ErrorList
	metadata := field.NewPath("metadata")
	if r.live != nil {
		// Strategies validate most of this again, and the errors are there twice, as on kube-apiserver.
		errs = apivalidation.ValidateObjectMetaAccessor(r.obj, c.Resource.Namespaced, anyName, metadata)
		errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(r.obj, r.live, metadata)...)
	}
	more, warnings := c.validateByStrategy(ctx, r)
	errs = append(errs, more...)
	if r.live == nil && len(errs) == 0 {
		errs = apivalidation.ValidateObjectMetaAccessor(r.obj, c.Resource.Namespaced, anyName, metadata)
	}
	if len(errs) > 0 {
		// Errors are about the kind that validation knows, which for Events of events.k8s.io is that of the core group.
		kind := c.Resource.GroupKind()
		if !c.Resource.Custom {
			kind = c.Resource.Stored.GroupKind()
		}
		return apierrors.NewInvalid(kind, r.obj.GetName(), errs)
	}
	c.warnings = append(c.warnings, warnings...)
	return nil
}

// validateByStrategy validates an object by Server.Validation, or else by the strategy.
func (c *Call) validateByStrategy(ctx context.Context, r admissionRequest) (field.ErrorList, []string) {
	if c.Validation != nil && !c.Resource.Custom {
		w := c.write(ctx, r)
		w.Kind = c.Resource.GVK() // the object is whole, also when a subresource such as scale has another kind
		if errs, warnings, ok := c.Validation(ctx, w); ok {
			return errs, warnings
		}
	}
	return c.Strategy.Validate(ctx, r.obj, r.live, c.Info.Subresource)
}

// anyName accepts all names that are path segments: the strategy validates names.
func anyName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// guard checks whether the user may turn live into obj; see Server.Guard.
func (c *Call) guard(ctx context.Context, obj, live resources.Object) error {
	if c.Guard == nil || c.noNotify {
		return nil
	}
	a := Attributes(ctx, c.Info)
	a.Name = obj.GetName()
	if live == nil {
		return c.Guard(ctx, a, obj, nil)
	}
	return c.Guard(ctx, a, obj, live)
}

// warnDuplicateOwners removes duplicate owner references, with a warning.
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
			".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "+
				"reject such requests as early as 1.24; please fix your requests")
	}
}

// uidConflict returns the error for an update whose UID is not that of the object.
func (c *Call) uidConflict(w write, uid types.UID) error {
	return apierrors.NewConflict(c.Resource.GroupResource(), w.name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: /registry/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition "+
			"failed: UID in precondition: %s, UID in object meta: %s",
		c.registryKey(w.name), w.uid, uid))
}

// registryKey returns kube-apiserver's storage key of an object, which its errors show.
func (c *Call) registryKey(name string) string {
	key := strings.TrimPrefix(c.key(name), "/")
	if !c.Resource.Custom {
		_, key, _ = strings.Cut(key, "/")
	}
	return key
}

// deleteRecord deletes an object from the storage.
func (c *Call) deleteRecord(ctx context.Context, record *storage.Record, obj resources.Object, dryRun bool) error {
	if dryRun {
		return nil
	}
	if _, err := c.Store.Delete(ctx, record.Key, record.Revision); err != nil {
		return err
	}
	c.notifyWritten(obj)
	return nil
}

// notifyWritten calls Written, and forgets what was read before.
func (c *Call) notifyWritten(obj resources.Object) {
	if _, ok := obj.(*schedulingv1.PriorityClass); ok {
		c.priorities.changed()
	}
	if c.Written != nil && !c.noNotify {
		c.Written(c.Request.Context(), c.Resource, obj)
	}
}

// managerOf returns the field manager of a write.
func (c *Call) managerOf(requested string) string {
	if requested != "" {
		return requested
	}
	return managedfields.ManagerFromUserAgent(c.Request.UserAgent())
}
