package cli

import (
	"errors"
	"fmt"
)

// runLive writes one document to the object in a file, and the result to stdout:
// the engine as a function.
func (f *writeFlags) runLive(env *Env, docs []document, apply bool) error {
	if len(docs) != 1 {
		return fmt.Errorf("--live takes one document with -f, got %d", len(docs))
	}
	c := newCatalog()
	if err := c.addSchemas(env, f.schemas); err != nil {
		return err
	}
	doc := docs[0]
	object, reference, err := f.mergeLive(env, c, doc, apply)
	if err != nil {
		env.explain(err, doc.where(), reference, f.manager)
		return errReported
	}
	out := f.output
	if out.format == "" {
		out.format = "yaml"
	}
	// What is written is the next live object, which is nothing without them.
	out.managedFields = true
	return out.print(env.Stdout, []map[string]any{object}, false)
}

func (f *writeFlags) mergeLive(env *Env, c *catalog, doc document, apply bool) (object map[string]any, ref string, err error) {
	if doc.err != nil {
		return nil, "", doc.err
	}
	gvk, err := gvkOf(doc.tree)
	if err != nil {
		return nil, "", err
	}
	r := request{manager: f.manager, apply: apply, force: f.force, subresource: f.subresource, types: c.types, now: env.Now}
	if r.kind, err = c.kind(gvk); err != nil {
		return nil, "", err
	}
	ref = reference(gvk.GroupKind(), nameOf(doc.tree))
	live, err := env.readLive(f.live)
	if err != nil {
		return nil, ref, err
	}
	if err := sameObject(live, doc.tree); err != nil {
		return nil, ref, err
	}
	object, err = r.run(live, doc.tree)
	return object, ref, err
}

// readLive reads the live object of a file; nil when there is none in it.
func (e *Env) readLive(path string) (map[string]any, error) {
	docs, err := e.readDocuments([]string{path})
	switch {
	case err != nil:
		return nil, fmt.Errorf("live object: %w", err)
	case len(docs) == 0:
		return nil, nil
	case docs[0].err != nil:
		return nil, fmt.Errorf("live object: %s: %w", docs[0].where(), docs[0].err)
	case len(docs) > 1:
		return nil, fmt.Errorf("live object: %s: expected one document, got %d", path, len(docs))
	}
	return docs[0].tree, nil
}

// sameObject returns an error when a document is about another object than live.
func sameObject(live, given map[string]any) error {
	if live == nil {
		return nil
	}
	have, err := gvkOf(live)
	if err != nil {
		return fmt.Errorf("live object: %w", err)
	}
	want, err := gvkOf(given)
	if err != nil {
		return err
	}
	if have.GroupKind() != want.GroupKind() {
		return fmt.Errorf(".kind: the live object is a %s, the document a %s", have.GroupKind(), want.GroupKind())
	}
	for _, name := range []string{"name", "namespace"} {
		have, want := textAt(live, name), textAt(given, name)
		if have != want && have != "" && want != "" {
			return fmt.Errorf(".metadata.%s: the live object's is %q, the document's %q", name, have, want)
		}
	}
	if live["metadata"] == nil {
		return nil
	}
	if _, ok := live["metadata"].(map[string]any); !ok {
		return errors.New("live object: .metadata: expected an object")
	}
	return nil
}
