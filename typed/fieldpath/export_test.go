package fieldpath

import "fmt"

// CheckInvariants returns an error that names the invariant of [Set] or [Element] that s breaks, or nil.
func CheckInvariants(s *Set) error {
	if s == nil {
		return nil
	}
	if len(s.nodes) == 0 {
		return fmt.Errorf("empty branch")
	}
	for i, n := range s.nodes {
		if !n.member && n.sub == nil {
			return fmt.Errorf("empty node %s", n.elem())
		}
		if err := checkElement(n.elem()); err != nil {
			return fmt.Errorf("element %s: %w", n.elem(), err)
		}
		if i > 0 {
			before := s.nodes[i-1].elem()
			if before.Compare(n.elem()) >= 0 || n.elem().Compare(before) <= 0 || before.Equal(n.elem()) {
				return fmt.Errorf("%s is before %s", before, n.elem())
			}
		}
		if err := CheckInvariants(n.sub); err != nil {
			return fmt.Errorf("below %s: %w", n.elem(), err)
		}
	}
	return nil
}

// checkElement compares an element with the element that its text decodes to.
func checkElement(e Element) error {
	again, err := ParseElement(string(e.AppendName(nil)))
	if err != nil {
		return err
	}
	if again.Text() != e.Text() || again.Compare(e) != 0 || e.Compare(again) != 0 {
		return fmt.Errorf("reads back as %s", again)
	}
	return nil
}
