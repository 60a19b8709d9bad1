package typed

// Functions that this package provides only to package values, exported for tests.

type Finder = finder

func (s *Semantics) CompareAndValidate(t *Type, old, now any, except ...string) (Comparison, bool) {
	return s.compareAndValidate(t, old, now, except...)
}

func (t *Type) DropUnknown(v, live any) any { return t.dropUnknown(v, live) }
