package cli

import (
	"fmt"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
)

// writeToLive applies one document to the object in a file, and writes the result to stdout. It calls
// the engine, without a server.
func (f *writeFlags) writeToLive(env *process.Env, docs []manifest.Document, apply bool) error {
	if len(docs) != 1 {
		return fmt.Errorf("--live takes one document with -f, got %d", len(docs))
	}
	c := place.NewCatalog()
	if err := c.AddSchemas(env, f.schemas); err != nil {
		return err
	}
	doc := docs[0]
	object, reference, err := f.mergeLive(env, c, doc, apply)
	if err != nil {
		view.Explain(env, err, doc.Where(), reference, f.manager)
		return errReported
	}
	out := f.output
	if out.Format == "" {
		out.Format = "yaml"
	}
	// The result is the next live object, which needs its managed fields.
	out.ManagedFields = true
	return out.Print(env.Stdout, []map[string]any{object}, false)
}

func (f *writeFlags) mergeLive(
	env *process.Env, c *place.Catalog, doc manifest.Document, apply bool,
) (object map[string]any, ref string, err error) {
	if doc.Err != nil {
		return nil, "", doc.Err
	}
	gvk, err := manifest.GVKOf(doc.Tree)
	if err != nil {
		return nil, "", err
	}
	r := place.Request{Manager: f.manager, Apply: apply, Force: f.force, Subresource: f.subresource, Types: c.Types,
		Now: env.Now}
	if r.Kind, err = c.Kind(gvk); err != nil {
		return nil, "", err
	}
	ref = place.Reference(gvk.GroupKind(), manifest.NameOf(doc.Tree))
	live, err := place.ReadLive(env, f.live)
	if err != nil {
		return nil, ref, err
	}
	if err := place.CheckSameObject(live, doc.Tree); err != nil {
		return nil, ref, err
	}
	object, err = r.Write(live, doc.Tree)
	return object, ref, err
}
