package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Options configure a report. The zero values of all fields except Now are the defaults of the command tenure report.
type Options struct {
	// Now is the time of the report.
	Now time.Time
	// Silent is the period without writes after which a manager is silent; 90 days if it is 0.
	Silent time.Duration
	// IsServed reports whether a version of a kind is served; nil if that is not known.
	IsServed func(schema.GroupVersionKind) bool
	// Applier is the manager that would apply client-side objects; kubectl if it is empty.
	Applier string
}

const (
	maxExamples = 25 // per finding
	maxKinds    = 20 // per manager
	maxReasons  = 10
)

// Object is an object to add to a report.
type Object struct {
	// Tree is the object. It is not changed and not kept.
	Tree map[string]any
	// Types has the type of the object's kind; nil if it is not known. Converter converts between the kind's
	// versions; nil if there is none.
	Types     fieldmanager.Types
	Converter fieldmanager.Converter
	// Defaulter sets the defaults that a server sets in code; nil if there are none. Unowned fields that have their
	// default are not counted, because nobody set them.
	Defaulter func(runtime.Object) `json:"-"`
}

// Report summarizes objects. It is not safe for concurrent use.
type Report struct {
	options Options

	total    Summary
	managers map[string]*managerTally
	kinds    map[string]*kindTally
	gone     map[GoneVersion]Totals // in the keys, Entries and Fields are 0
	ancient  map[string]bool        // kinds
	// undecodable has the numbers of objects with entries that a drop removes because they can't be decoded, by kind.
	undecodable map[string]int
	examples    map[Finding][]scored
}

type managerTally struct {
	Manager
	operations, kinds map[string]bool
	timeless          bool               // an entry has no time, so it may have been written just now
	movable           map[string]movable // by kind
	mixed             map[string]bool    // kinds in which an upgrade would also change objects without movable fields
}

// movable counts a manager's Twofold fields (see [Summary]) in objects of one kind. It counts only fields that an
// upgrade is certain to move, because the manager's Update and Apply entries have the same version.
type movable struct {
	objects, fields int
	first           scored // the first object by name, with its number of fields
}

// addUpdates adds the number of movable fields in an object in which the manager has an Update entry.
func (t *managerTally) addUpdates(e *Example, fields int) {
	if fields == 0 {
		t.mixed[e.Kind] = true
		return
	}
	m := t.movable[e.Kind]
	m.objects, m.fields = m.objects+1, m.fields+fields
	if m.first.Example == nil || e.compare(m.first.Example) < 0 {
		first := *e // a copy, because a pointer to e would keep the whole look in memory
		m.first = scored{fields, &first}
	}
	t.movable[e.Kind] = m
}

// toUpgrade selects objects with movable fields: all objects of some kinds or, if that is not possible, one object. It
// does not select a kind in which an upgrade would also change objects without movable fields. It also returns the
// number of movable fields.
func (t *managerTally) toUpgrade() (o advice.Objects, fields int) {
	objects, first := 0, scored{}
	for kind, m := range t.movable {
		if first.Example == nil || m.first.Example.compare(first.Example) < 0 {
			first = m.first
		}
		if !t.mixed[kind] {
			o.Kinds, objects, fields = append(o.Kinds, kind), objects+m.objects, fields+m.fields
		}
	}
	if objects > 1 {
		slices.Sort(o.Kinds)
		return o, fields
	}
	return first.object(), first.score
}

type kindTally struct {
	Kind
	managers map[string]bool
}

// New returns an empty report.
func New(o Options) *Report {
	o.Silent = cmp.Or(o.Silent, 90*24*time.Hour)
	o.Applier = cmp.Or(o.Applier, "kubectl")
	r := &Report{
		options: o, managers: map[string]*managerTally{}, kinds: map[string]*kindTally{},
		gone: map[GoneVersion]Totals{}, ancient: map[string]bool{}, undecodable: map[string]int{},
		examples: map[Finding][]scored{},
	}
	r.total.Now = o.Now
	return r
}

// jsonSize returns the length of a value as compact JSON, as servers write it; 0 if the value can't be encoded.
func jsonSize(v any) int {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // writes nothing on errors
	return len(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

// Add adds an object. Entries that can't be read are left out, and the object is counted as unreadable. ctx is passed
// to o.Converter.
func (r *Report) Add(ctx context.Context, o Object) {
	u := &unstructured.Unstructured{Object: o.Tree}
	gvk := u.GroupVersionKind()
	l := &look{report: r, object: o, u: u, owners: map[string]*fieldpath.Set{}}
	l.example = Example{
		Kind: strings.ToLower(gvk.GroupKind().String()), Namespace: u.GetNamespace(), Name: u.GetName(),
		version: gvk.Version, Size: jsonSize(o.Tree),
	}
	if l.kind = r.kinds[l.example.Kind]; l.kind == nil {
		l.kind = &kindTally{Kind: Kind{Name: l.example.Kind}, managers: map[string]bool{}}
		r.kinds[l.example.Kind] = l.kind
	}
	l.readEntries()
	l.compareOwners()
	l.migrate(ctx)
	l.sum()
}

// Summary returns the summary of the objects added so far.
func (r *Report) Summary() *Summary {
	s := r.total
	s.ClientSide.Why = slices.Sorted(slices.Values(s.ClientSide.Why))
	s.Managers, s.Kinds, s.Gone = []Manager{}, []Kind{}, []GoneVersion{}
	for _, t := range r.managers {
		m := t.Manager
		m.Operations = slices.Sorted(maps.Keys(t.operations))
		m.Kinds = slices.Sorted(maps.Keys(t.kinds))
		m.Silent = m.LastWrite != nil && !t.timeless && r.options.Now.Sub(*m.LastWrite) > r.options.Silent
		s.Managers = append(s.Managers, m)
	}
	slices.SortFunc(s.Managers, func(a, b Manager) int {
		return cmp.Or(b.ManagedFields-a.ManagedFields, cmp.Compare(a.Name, b.Name))
	})
	for _, t := range r.kinds {
		k := t.Kind
		k.Managers = len(t.managers)
		s.Kinds = append(s.Kinds, k)
	}
	slices.SortFunc(s.Kinds, func(a, b Kind) int {
		return cmp.Or(b.ManagedFields-a.ManagedFields, b.Size-a.Size, cmp.Compare(a.Name, b.Name))
	})
	for g, totals := range r.gone {
		g.Entries, g.Fields = totals.Entries, totals.Fields
		s.Gone = append(s.Gone, g)
	}
	slices.SortFunc(s.Gone, func(a, b GoneVersion) int {
		return cmp.Or(b.Fields-a.Fields, cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation))
	})
	s.Examples = r.worst()
	s.Suggestions = r.suggestions(&s)
	return &s
}

// scored is an example with its score. Objects with higher scores are worse.
type scored struct {
	score int
	*Example
}

// compare orders the highest score first.
func (s scored) compare(o scored) int {
	return cmp.Or(o.score-s.score, s.Example.compare(o.Example))
}

// object selects the object of an example.
func (e *Example) object() advice.Objects {
	return advice.Objects{Kinds: []string{e.Kind}, Namespace: e.Namespace, Name: e.Name}
}

func (e *Example) compare(o *Example) int {
	return cmp.Or(cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Namespace, o.Namespace), cmp.Compare(e.Name, o.Name),
		cmp.Compare(e.version, o.version))
}

// keep keeps an object as an example of a finding if it is one of the worst. A score of 0 means that the object does
// not have the finding.
func (r *Report) keep(f Finding, score int, e *Example) {
	list, s := r.examples[f], scored{score, e}
	if score <= 0 || len(list) == maxExamples && s.compare(list[maxExamples-1]) >= 0 {
		return
	}
	index, _ := slices.BinarySearchFunc(list, s, scored.compare)
	list = slices.Insert(list, index, s)
	r.examples[f] = list[:min(len(list), maxExamples)]
}

// worst returns the examples of all findings, each object once, sorted by the size of managed fields, the largest
// first.
func (r *Report) worst() []Example {
	indexes := map[*Example]int{}
	out := []Example{}
	for _, f := range findings {
		for _, s := range r.examples[f] {
			i, known := indexes[s.Example]
			if !known {
				i = len(out)
				indexes[s.Example], out = i, append(out, *s.Example)
			}
			out[i].Findings = append(out[i].Findings, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Example) int {
		return cmp.Or(b.ManagedFields-a.ManagedFields, a.compare(&b))
	})
	return out
}
