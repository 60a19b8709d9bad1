package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// Files are the objects in files. Writes change them only in memory.
type Files struct {
	now       func() time.Time
	catalog   *Catalog
	namespace string
	names     string
	objects   []*Target
	named     map[kindName][]*Target // objects in the order of the files
}

// kindName is a key for objects: kind and name, in any namespace.
type kindName struct {
	kind schema.GroupKind
	name string
}

// NewFiles returns the objects in documents, which come from the named files. An unknown kind causes an error only when
// its schema is needed.
func NewFiles(
	now func() time.Time, c *Catalog, names []string, docs []document.Document, namespace string,
) (*Files, error) {
	if err := checkNames("", "", namespace); err != nil {
		return nil, err
	}
	p := &Files{now: now, catalog: c, namespace: namespace, names: strings.Join(names, ", "),
		named: map[kindName][]*Target{}}
	for _, doc := range docs {
		err := doc.Err
		if err == nil {
			// With a single object, the user asked for this object. With several, the user may want only some of them.
			err = p.add(doc.Tree, len(docs) == 1)
		}
		if err != nil {
			return nil, doc.Wrap(err)
		}
	}
	return p, nil
}

// NewMemory returns a place with one object; without objects if object is nil.
func NewMemory(now func() time.Time, c *Catalog, object map[string]any) (*Files, error) {
	p := &Files{now: now, catalog: c, named: map[kindName][]*Target{}}
	if object == nil {
		return p, nil
	}
	return p, p.add(object, true)
}

func (p *Files) add(tree map[string]any, isAsked bool) error {
	t, err := p.target(tree)
	if err != nil {
		return err
	}
	t.Asked = isAsked
	p.objects = append(p.objects, t)
	key := kindName{t.Kind.GroupKind(), t.Name}
	p.named[key] = append(p.named[key], t)
	return nil
}

// target returns the target of a document.
func (p *Files) target(tree map[string]any) (*Target, error) {
	gvk, err := document.GVKOf(tree)
	if err != nil {
		return nil, err
	}
	if metadata := tree["metadata"]; metadata != nil {
		if _, ok := metadata.(map[string]any); !ok {
			return nil, fmt.Errorf(".metadata: expected an object, got %s", document.Describe(metadata))
		}
	}
	k, err := p.catalog.Kind(gvk)
	if err != nil {
		// Without a schema, moves and plans are not possible, but blame is.
		k = &Kind{GroupVersionKind: gvk, Unknown: err}
	}
	t := &Target{Kind: k, Types: p.catalog.Types, server: true}
	return t, t.read(tree)
}

// String implements [Place].
func (p *Files) String() string { return p.names }

// Define implements [Place].
func (p *Files) Define(d *Definition) { p.catalog.Define(d) }

// InOrder implements [Place].
func (p *Files) InOrder() bool { return false }

// Close implements [Place].
func (p *Files) Close() error { return nil }

// Live implements [Place].
func (p *Files) Live(_ context.Context, intent map[string]any) (*Target, map[string]any, error) {
	t, err := p.target(intent)
	if err != nil {
		return nil, nil, err
	}
	if t.Kind.Unknown != nil {
		return nil, nil, t.Kind.Unknown
	}
	if t.Name == "" {
		return t, nil, errors.New(".metadata.name: missing")
	}
	if t.Namespace == "" {
		t.Namespace = p.namespace
	}
	t.set(nil) // no live object unless it is found below
	if o := p.Named(t.Kind.GroupKind(), t.Name, t.Namespace); o != nil {
		t.set(o.stored)
		return t, intent, nil
	}
	// If the files have a single object, the intent must be for it.
	if len(p.objects) == 1 {
		return t, nil, fmt.Errorf("the live object is %s, expected %s", p.objects[0].Title(), t.Title())
	}
	return t, intent, nil
}

// Named returns the object with a kind and a name; nil if there is none. If the object in the file and the arguments
// both have a namespace, these must be equal.
func (p *Files) Named(kind schema.GroupKind, name, namespace string) *Target {
	for _, o := range p.named[kindName{kind, name}] {
		if o.isIn(namespace) {
			return o
		}
	}
	return nil
}

// Kinds implements [Place].
func (p *Files) Kinds(context.Context, ...string) ([]cluster.Kind, error) { return nil, nil }

// Delete implements [Place]. Objects in files can't be deleted.
func (p *Files) Delete(context.Context, *Target, func(*Target)) error { return errors.ErrUnsupported }

// Prefetch implements [Place].
func (p *Files) Prefetch(context.Context, []map[string]any, int) {}

// isIn reports whether the object may be in a namespace. An object without a namespace in its file may be in any
// namespace.
func (t *Target) isIn(namespace string) bool {
	return namespace == "" || t.Namespace == "" || t.Namespace == namespace
}

// Visit implements [Place]. It selects by namespace, by labels, and by the arguments KIND[,KIND] [NAME…] or
// KIND/NAME…. It does not know the short names of kinds.
func (p *Files) Visit(_ context.Context, s Selection, see func(*Target)) error {
	selector, err := labels.Parse(s.Selector)
	if err != nil {
		return err
	}
	if !namesObjects(s.Args) {
		for _, t := range p.objects {
			isOfKind := len(s.Args) == 0 || slices.ContainsFunc(strings.Split(s.Args[0], ","), t.isKind)
			set := labels.Set((&unstructured.Unstructured{Object: t.Object}).GetLabels())
			if isOfKind && t.isIn(s.Namespace) && selector.Matches(set) {
				see(t)
			}
		}
		return nil
	}
	var errs []error
	for _, name := range named(s.Args) {
		isNamed := func(t *Target) bool {
			return t.Name == name[1] && t.isKind(name[0]) && t.isIn(s.Namespace)
		}
		i := slices.IndexFunc(p.objects, isNamed)
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s/%s: %w in %s; in files, kinds have no short names", name[0], name[1],
				cluster.ErrNotFound, p))
			continue
		}
		p.objects[i].Asked = true
		see(p.objects[i])
	}
	return errors.Join(errs...)
}

// named returns the kinds and names in arguments of the form KIND/NAME… or KIND NAME….
func named(args []string) (out [][2]string) {
	kind, name, isSlash := strings.Cut(args[0], "/")
	if !isSlash {
		for _, name := range args[1:] {
			out = append(out, [2]string{kind, name})
		}
		return out
	}
	out = append(out, [2]string{kind, name})
	for _, arg := range args[1:] {
		kind, name, _ = strings.Cut(arg, "/")
		out = append(out, [2]string{kind, name})
	}
	return out
}

// isKind reports whether a text is "all", or names the kind of the object, as in deployment, deployments or
// deployments.apps.
func (t *Target) isKind(text string) bool {
	gk := t.Kind.GroupKind()
	plural, _ := meta.UnsafeGuessKindToResource(t.Kind.GroupVersionKind)
	names := []string{"all", gk.Kind, document.Resource(gk), plural.Resource, plural.GroupResource().String()}
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(text, name) })
}

// Reload implements [Place].
func (p *Files) Reload(context.Context, *Target) error { return nil }

// Move implements [Place].
func (p *Files) Move(ctx context.Context, t *Target, m Moved) error {
	t.set(m.Object)
	return nil
}

// Apply implements [Place].
func (p *Files) Apply(
	ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	return p.write(ctx, t, intent, o, true)
}

// Update implements [Place].
func (p *Files) Update(
	ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	return p.write(ctx, t, tree, o, false)
}

func (p *Files) write(
	ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions, isApply bool,
) (map[string]any, error) {
	if o.Subresource == Scale {
		return nil, errors.New("--subresource scale: expected a cluster or a store")
	}
	r := t.request(p.now, o.Subresource)
	r.Manager, r.Apply, r.Force = o.Manager, isApply, o.Force
	object, err := r.Write(ctx, t.stored, tree)
	if err == nil {
		t.set(object)
		return object, nil
	}
	if _, shown := r.Write(ctx, t.Object, secrets.Shown(tree)); shown != nil {
		return object, shown // shown is the same error without values of Secrets
	}
	return object, err
}

// Defined implements [Place].
func (p *Files) Defined(tree map[string]any, _ bool) error {
	d, err := Define(tree)
	if err != nil {
		return err
	}
	p.Define(d)
	return nil
}
