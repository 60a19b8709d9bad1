package typed

// Functions that this package provides only to package values, exported for tests.

type Finder = finder

func (s *Semantics) CompareAndValidate(t *Type, old, updated any, except ...string) (Comparison, bool) {
	return s.compareAndValidate(t, old, updated, except...)
}

func (t *Type) DropUnknown(v, live any) any { return t.dropUnknown(v, live) }
