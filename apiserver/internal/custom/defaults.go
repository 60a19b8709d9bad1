package custom

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A defaulter fills in the defaults of a schema, as far as they fit into a limit.
//
// A few bytes of a body may ask for very many of defaults: with a default of 100 KB in the
// items of a list, each "{}" in it does. So what the defaults would take is counted before
// any is filled in, and the count stops at the limit. Neither looks at parts of the schema
// without defaults: both take time for the object and for what is filled in, and none for
// the size of the schema.
type defaulter struct {
	schema *structuralschema.Structural // the parts with defaults; nil: there are none
	limit  int64                        // of what is filled into one object, in bytes
}

func newDefaulter(s *structuralschema.Structural, limit int64) *defaulter {
	return &defaulter{onlyDefaults(s), limit}
}

// fill sets defaults in tree, in place. If they are larger than the limit the tree is left
// as it is, and the error is a *resources.TooLargeError with the path of the first default
// that does not fit.
func (d *defaulter) fill(tree map[string]any) error {
	if d == nil || d.schema == nil {
		return nil
	}
	c := counter{left: d.limit, steps: maxSteps}
	if !c.count(tree, d.schema) {
		return &resources.TooLargeError{Path: c.path(), What: "the defaults of the object up to here", Limit: d.limit}
	}
	defaulting.Default(tree, d.schema)
	return nil
}

// onlyDefaults returns the parts of a schema that have a default in them, and what leads
// there; nil for none. It shares them with s.
func onlyDefaults(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	out := *s
	out.Items, out.Properties = onlyDefaults(s.Items), nil
	has := s.Default.Object != nil || out.Items != nil
	if a := s.AdditionalProperties; a != nil {
		part := onlyDefaults(a.Structural)
		has = has || part != nil
		out.AdditionalProperties = nil
		if part != nil {
			out.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: part, Bool: a.Bool}
		}
	}
	for name := range s.Properties {
		prop := s.Properties[name]
		if part := onlyDefaults(&prop); part != nil {
			if out.Properties == nil {
				out.Properties = map[string]structuralschema.Structural{}
			}
			out.Properties[name], has = *part, true
		}
	}
	if !has {
		return nil
	}
	return &out
}

// maxSteps bounds how many parts of a schema are looked for in the maps of an object:
// those that have no default themselves, only below, take nothing of the limit. An object
// with half a million maps, which is as many as can be stored, may have 128 of them each.
const maxSteps = 1 << 26

// A counter counts what defaults would take.
type counter struct {
	left  int64
	steps int   // how many more parts of the schema are looked for in maps
	trail []any // where left ended: the steps of the path, the last one first
}

// add counts one default, and those in it.
func (c *counter) add(v any, s *structuralschema.Structural) bool {
	c.left -= resources.Size(v, c.left)
	return c.left >= 0 && c.count(v, s)
}

// count counts the defaults in a value. It reports false when they are more than is left.
func (c *counter) count(v any, s *structuralschema.Structural) bool {
	if s == nil {
		return true
	}
	switch t := v.(type) {
	case map[string]any:
		return c.countMap(t, s)
	case []any:
		for i, item := range t {
			ok := true
			if s.Items != nil && item == nil && !s.Items.Nullable {
				ok = c.add(s.Items.Default.Object, s.Items)
			} else {
				ok = c.count(item, s.Items)
			}
			if !ok {
				return c.at(i)
			}
		}
	}
	return true
}

func (c *counter) countMap(t map[string]any, s *structuralschema.Structural) bool {
	if c.steps -= len(s.Properties); c.steps < 0 {
		return false
	}
	for name := range s.Properties {
		prop := s.Properties[name]
		if item, found := t[name]; prop.Default.Object != nil && (!found || item == nil && !prop.Nullable) {
			c.left -= int64(len(name)) + 4
			if !c.add(prop.Default.Object, &prop) {
				return c.at(name)
			}
		} else if found && !c.count(item, &prop) {
			return c.at(name)
		}
	}
	if s.AdditionalProperties == nil || s.AdditionalProperties.Structural == nil {
		return true
	}
	more := s.AdditionalProperties.Structural
	for name, item := range t {
		if _, declared := s.Properties[name]; declared {
			continue
		}
		ok := true
		if item == nil && !more.Nullable {
			ok = c.add(more.Default.Object, more)
		} else {
			ok = c.count(item, more)
		}
		if !ok {
			return c.at(name)
		}
	}
	return true
}

// at notes a step of the path to what was too much, and reports false.
func (c *counter) at(step any) bool {
	c.trail = append(c.trail, step)
	return false
}

func (c *counter) path() string {
	var path *field.Path
	for i := len(c.trail) - 1; i >= 0; i-- {
		switch step := c.trail[i].(type) {
		case int:
			path = path.Index(step)
		case string:
			path = resources.Child(path, step)
		}
	}
	if path == nil {
		return ""
	}
	return path.String()
}
