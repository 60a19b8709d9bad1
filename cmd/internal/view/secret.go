package view

import (
	"slices"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/typed"
)

// Texts that replace the stand-ins for values of Secrets (see [secrets.Shown]). They only show whether two values
// differ.
const (
	hidden       = "***"
	hiddenBefore = "*** (before)"
	hiddenAfter  = "*** (after)"
)

// hide returns a value without stand-ins. If a string is the same in other, the constant hidden replaces its stand-ins.
// In all other strings, the argument with replaces them.
func hide(value, other any, with string) any {
	switch value := value.(type) {
	case map[string]any:
		others, _ := other.(map[string]any)
		out := make(map[string]any, len(value))
		for name, v := range value {
			out[name] = hide(v, others[name], with)
		}
		return out
	case string:
		if typed.Equal(value, other) {
			with = hidden
		}
		return secrets.ReplaceStandIns(value, with)
	}
	return value
}

// Hide returns an object without stand-ins.
func Hide(tree map[string]any) map[string]any {
	if !secrets.Is(tree) {
		return tree
	}
	return hide(tree, tree, "").(map[string]any)
}

// hideTrees returns two versions of an object without stand-ins.
func hideTrees(before, after map[string]any) (_, _ map[string]any) {
	if !secrets.Is(before) && !secrets.Is(after) {
		return before, after
	}
	a, b := hide(before, after, hiddenBefore).(map[string]any), hide(after, before, hiddenAfter).(map[string]any)
	if before == nil {
		a = nil
	}
	if after == nil {
		b = nil
	}
	return a, b
}

// hideChange returns a change without stand-ins.
func hideChange(c plans.Change) plans.Change {
	c.Before, c.After = hide(c.Before, nil, hiddenBefore), hide(c.After, nil, hiddenAfter)
	return c
}

// HideConflicts returns conflicts without stand-ins.
func HideConflicts(list conflicts.Conflicts) conflicts.Conflicts {
	out := slices.Clone(list)
	for i := range out {
		out[i].Live, out[i].Applied = hide(out[i].Live, nil, hiddenBefore), hide(out[i].Applied, nil, hiddenAfter)
	}
	return out
}

// HideFinding returns a finding without stand-ins.
func HideFinding(f fights.Finding) fights.Finding {
	for i := range f.Sides {
		f.Sides[i].Value = secrets.ReplaceStandIns(f.Sides[i].Value, hidden)
	}
	return f
}
