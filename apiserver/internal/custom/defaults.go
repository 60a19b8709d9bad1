package custom

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A defaulter sets the defaults of a structural schema, up to a size limit.
//
// A small body can request a huge object: if the items of a list have a default of 100 KB, each "{}" in the list adds
// 100 KB. So check counts the bytes of the missing defaults before they are set, and stops at the limit. Counting and
// setting skip the parts of the schema that have no defaults. Therefore the cost depends on the size of the object and
// of the defaults, not on the size of the schema.
type defaulter struct {
	schema *structuralschema.Structural // the parts that contain defaults; nil if no part does
	limit  int64                        // maximum size of the defaults of one object, in bytes
}

func newDefaulter(s *structuralschema.Structural, limit int64) *defaulter {
	return &defaulter{onlyDefaults(s), limit}
}

// check returns a *resources.TooLargeError if the defaults of an object exceed the limit. The error has the path of the
// first default that does not fit.
func (d *defaulter) check(tree map[string]any) error {
	if d == nil || d.schema == nil {
		return nil
	}
	c := counter{left: d.limit, steps: maxSteps}
	if !c.count(tree, d.schema) {
		return &resources.TooLargeError{Path: c.path(), What: "the defaults of the object up to here", Limit: d.limit}
	}
	return nil
}

// onlyDefaults returns the parts of a schema that contain defaults, with their parents, or nil if no part does. The
// result shares memory with s.
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

// maxSteps limits how many properties are looked up in the maps of an object. The limit in bytes does not limit lookups
// of properties that have no default themselves, but contain properties with defaults. An object of the maximum size
// has at most half a million maps; this allows 128 lookups in each.
const maxSteps = 1 << 26

// A counter counts the bytes of defaults.
type counter struct {
	left  int64
	steps int   // the remaining lookups
	trail []any // the path at which counting stopped, in reverse order
}

// add adds the size of a default and of the defaults within it.
func (c *counter) add(v any, s *structuralschema.Structural) bool {
	c.left -= resources.Size(v, c.left)
	return c.left >= 0 && c.count(v, s)
}

// count adds the sizes of the defaults that are missing in a value. It returns false if they exceed the limit.
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

// at adds a step to the path at which counting stopped, and returns false.
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
