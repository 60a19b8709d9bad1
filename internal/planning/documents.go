package planning

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Options say how to plan documents.
type Options struct {
	// Manager and Subresource are the manager and the subresource of the applies.
	Manager, Subresource string
	// Force plans applies with force.
	Force bool
	// Plain compares values literally, as for custom resources without defaults.
	Plain bool
	// Offline sends no dry runs.
	Offline bool
	// Mark adds to an intent the labels and annotations that the manager's tool adds before it applies; nil if it adds
	// none.
	Mark func(*Desired) error
	// MoveUpdates plans each apply to the object that results when the fields in the manager's Update entries have moved
	// to its Apply entry.
	MoveUpdates bool
	// Policy returns the policy for an object's conflicts; nil if there is no policy. The function itself may be nil.
	Policy func(conflicts.Conflicts) (*policy.Policy, error)
	// Drift also finds drift in the live objects, using the policy that Policy returns for an empty list of conflicts.
	Drift bool
	// Tries is the maximum number of suggested actions that are tried with dry runs.
	Tries int
	// Concurrency is the number of concurrent requests, at least 1.
	Concurrency int
	Now         func() time.Time
}

// Document is the plan of a document.
type Document struct {
	Planned
	// Err is the reason why there is no plan. Desired then has what is known about the object.
	Err error
	// Twice is the source of an earlier document for the same object; empty if there is none.
	Twice string
	// Awaits is an object that another document creates, such as the Role of a RoleBinding; nil if there is none. The
	// server rejects the apply as long as this object does not exist, so the plan was made without the server. See
	// [place.Desired.Awaits].
	Awaits *Target
	// Unasked is the reason why no dry run was sent for the apply.
	Unasked Unasked
	// Races is true if each plan became out of date, because other clients kept changing the object. The plan may then
	// contain their changes.
	Races bool
}

// Unasked is a reason for sending no dry run.
type Unasked int

const (
	_           Unasked = iota // a dry run was sent, or none was needed
	IsOffline                  // Options.Offline is set, or the objects are in files
	IsNew                      // the input creates the kind or the namespace, or changes the kind's definition
	HasMoved                   // the plan is for an object that the server does not have yet, see [Planned].Moved
	IsForbidden                // the user may not apply the object
)

// Documents plans documents. It returns a plan for each document. The result untried is the number of suggested actions
// that were not tried because of Options.Tries. Documents may use kinds and namespaces that other documents define.
func Documents(ctx context.Context, p place.Place, docs []document.Document, o Options) (all []Document, untried int) {
	untried = Each(ctx, p, docs, o, func(d *Document) { all = append(all, *d) })
	return all, untried
}

// batch is the number of documents that are planned together.
const batch = 256

// Each plans documents as Documents does, one batch after the other, and calls see with each plan. It does not keep the
// plans. It keeps live objects in encoded form, and only until they are planned. The documents may be packed.
func Each(
	ctx context.Context, p place.Place, docs []document.Document, o Options, see func(*Document),
) (untried int) {
	if !p.InOrder() {
		o.learn(ctx, p, docs)
	}
	intents := make([]map[string]any, 0, len(docs))
	for i := range docs {
		if docs[i].Err == nil {
			intents = append(intents, docs[i].Tree)
		}
	}
	p.Prefetch(ctx, intents, o.Concurrency)
	budget := &Budget{Left: o.Tries}
	asking := Asking{Place: p, Now: o.Now}
	if !o.Offline {
		asking.Budget = budget
	}
	sources := map[place.Key]string{}
	named := sync.OnceValue(func() map[place.Named][]document.Document { return byName(docs) })
	for part := range slices.Chunk(docs, batch) {
		all := o.read(ctx, p, part, sources)
		o.planAll(ctx, p, all)
		for i := range all {
			if d := &all[i]; d.Plan != nil && (apierrors.IsForbidden(d.Err) || apierrors.IsNotFound(d.Err)) {
				if d.Awaits = d.Desired.Awaits(ctx, p, named, d.Err); d.Awaits != nil {
					d.Err = nil
				}
			}
			o.finish(ctx, asking, &all[i])
			o.planAgain(ctx, asking, &all[i])
			see(&all[i])
		}
	}
	return budget.Unasked
}

// byName returns documents by their kinds and names.
func byName(docs []document.Document) map[place.Named][]document.Document {
	out := map[place.Named][]document.Document{}
	for _, doc := range docs {
		if gvk, err := document.GVKOf(doc.Tree); err == nil {
			key := place.Named{Kind: gvk.GroupKind(), Name: document.NameOf(doc.Tree)}
			out[key] = append(out[key], doc)
		}
	}
	return out
}

// planAll plans documents, and sends dry runs of their applies.
func (o Options) planAll(ctx context.Context, p place.Place, all []Document) {
	// The loop does not end when ctx is done, so that each document gets a plan or an error.
	workqueue.ParallelizeUntil(context.Background(), runtime.GOMAXPROCS(0), len(all), func(i int) {
		d := &all[i]
		if d.Err == nil {
			d.Err = o.plan(ctx, &d.Planned)
		}
		if d.Target != nil {
			d.Undecodable = Undecodable(d.Target, d.Desired.Object)
		}
	})
	o.ask(ctx, p, all)
}

// planAgain plans a document again if its object has changed between the read and a dry run. In the old plan, changes
// that other clients made would look like changes that the server made.
func (o Options) planAgain(ctx context.Context, asking Asking, d *Document) {
	for n := 1; d.isStale; n++ {
		next := Document{Twice: d.Twice}
		next.Desired, next.Err = o.Read(ctx, asking.Place, document.Document{Source: d.Where, Tree: d.Given})
		if next.Err == nil && document.TextAt(next.Desired.Object, "resourceVersion") ==
			document.TextAt(d.Desired.Object, "resourceVersion") {
			return // the object has not changed
		}
		if n == place.Attempts {
			d.Races = true
			return
		}
		all := []Document{next}
		o.planAll(ctx, asking.Place, all)
		o.finish(ctx, asking, &all[0])
		*d = all[0]
	}
}

// read reads the intents of documents and their live objects. The map sources has the source of the last document for
// each object.
func (o Options) read(
	ctx context.Context, p place.Place, docs []document.Document, sources map[place.Key]string,
) []Document {
	all := make([]Document, len(docs))
	for i, doc := range docs {
		d := &all[i]
		if d.Desired, d.Err = o.Read(ctx, p, doc.Unpacked()); d.Err != nil {
			continue
		}
		key := place.KeyOf(d.Target)
		d.Twice = sources[key]
		sources[key] = d.Where
	}
	return all
}

// learn adds the kinds and namespaces that documents define, so that all documents can use them, even documents before
// the definition. It ignores errors: the plan of the defining document reports them.
func (o Options) learn(ctx context.Context, p place.Place, docs []document.Document) {
	for _, kind := range []schema.GroupKind{place.DefinitionKind, place.NamespaceKind} {
		for _, doc := range docs {
			if gvk, err := document.GVKOf(doc.Tree); doc.Err == nil && err == nil && gvk.GroupKind() == kind {
				_, _ = o.Read(ctx, p, doc.Unpacked())
			}
		}
	}
}

// Read reads the intent of a document and its live object. Even with an error, the result has the source of the
// document, and the target if it is known.
func (o Options) Read(ctx context.Context, p place.Place, doc document.Document) (*Desired, error) {
	w := &Desired{Where: doc.Source, Given: doc.Tree, Manager: o.Manager}
	if doc.Err != nil {
		return w, doc.Err
	}
	if err := w.Read(ctx, p); err != nil {
		return w, err
	}
	if o.Mark != nil && o.Subresource == "" {
		if err := o.Mark(w); err != nil {
			return w, err
		}
	}
	if o.Subresource == place.Scale {
		scale, desired, err := w.Target.Scale(w.Tree)
		if err != nil {
			return w, err
		}
		w.Target, w.Tree = scale, desired
	}
	var err error
	w.Fields, err = w.Target.Manager(o.Now, o.Subresource)
	if err == nil && w.Kind.GroupKind() == place.DefinitionKind && o.Subresource == "" {
		err = o.define(ctx, p, w)
	}
	return w, err
}

// define adds the kind that an intent defines, unless the intent has conflicts.
func (o Options) define(ctx context.Context, p place.Place, w *Desired) error {
	options := w.PlanOptions(o.Plain)
	options.Force = o.Force
	plan, err := plans.New(ctx, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), options)
	if err != nil || plan.Outcome == plans.Conflict {
		return err
	}
	d, err := place.Define(place.Unwrap(plan.Object))
	if err != nil {
		return err
	}
	for change := range plan.Changes() {
		d.Changes = d.Changes || w.Object != nil && change.Path[0] == fieldpath.FieldElement("spec")
	}
	p.Define(d)
	return nil
}

// plan plans an intent without the server.
func (o Options) plan(ctx context.Context, p *Planned) (err error) {
	if o.MoveUpdates {
		if err := p.MoveToApply(ctx); err != nil {
			return err
		}
	}
	p.Options = p.PlanOptions(o.Plain)
	p.Options.Force = o.Force
	p.Plan, err = plans.New(ctx, p.Fields, place.Wrap(p.Desired.Object), place.Wrap(p.Tree), p.Options)
	if err == nil && p.Outcome == plans.Unchanged {
		err = p.CheckDecodes()
	}
	return err
}

// ask sends dry runs of the applies. It sends none for an apply that is planned as unchanged, if all entries of the
// object can be decoded. The server's result replaces the plan or its error.
func (o Options) ask(ctx context.Context, p place.Place, all []Document) {
	var asked []*Document
	for i := range all {
		d := &all[i]
		if d.Fields == nil || d.Err == nil && d.Outcome == plans.Unchanged && d.Undecodable == nil {
			continue
		}
		switch isServed, canDryRun := d.IsServed(); {
		case d.Moved:
			d.Unasked = HasMoved
		case isServed && canDryRun && !o.Offline:
			asked = append(asked, d)
		case d.Err == nil && (o.Offline || !isServed):
			d.Unasked = IsOffline
		case d.Err == nil:
			d.Unasked = IsNew
		}
	}
	workqueue.ParallelizeUntil(context.Background(), o.Concurrency, len(asked), func(i int) {
		d := asked[i]
		isAllowed, refused := d.Ask(ctx, p, o.Subresource)
		if d.Err = refused; !isAllowed {
			d.Unasked = IsForbidden
		}
	})
}

// finish decides the conflicts of a plan, and adds suggestions.
func (o Options) finish(ctx context.Context, asking Asking, d *Document) {
	if budget := asking.Budget; budget != nil { // otherwise, no dry runs are sent
		untried := budget.Unasked
		defer func() {
			d.Untried = budget.Unasked > untried
			for i := range d.Leftovers {
				d.Leftovers[i].Promise.Unblocks = d.Leftovers[i].Promise.Unblocks && !d.Untried
			}
		}()
	}
	var rules *policy.Policy
	if d.Err == nil && o.Policy != nil && d.Plan != nil {
		rules, d.Err = o.Policy(d.Found())
	}
	if d.Err == nil {
		d.Err = d.Decide(ctx, asking.Place, rules, o.Subresource)
	}
	// If d.Plan.Object is nil, only the server could plan this apply. Then an apply after a move can't be planned
	// either.
	if d.Err == nil && d.Desired.Object != nil && o.Subresource == "" && d.Plan.Object != nil {
		d.Err = d.FindLeftovers(ctx, asking)
	}
	if d.Err == nil && o.Drift {
		d.FindDrift(ctx, asking, rules)
	}
	switch {
	case d.Err == nil && d.Outcome == plans.Conflict:
		d.AskWays(ctx, asking, o.Subresource)
		d.Ways = d.LeftOut(ctx, asking, o.Subresource)
	case d.Err != nil && d.Fields != nil:
		d.Ways = d.LeftOut(ctx, asking, o.Subresource)
		if d.Plan != nil {
			d.Ways = append(d.Ways, d.Unblocks(ctx, asking, d.Err)...)
		}
	}
}

// Undecodable suggests removing an object's entries that can't be decoded; nil if all entries can be decoded.
func Undecodable(t *Target, object map[string]any) []advice.Suggestion {
	list, _ := managedfields.Read(place.Wrap(object)) // without entries, there is nothing to remove
	if err := list.Err(); err != nil {
		return []advice.Suggestion{advice.Undecodable(ObjectsOf(t), err)}
	}
	return nil
}
