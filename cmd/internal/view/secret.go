package view

import (
	"slices"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/ownership/fights"
)

// Texts that replace the stand-ins for values of Secrets (see [secrets.Shown]). They only show whether two values
// differ.
const (
	hidden       = secrets.Hidden
	hiddenBefore = "*** (before)"
	hiddenAfter  = "*** (after)"
)

// Hide returns an object without stand-ins.
func Hide(tree map[string]any) map[string]any {
	if !secrets.Is(tree) {
		return tree
	}
	return secrets.Replace(tree, tree, "").(map[string]any)
}

// hideTrees returns two versions of an object without stand-ins.
func hideTrees(before, after map[string]any) (_, _ map[string]any) {
	if !secrets.Is(before) && !secrets.Is(after) {
		return before, after
	}
	a := secrets.Replace(before, after, hiddenBefore).(map[string]any)
	b := secrets.Replace(after, before, hiddenAfter).(map[string]any)
	if before == nil {
		a = nil
	}
	if after == nil {
		b = nil
	}
	return a, b
}

// changeTexts returns the texts of both values of a change, without stand-ins.
func changeTexts(c plans.Change) (before, after string) {
	c = hideChange(c)
	before, after = conflictreport.ChangeTexts(c)
	if c.After == planning.SetByServer {
		after = planning.SetByServer // it is no string
	}
	return before, after
}

// hideChange returns a change without stand-ins.
func hideChange(c plans.Change) plans.Change {
	before, after := c.Before, c.After
	c.Before, c.After = secrets.Replace(before, after, hiddenBefore), secrets.Replace(after, before, hiddenAfter)
	return c
}

// HideConflicts returns conflicts without stand-ins.
func HideConflicts(list conflicts.Conflicts) conflicts.Conflicts {
	out := slices.Clone(list)
	for i := range out {
		live, applied := list[i].Live, list[i].Applied
		out[i].Live = secrets.Replace(live, applied, hiddenBefore)
		out[i].Applied = secrets.Replace(applied, live, hiddenAfter)
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
