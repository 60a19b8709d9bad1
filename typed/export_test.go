package typed

// What package values has of this package, for tests.

type Finder = finder

func (s *Semantics) CompareAndValidate(t *Type, old, now any, except ...string) (Comparison, bool) {
	return s.compareAndValidate(t, old, now, except...)
}

func (t *Type) DropUnknown(v, live any) any { return t.dropUnknown(v, live) }
