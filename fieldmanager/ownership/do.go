package ownership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func (t Transfer) do(s *state) error {
	return s.take(t.From, chosen{t.Fields, t.All}, func(e managedfields.Entry, taken *fieldpath.Set) error {
		to, err := s.target(t.To, e)
		if err != nil || to == e.Key {
			return err
		}
		return s.give(to, e, taken)
	}, func(e managedfields.Entry) bool {
		// An entry that is already the target is skipped.
		to, err := s.target(t.To, e)
		return err == nil && to == e.Key
	})
}

func (r Release) do(s *state) error {
	return s.take(r.From, chosen{r.Fields, r.All}, func(managedfields.Entry, *fieldpath.Set) error { return nil }, nil)
}

func (d Drop) do(s *state) error {
	keys, err := s.from(d.From)
	for _, k := range keys {
		s.entries = s.entries.Without(k)
	}
	return err
}

func (r Rename) do(s *state) error {
	if r.To == r.From.Manager {
		return fmt.Errorf("manager %q can't be renamed to itself", r.To)
	}
	if err := checkName(r.To); err != nil {
		return err
	}
	entries, err := s.readable(r.From)
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := e.Key
		to.Manager = r.To
		s.entries = s.entries.Without(e.Key)
		if err := s.put(to, e, e.Owned()); err != nil {
			return err
		}
		// The same program continues to apply, under the new name.
		if last, ok := s.applied[e.Key]; ok {
			delete(s.applied, e.Key)
			other := s.applied[to]
			owned := last.Owned().Union(other.Owned())
			s.applied[to] = managedfields.NewEntry(to, last.APIVersion, last.Time, owned)
		}
	}
	return nil
}

func (a Adopt) do(s *state) error {
	version := a.APIVersion
	if version == "" {
		version = s.kind.GroupVersion().String()
	}
	to, err := s.target(a.To, managedfields.NewEntry(managedfields.Key{}, version, nil, nil))
	if err != nil {
		return err
	}
	// An existing entry keeps its time, which is that of its manager's last write.
	var date *metav1.Time
	if r := s.entries.Get(to); r != nil {
		version = r.APIVersion
	} else {
		date = &metav1.Time{Time: s.mover.now().UTC().Truncate(time.Second)}
	}
	m, err := s.managerAt(version, to.Subresource)
	if err != nil {
		return err
	}
	there, err := m.Owned(s.ctx, s.bare)
	if err != nil {
		return err
	}
	which := chosen{a.Fields, a.All}
	if err := which.check("can be owned", there); err != nil {
		return err
	}
	if !a.All {
		there = atOrBelow(there, a.Fields)
	}
	if there.Empty() {
		return errors.New("there is nothing to adopt")
	}
	return s.give(to, managedfields.NewEntry(managedfields.Key{}, version, date, nil), there)
}

// take removes fields from the entries of a key, and calls hand with what it removed from each. It skips the entries
// for which skip is true.
func (s *state) take(from managedfields.Key, fields chosen,
	hand func(managedfields.Entry, *fieldpath.Set) error, skip func(managedfields.Entry) bool) error {
	entries, err := s.readable(from)
	if err != nil {
		return err
	}
	var sources []managedfields.Entry
	var sets []*fieldpath.Set
	for _, e := range entries {
		if skip == nil || !skip(e) {
			sources = append(sources, e)
			sets = append(sets, e.Owned())
		}
	}
	if len(sources) == 0 {
		return fmt.Errorf("manager %q can't hand over to itself", from.Manager)
	}
	if err := fields.check(fmt.Sprintf("manager %q owns", from.Manager), sets...); err != nil {
		return err
	}
	for _, e := range sources {
		taken, rest := e.Owned(), (*fieldpath.Set)(nil)
		if !fields.all {
			taken, rest = split(e.Owned(), fields.fields)
		}
		if taken.Empty() {
			continue
		}
		if rest.Empty() {
			s.entries = s.entries.Without(e.Key)
		} else {
			s.entries.Get(e.Key).SetFields(rest)
		}
		if err := hand(e, taken); err != nil {
			return err
		}
	}
	return nil
}

// target returns the key that the fields of entry e move to, if the To of a move is k.
func (s *state) target(k managedfields.Key, e managedfields.Entry) (managedfields.Key, error) {
	if err := checkName(k.Manager); err != nil {
		return k, err
	}
	switch k.Operation {
	case "":
		if k.Subresource == "" {
			k.Subresource = s.appliesThrough(k.Manager, e.Subresource)
		}
		k.Operation, k.APIVersion = managedfields.Apply, ""
	case managedfields.Apply:
		k.APIVersion = ""
	case managedfields.Update:
		if k.APIVersion == "" {
			k.APIVersion = e.APIVersion
		}
		if _, err := schema.ParseGroupVersion(k.APIVersion); err != nil {
			return k, err
		}
	default:
		return k, fmt.Errorf("manager %q: expected Apply or Update, got operation %q", k.Manager, k.Operation)
	}
	return k, nil
}

// appliesThrough returns the subresource through which an applier owns fields of an entry of some subresource. Status
// is owned through status only. Everything else, such as replicas that kubectl scale set, is in an intent for the main
// resource, unless the manager applies through that subresource alone: if it owned them through both, its next apply
// would conflict with itself.
func (s *state) appliesThrough(manager, subresource string) string {
	key := managedfields.KeyOf(manager, managedfields.Apply, "", "")
	if subresource == "status" {
		return subresource
	}
	if s.entries.Get(key) != nil {
		return ""
	}
	if key.Subresource = subresource; s.entries.Get(key) != nil {
		return subresource
	}
	return ""
}

func checkName(manager string) error {
	if manager == "" {
		return errors.New("a manager without a name")
	}
	return managedfields.ValidateManager(manager)
}

// give adds fields of entry e to the entry of a key; for an applier, as the set that an intent would own.
func (s *state) give(to managedfields.Key, e managedfields.Entry, fields *fieldpath.Set) error {
	if to.Operation == managedfields.Apply {
		closed, _, err := s.closed(fields, e.APIVersion, to.Subresource)
		if err != nil {
			return err
		}
		fields = closed
	}
	return s.put(to, e, fields)
}

// put adds fields of e to the entry of a key. A new entry gets e's version and time.
func (s *state) put(to managedfields.Key, e managedfields.Entry, fields *fieldpath.Set) error {
	if fields.Empty() {
		return nil // an updater may own what no intent does, such as an empty list
	}
	version := e.APIVersion
	if to.Operation == managedfields.Update {
		version = to.APIVersion
	}
	into := s.entries.Get(to)
	var owned *fieldpath.Set
	if into != nil {
		var err error
		if owned, err = into.Fields(); err != nil {
			return fmt.Errorf("%w; drop it first", err)
		}
		version = into.APIVersion
	}
	if version != e.APIVersion {
		if err := s.sameAt(fields, e.APIVersion, version, to.Subresource); err != nil {
			return err
		}
	}
	if into == nil {
		s.entries = append(s.entries, managedfields.NewEntry(to, version, e.Time, fields))
		return nil
	}
	if union := owned.Union(fields); !union.Equal(owned) {
		into.SetTime(later(into.Time, e.Time))
		into.SetFields(union)
	}
	return nil
}

// later returns the later of two times; nil is the earliest.
func later(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && a.Before(b) {
		return b
	}
	return a
}

// typeAt returns the type of the object's kind at a version.
func (s *state) typeAt(version string) (*typed.Type, error) {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	return s.mover.types.Type(gv.WithKind(s.kind.Kind))
}

// closed returns the set that an intent with the fields of set would own: with the items and map entries around them,
// and their key fields, and without declared containers that have content. Fields that are no longer in the object
// are kept. intent is the part of the object with these fields.
func (s *state) closed(set *fieldpath.Set,
	version, subresource string) (closed *fieldpath.Set, intent *unstructured.Unstructured, err error) {
	m, err := s.managerAt(version, subresource)
	if err != nil {
		return nil, nil, err
	}
	if intent, err = m.Extract(s.ctx, s.bare, set); err != nil {
		return nil, nil, err
	}
	owned, err := m.Owned(s.ctx, intent)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.typeAt(version)
	if err != nil {
		return nil, nil, err
	}
	there := t.Compare(map[string]any{}, intent.Object).Added
	gone := set.Difference(owned).Difference(there)
	var empty []fieldpath.Path
	// A container that is empty now is in the intent as a whole, although only its content was owned.
	for p := range owned.Leaves().Difference(set).All() {
		if !isKeyField(p) {
			empty = append(empty, slices.Clone(p))
		}
	}
	closed = owned.Difference(fieldpath.NewSet(empty...)).Union(gone)
	return closed, intent, nil
}

// sameAt returns an error if the fields of set are not the same at two versions: if the sets that an intent would own
// differ, or the parts of the object.
func (s *state) sameAt(set *fieldpath.Set, from, to, subresource string) error {
	a, before, err := s.closed(set, from, subresource)
	if err != nil {
		return err
	}
	b, after, err := s.closed(set, to, subresource)
	if err != nil {
		return err
	}
	differ := a.Difference(b).Union(b.Difference(a))
	t, err := s.typeAt(to)
	if err != nil {
		return err
	}
	c := t.Compare(before.Object, after.Object)
	differ = managedfields.Strip(differ.Union(c.Changed()).Union(c.Removed))
	for p := range differ.All() {
		return fmt.Errorf("%s: fields of version %s can't go into an entry of version %s, where they are others", p, from, to)
	}
	return nil
}
