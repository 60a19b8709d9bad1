package view

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/fights"
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
		if value == other {
			with = hidden
		} else if text, ok := hideIn(value, other, with); ok {
			return text
		}
		return secrets.ReplaceStandIns(value, with)
	}
	return value
}

// hideIn is hide for text with an object in JSON, such as the last-applied annotation: a value in it may be the same as
// in other.
func hideIn(text string, other any, with string) (shown string, ok bool) {
	var object, another map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", false
	}
	if others, isText := other.(string); isText {
		_ = json.Unmarshal([]byte(others), &another) // without an object, all values differ
	}
	data, err := json.Marshal(hide(object, another, with))
	return string(data) + text[len(strings.TrimRight(text, " \n")):], err == nil
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
	c.Before, c.After = hide(c.Before, c.After, hiddenBefore), hide(c.After, c.Before, hiddenAfter)
	return c
}

// HideConflicts returns conflicts without stand-ins.
func HideConflicts(list conflicts.Conflicts) conflicts.Conflicts {
	out := slices.Clone(list)
	for i := range out {
		live, applied := list[i].Live, list[i].Applied
		out[i].Live, out[i].Applied = hide(live, applied, hiddenBefore), hide(applied, live, hiddenAfter)
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
