package advice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// GiveBack moves fields that an apply of manager would remove from a list item or struct. It moves them to owner, which
// owns the remaining fields of the item or struct. The fields then stay, and the apply succeeds.
func GiveBack(lost []fieldpath.Path, manager string, owner managedfields.Key) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("to keep %s, make %q the owner; it owns the fields beside", list(lost), owner.Manager),
		Action: Move{Move: ownership.Transfer{
			Fields: fieldpath.NewSet(lost...), From: managedfields.Key{Manager: manager}, To: target(owner),
		}},
		Promise: Promise{Unblocks: true, Keeps: true, Moves: lost},
	}
}

// Remove lets the next apply of a manager remove fields that its intent lacks: the fields are transferred from owner
// or, if nobody owns them (owner is nil), adopted.
func Remove(fields []fieldpath.Path, manager string, owner *managedfields.Key, promise Promise) Suggestion {
	promise.Moves = fields
	set, mine := fieldpath.NewSet(fields...), managedfields.Key{Manager: manager}
	if owner == nil {
		promise.Keeps = true
		return Suggestion{
			Why:     fmt.Sprintf("to let this apply remove %s, which nobody owns", list(fields)),
			Action:  Move{Move: ownership.Adopt{Fields: set, To: mine}},
			Promise: promise,
		}
	}
	from := managedfields.Key{Manager: owner.Manager}
	if owner.Manager == manager { // a move from the manager's own Update entry
		from.Operation = owner.Operation
	}
	return Suggestion{
		Why:     fmt.Sprintf("to let this apply remove %s, which %q owns", list(fields), owner.Manager),
		Action:  Move{Move: ownership.Transfer{Fields: set, From: from, To: mine}},
		Promise: promise,
	}
}

// LeaveOut removes the object's UID, resourceVersion or managedFields from the manifest. exists is true if there is a
// live object.
func LeaveOut(fields []string, exists bool) Suggestion {
	why := "the manifest is for an object that does not exist"
	if slices.Equal(fields, []string{"managedFields"}) {
		why = "a manifest can't set managed fields"
	} else if exists {
		why = "the manifest is for another object, or an earlier version of it"
	}
	return Suggestion{
		Why:     fmt.Sprintf("%s: leave metadata.%s out of it", why, strings.Join(fields, " and metadata.")),
		Promise: Promise{Unblocks: true, Keeps: true},
	}
}

// OwnUpdates moves fields from a manager's Update entry to its Apply entry, so that its applies do not conflict with
// its own updates.
func OwnUpdates(manager string, found conflicts.Conflicts) (out []Suggestion) {
	var entries []managedfields.Key
	fields := map[managedfields.Key][]fieldpath.Path{}
	for _, c := range found {
		key := managedfields.Key{Manager: manager, Operation: c.Owner.Operation, Subresource: c.Owner.Subresource}
		isUpdate := c.Owner.Operation == metav1.ManagedFieldsOperationUpdate && key.Subresource != "status"
		if c.Owner.Manager == manager && isUpdate { // an apply to the main resource can't own fields of the status
			if fields[key] == nil {
				entries = append(entries, key)
			}
			fields[key] = append(fields[key], c.Path)
		}
	}
	for _, from := range entries {
		moved, how := fields[from], "an earlier update"
		if from.Subresource != "" {
			how += " through " + from.Subresource
		}
		out = append(out, Suggestion{
			Why: fmt.Sprintf("to let the applies of %[1]q own %[2]s, which %[3]s of %[1]q owns", manager, list(moved), how),
			Action: Move{Move: ownership.Transfer{
				Fields: fieldpath.NewSet(moved...), From: from, To: managedfields.Key{Manager: manager},
			}},
			Promise: Promise{Unblocks: len(moved) == len(found), Keeps: true, Moves: moved},
		})
	}
	return out
}

// WaysOut returns the ways out of conflicts.
func WaysOut(found conflicts.Conflicts) []Suggestion {
	var fields []fieldpath.Path
	values, share := "your values are set", "you and they own the fields"
	absent := 0
	for _, c := range found {
		fields = append(fields, c.Path)
		if c.Live == nil && !c.LiveNull {
			absent++
		}
	}
	if !slices.ContainsFunc(found, func(c conflicts.Conflict) bool { return !c.Equal }) {
		values = "no value changes"
	}
	if absent > 0 {
		share = "you and they own the fields that exist; leave out the absent ones"
	}
	out := []Suggestion{
		{
			Why: force(values), Action: Resolve{Decision: conflicts.Force},
			Promise: Promise{Unblocks: true, Moves: fields},
		},
		{
			Why:    "leave the fields out of your manifest: their values and owners stay",
			Action: Resolve{Decision: conflicts.GiveUp}, Promise: Promise{Unblocks: true, Keeps: true},
		},
		{
			Why:    "put the owners' values into your manifest: " + share,
			Action: Resolve{Decision: conflicts.Share}, Promise: Promise{Unblocks: true, Keeps: true},
		},
	}
	if absent == len(found) {
		return out[:2] // there is nothing to share
	}
	return out
}

func force(values string) string {
	return "apply again with force: " + values + ", and only you own the fields"
}

// Refused replaces a way out of conflicts that the server refuses. The result promises nothing.
func Refused(reason string) Suggestion { return Suggestion{Why: "the server refuses it: " + reason} }

// Unavailable is a way out of conflicts that does not exist, with the reason.
func Unavailable(reason error) Suggestion {
	return Suggestion{Why: fmt.Sprintf("not possible: %v", reason)}
}

// WithChanges returns s with the remark that the server then also changes the given fields, which other managers own.
// The result no longer promises to keep the values of other managers.
func WithChanges(s Suggestion, fields []fieldpath.Path) Suggestion {
	if len(fields) > 0 {
		s.Why += "; the server then also changes " + list(fields) + " of other managers"
		s.Promise.Keeps = false
	}
	return s
}

// Overruled returns s, the forced apply of WaysOut, with the reason that the server sets other values than the apply.
// set has the fields with the server's values, as text. isAll is true if the server sets none of the applied values.
func Overruled(s Suggestion, set []string, isAll bool) Suggestion {
	instead := fmt.Sprintf("the server sets %s, whatever you apply", strings.Join(set, ", "))
	if !isAll {
		instead = "your values are set, but " + instead
	}
	if others := ", but others still own "; strings.Contains(s.Why, others) { // see Unforced
		instead += s.Why[strings.Index(s.Why, others):]
		s.Why = "apply again: " + instead
		return s
	}
	s.Why = force(instead)
	return s
}

// Unforced returns s, the forced apply of WaysOut, with the remark that the server sets the given fields without force,
// because it does not check who owns them. Their owners do not change.
func Unforced(s Suggestion, fields []fieldpath.Path) Suggestion {
	isUnforced := func(path fieldpath.Path) bool { return slices.ContainsFunc(fields, path.Equal) }
	moves := slices.DeleteFunc(slices.Clone(s.Promise.Moves), isUnforced)
	switch {
	case len(fields) == 0:
		return s
	case len(moves) == 0:
		s.Why = "apply again, even without force: your values are set, but others still own " + list(fields)
	default:
		s.Why += ", but others still own " + list(fields)
	}
	s.Promise.Moves = moves
	return s
}

// WithLoss returns s, which gives up the given fields, with the remark that the manager then no longer owns them.
func WithLoss(s Suggestion, fields []fieldpath.Path) Suggestion {
	if len(fields) > 0 {
		s.Why += ", but you no longer own " + list(fields)
	}
	return s
}

// WithForms returns s, which shares the given fields, with the remark that their owners may have written the live
// values in another form.
func WithForms(s Suggestion, fields []fieldpath.Path) Suggestion {
	if len(fields) > 0 {
		s.Why += "; the owners' next applies conflict if their manifests write " + list(fields) +
			" in another form, as in 1000m for 1, or without defaults"
	}
	return s
}

// WithMigration returns s, which gives up the given fields, with a remark about kubectl: its server-side apply then
// takes these fields over from client-side apply, and removes them, because the manifest lacks them.
func WithMigration(s Suggestion, fields []fieldpath.Path) Suggestion {
	if len(fields) > 0 {
		s.Why += ", except " + list(fields) + ": kubectl's server-side apply then takes over and removes what kubectl " +
			"apply set"
		s.Promise.Keeps = false
	}
	return s
}

// Leftover has fields that an updater still owns although the intent of Manager lacks them.
type Leftover struct {
	Objects
	Manager string
	Updater managedfields.Key
	// IsAnnotated is true if the updater owns the annotation of client-side apply and the annotation has the fields.
	IsAnnotated bool
	// Move is the move after which the next apply of Manager removes the fields. If it is nil, an Upgrade does the same:
	// if IsAnnotated is true, it moves the fields in the annotation; otherwise, it moves all fields that the updater owns.
	Move ownership.Move
	// IsRefused is true if the server refuses the move, or the apply after it.
	IsRefused bool
	Fields    *fieldpath.Set
	// Inside is the number of Fields in list items and maps that only Manager owns, so that an apply without the item or
	// map removes them.
	Inside int
}

// LetGo lets the next apply of a manager remove leftovers. promise.Removes includes leaves that the next apply would
// remove anyway. If the server refuses this, the suggestion only names the fields.
func LetGo(l Leftover, promise Promise) Suggestion {
	names := texts(l.Fields)
	why := fmt.Sprintf("%s still owns %s that the manifest lacks and no apply of %q removes", Owner(l.Updater),
		printable.Counted(len(names), "field", "fields"), l.Manager)
	if l.Inside == len(names) {
		why += ", except with the list item or map around them"
	}
	why += ": " + strings.Join(names[:min(len(names), MaxNamed)], " ")
	if more := len(names) - MaxNamed; more > 0 {
		why += fmt.Sprintf(" and %d more", more)
	}
	if l.Inside > 0 && l.Inside < len(names) {
		why += fmt.Sprintf("; %d of them go with the list item or map around them", l.Inside)
	}
	s := Suggestion{}
	for path := range l.Fields.All() {
		s.Fields = append(s.Fields, slices.Clone(path))
	}
	if l.IsRefused {
		s.Why = why + "; the server rejects their removal"
		return s
	}
	switch {
	case l.Move != nil:
		s.Action = Move{l.Objects, l.Move}
	case l.IsAnnotated:
		s.Action = Upgrade{l.Objects, l.Manager, ""}
	default:
		s.Action = Upgrade{l.Objects, l.Manager, l.Updater.Manager}
	}
	if promise.Unblocks {
		why += "; without a conflict, because the fields in conflict move too"
	}
	promise.Keeps, promise.Done = true, true
	s.Why, s.Promise = why, promise
	return s
}

// TakeOver migrates an object to server-side apply. A server-side apply of kubectl takes over the fields of client-side
// apply from an updater, and so makes more changes than an apply of another program. After the migration, both make the
// same changes.
func TakeOver(o Objects, manager, updater string, fields []fieldpath.Path) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("this apply does not change %s, which kubectl apply set and the manifest lacks; only kubectl's "+
			"server-side apply does, unless the fields move first", list(fields)),
		Action:  Upgrade{o, manager, updater},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// TakeIn prints a drifting field, so that it can be added to the manifest.
func TakeIn(o Objects, field fieldpath.Path, owner managedfields.Key) Suggestion {
	return Suggestion{
		Why:     "add the field to the manifest: this prints it",
		Action:  Extract{o, owner, []fieldpath.Path{field}},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// ExtractAt prints the fields of an entry. The kind in o names the entry's version; the action reads the object at this
// version.
func ExtractAt(o Objects, entry managedfields.Key, version string) Suggestion {
	return Suggestion{
		Why:    fmt.Sprintf("to extract them, read the object at %s", version),
		Action: Extract{o, entry, nil}, Promise: Promise{Keeps: true, Done: true},
	}
}

// ReadAt repeats a command. The kind in o names the version of the entries; the command then reads the object at this
// version.
func ReadAt(o Objects, version string) Suggestion {
	return Suggestion{
		Why: "read the object at " + version, Action: Repeat{o}, Promise: Promise{Keeps: true, Done: true},
	}
}

// OneVersion lets a manager apply at the version of client-side apply. Its entry and the fields of client-side apply
// then have the same version, so that they can be compared.
func OneVersion(manager, version string) Suggestion {
	return Suggestion{Why: fmt.Sprintf("first apply the manifest of %q at %s", manager, version)}
}

// Permit adds a permission for the owner of a drifting field to own the field in all objects of the kind.
func Permit(kind schema.GroupKind, field string, owner managedfields.Key) Suggestion {
	return Suggestion{
		Why:     fmt.Sprintf("permit it: add a permission for %q to the policy", owner.Manager),
		Action:  AddPermission{owner, kind, field},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// LetRemove lets the next apply of a manager remove a drifting field. isOnly is true if owner is the field's only
// owner.
func LetRemove(o Objects, field fieldpath.Path, owner managedfields.Key, applier string, isOnly bool) Suggestion {
	fields := []fieldpath.Path{field}
	why := fmt.Sprintf("remove it: move it to %q; the next apply removes it if the manifest lacks it", applier)
	if !isOnly {
		why += " and no other manager owns it; this moves it from " + strconv.Quote(owner.Manager)
	}
	return Suggestion{
		Why: why,
		Action: Move{o, ownership.Transfer{
			Fields: fieldpath.NewSet(fields...), From: owner, To: managedfields.Key{Manager: applier},
		}},
		Promise: Promise{Moves: fields, Removes: fields, Done: isOnly},
	}
}

// Untried returns s, a move before an apply, with the remark that this apply could not be tried. The result promises
// nothing about the apply.
func Untried(s Suggestion) Suggestion {
	s.Why += "; this was not tried: the server may refuse that apply"
	s.Promise = Promise{Moves: s.Promise.Moves}
	return s
}

// ClientSide migrates objects of some kinds from client-side apply to server-side apply by a manager.
func ClientSide(kinds []string, manager string, objects int) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("%s under client-side apply: only kubectl's applies remove its fields",
			printable.Counted(objects, "object is", "objects are")),
		Action:  Upgrade{Objects: Objects{Kinds: kinds}, Manager: manager},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// NotClientSide hands over fields that client-side apply set: first, the fields of client-side apply move to the Apply
// entry of a manager; then this manager hands the fields over.
func NotClientSide(o Objects, fields []fieldpath.Path, manager string) []Suggestion {
	return []Suggestion{
		{
			Why: fmt.Sprintf("kubectl apply removes %s once its manifest lacks it, so first move its fields to %q",
				list(fields), manager),
			Action: Upgrade{Objects: o, Manager: manager}, Promise: Promise{Keeps: true, Done: true},
		},
		{
			Why:    fmt.Sprintf("then %q hands over", manager),
			Action: HandOver{o, manager, fields}, Promise: Promise{Keeps: true, Moves: fields},
		},
	}
}

// Twofold moves fields from a manager's Update entries to its Apply entries.
func Twofold(o Objects, manager string, fields int) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("%q both updated and applies: none of its applies removes %s", manager,
			printable.Counted(fields, "field", "fields")),
		Action:  Upgrade{Objects: o, Manager: manager, From: manager},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// HandedItems drops the Apply entry of the temporary manager of a handover. The entry owns items around the handed
// fields.
func HandedItems(o Objects, temporary string, items []fieldpath.Path) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("%q now also owns %s, which no apply of another manager can then remove; to allow it, "+
			"drop the entry", temporary, list(items)),
		Action: Drop{o, ownership.Drop{From: managedfields.Key{
			Manager: temporary, Operation: metav1.ManagedFieldsOperationApply,
		}}},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// GoneVersion drops a manager's Update entries of a version that is no longer served.
func GoneVersion(kind, manager, version string, entries int) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("%s of %q at %s, which is not served any more", printable.Counted(entries, "entry", "entries"),
			manager, version),
		Action: Drop{Objects{Kinds: []string{kind}}, ownership.Drop{From: managedfields.Key{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version,
		}}},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// UnknownVersion drops an entry whose version is not served or not known. Instead of a drop, the manager of an Apply
// entry can apply at another version, which replaces the entry. An update at another version does not replace an Update
// entry; it makes a new entry.
func UnknownVersion(o Objects, entry managedfields.Key) Suggestion {
	why := "drop the entry"
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		why = fmt.Sprintf("let %q apply at a version that is served, or drop the entry", entry.Manager)
	}
	return Suggestion{
		Why: why, Action: Drop{o, ownership.Drop{From: entry}}, Promise: Promise{Keeps: true, Done: true},
	}
}

// Undecodable drops the entries that can't be decoded; err says which entries they are.
func Undecodable(o Objects, err error) Suggestion {
	return Suggestion{
		Why: fmt.Sprintf("%v; while such an entry exists, kube-apiserver refuses applies, and removes all managed "+
			"fields with any update", err),
		Action: Drop{o, ownership.Drop{Undecodable: true}}, Promise: Promise{Keeps: true, Done: true},
	}
}

// Forgotten drops the entries into which servers have merged old updates.
func Forgotten(kinds []string, objects int) Suggestion {
	return drop(kinds, managedfields.Ancient, printable.Counted(objects, "object keeps", "objects keep")+
		" the fields of managers whose names are lost")
}

// Silent drops the entries of a manager that may no longer exist.
func Silent(kinds []string, manager string, last time.Time) Suggestion {
	return drop(kinds, manager, fmt.Sprintf("%q has not changed anything since %s: is it gone?", manager,
		last.Format(time.DateOnly)))
}

func drop(kinds []string, manager, why string) Suggestion {
	return Suggestion{
		Why:     why,
		Action:  Drop{Objects{Kinds: kinds}, ownership.Drop{From: managedfields.Key{Manager: manager}}},
		Promise: Promise{Keeps: true, Done: true},
	}
}

// Inspect shows the owners of an object's fields.
func Inspect(o Objects, why string) Suggestion {
	return Suggestion{Why: why, Action: Look{o}, Promise: Promise{Keeps: true}}
}

// Decide returns the ways to end a fight over a field: in each way, one manager stops writing the field.
func Decide(o Objects, field fieldpath.Path, sides []managedfields.Key) (out []Suggestion) {
	var updaters []Suggestion
	for _, side := range sides {
		if side.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, Suggestion{
				Why: fmt.Sprintf("%[1]s gives the field up: remove it from the manifest of %[1]s; the value stays",
					side.Manager),
				Action:  HandOver{o, side.Manager, []fieldpath.Path{field}},
				Promise: Promise{Keeps: true, Moves: []fieldpath.Path{field}},
			})
			continue
		}
		updaters = append(updaters, Suggestion{
			Why: fmt.Sprintf("%s stops writing the field: change what makes it write", side.Manager),
		})
	}
	return append(out, updaters...)
}

// ExtendSet lets kubectl extend the parent of an ApplySet if the parent does not name the kind or namespace of some
// objects. way says how to run kubectl. If namespace is not "", the kubeconfig must have it, because kubectl looks for
// the parent there.
func ExtendSet(objects []string, way, namespace string) Suggestion {
	if namespace != "" {
		way = fmt.Sprintf("with %s as the namespace of the kubeconfig, %s", namespace, way)
	}
	return Suggestion{Why: fmt.Sprintf("the ApplySet's parent does not name the kind or namespace of %s, and only "+
		"kubectl extends it; %s", strings.Join(objects, ", "), way)}
}

// Separate asks the user to find the two writers that use one manager name and alternate between two values.
func Separate(manager string) Suggestion {
	return Suggestion{Why: fmt.Sprintf("find the two writers that use the name %s: two replicas with different "+
		"configurations, or two manifests that have this object; with a manager name for each, they would conflict", manager)}
}

// Owner returns an entry's name for use in sentences: manager, operation and subresource.
func Owner(k managedfields.Key) string { return k.String() }

// target returns the key for the To of a move to an entry.
func target(owner managedfields.Key) managedfields.Key {
	if owner.Operation == metav1.ManagedFieldsOperationApply && owner.Subresource == "" {
		return managedfields.Key{Manager: owner.Manager}
	}
	return owner
}

// MaxNamed is the maximal number of leftovers that the Why of a suggestion names.
const MaxNamed = 10

func texts(fields *fieldpath.Set) (out []string) {
	for path := range fields.All() {
		out = append(out, path.Short())
	}
	return out
}

// list returns the paths of fields and list items, or their numbers if there are more than three.
func list(fields []fieldpath.Path) string {
	if len(fields) > 3 {
		items := 0
		for _, path := range fields {
			if !path[len(path)-1].IsField() {
				items++
			}
		}
		var counts []string
		if n := len(fields) - items; n > 0 {
			counts = append(counts, printable.Counted(n, "field", "fields"))
		}
		if items > 0 {
			counts = append(counts, printable.Counted(items, "list item", "list items"))
		}
		return strings.Join(counts, " and ")
	}
	return strings.Join(texts(fieldpath.NewSet(fields...)), ", ")
}
