package conformance

import (
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/doc"
)

// what is the kind of a difference.
type what uint

const (
	code     what = 1 << iota // the status code of the response
	cause                     // a conflict
	warning                   // a warning of the response
	entry                     // an entry of managed fields exists on one side only
	version                   // the version of an Apply entry
	timeOf                    // the time of an entry
	order                     // the order of entries
	member                    // a field, item or container that an entry owns
	written                   // whether the server wrote the object
	value                     // a value of the object
	sequence                  // the order of a list's items
	anything what = 1<<iota - 1
)

// difference is a difference between a response and the recorded one. Fields about entries describe the entry that
// differs.
type difference struct {
	*write
	what what
	// extra is true if something is only in the response of the server under test. missing is true if something is only
	// in the recorded response.
	extra, missing bool
	// at is the path of the difference, in the object or in the entry.
	at fieldpath.Path

	entry key
	// own is true if the entry belongs to the write's manager.
	own bool
	// renamed is true if another manager's entry has the same fields. rekeyed is true if another entry of the same
	// manager has them.
	renamed, rekeyed bool
	// isEmpty is true if the entry owns no fields.
	isEmpty bool
	// isContainer is true if the entry has other fields below the path. stays is true if the recorded write did not
	// change the entry.
	isContainer, stays bool

	text string
}

// in reports whether an object has a value at the path.
func (d *difference) in(object map[string]any) bool {
	_, ok := lookup(object, d.at)
	return ok
}

// dropped reports whether the write's manager owned the path and its intent lacks it.
func (d *difference) dropped() bool {
	for k, o := range owners(d.live) {
		if d.isOf(k) && covers(o.fields, d.at) {
			return !d.in(d.body)
		}
	}
	return false
}

// isScale reports whether the entry, or the write, is for the scale subresource.
func (d *difference) isScale() bool {
	return d.entry.Subresource == "scale" || d.subresource == "scale"
}

// says reports whether the recorded response is an error whose message contains a text.
func (d *difference) says(text string) bool {
	message, _ := d.want["message"].(string)
	return d.want["kind"] == "Status" && strings.Contains(message, text)
}

// neverOwned matches paths of fields that no manager can own.
var neverOwned = regexp.MustCompile(`^\.(apiVersion|kind|metadata(\.(name|namespace|creationTimestamp|selfLink|uid|` +
	`clusterName|generation|managedFields|resourceVersion))?)$`)

// verdicts maps differences to rules of doc/spec.md: a difference breaks the rule of the first row that matches it.
// If a response has several differences, the verdict is the rule of the earliest row that matches one of them. A row
// without a rule is about behaviour that is common to the whole Kubernetes API.
var verdicts = []struct {
	rule string
	what what // matches any of these
	is   func(d *difference) bool
}{
	{"1.1", code, func(d *difference) bool { return d.says("invalid object type") }},
	{"1.2", code, func(d *difference) bool { return d.says("metadata.managedFields must be nil") }},
	{"2.2", code, func(d *difference) bool { return d.says("fieldManager: ") }},
	{"2.8", code, func(d *difference) bool { return d.step.Fault() == recorded.ScaleFault }},
	{"6.2", code, func(d *difference) bool { return d.step.Fault() == recorded.NullFault }},
	{"1.3", code, func(d *difference) bool { return d.step.Fault() == recorded.SchemaFault }},
	{"9.1", code, func(d *difference) bool { return d.isClientSide && len(conflictsIn(d.got)) > 0 }},
	{"5.1", code, func(d *difference) bool { return len(conflictsIn(d.got))+len(conflictsIn(d.want)) > 0 }},
	{"", code, func(*difference) bool { return true }},
	{"5.1", cause, func(*difference) bool { return true }},
	{"1.6", anything, func(d *difference) bool { return d.failed }},

	{"1.5", entry | member, func(d *difference) bool { return d.entry.Manager == "before-first-apply" && d.isUntracked }},
	{"2.5", entry | member, func(d *difference) bool { return d.entry.Manager == "ancient-changes" }},
	{"2.5", entry, func(d *difference) bool { return d.extra && len(owners(d.got)) > 11 }},
	{"2.6", entry | member, func(d *difference) bool { return d.carries }},
	{"1.4", entry, func(d *difference) bool { return d.extra && d.isUntracked && !d.apply }},
	{"2.2", entry, func(d *difference) bool { return d.renamed }},
	{"2.8", entry, func(d *difference) bool { return d.isScale() }},
	{"2.1", entry, func(d *difference) bool { return d.rekeyed }},
	{"2.10", entry, func(d *difference) bool { return d.extra && d.isEmpty }},
	{"4.1", entry, func(d *difference) bool { return d.own && d.apply }},
	{"5.5", entry, func(d *difference) bool { return d.own }},
	{"5.1", entry, func(*difference) bool { return true }},
	{"2.1", version, func(*difference) bool { return true }},
	{"2.3", timeOf, func(*difference) bool { return true }},
	{"2.4", order, func(*difference) bool { return true }},

	{"2.7", member, func(d *difference) bool { return neverOwned.MatchString(d.at.String()) }},
	{"2.8", member, func(d *difference) bool { return d.isScale() && d.at.String() == ".spec.replicas" }},
	{"8.1", member, func(d *difference) bool { return d.redefined && !d.own && !d.stays }},
	{"8.2", member, func(d *difference) bool { return d.redefined && !d.own }},
	{"2.9", member, func(d *difference) bool {
		return d.own && d.extra && strings.HasPrefix(d.at.String(), ".status") != (d.subresource == "status")
	}},
	{"5.5", member, func(d *difference) bool { return d.own && !d.apply }},
	{"4.3", member, func(d *difference) bool { return d.own && d.at[len(d.at)-1].FieldName == nil }},
	{"4.3", member, func(d *difference) bool { return d.own && d.isContainer && !d.extra }},
	{"4.1", member, func(d *difference) bool { return d.own && !d.extra }},
	{"4.2", member, func(d *difference) bool { return d.own && d.isContainer }},
	{"4.1", member, func(d *difference) bool { return d.own }},
	{"5.2", member, func(d *difference) bool { return d.extra && !d.in(d.want) }},
	{"5.1", member, func(*difference) bool { return true }},

	{"9.2", value, func(d *difference) bool { return d.at.Equals(lastApplied) }},
	{"2.8", value, func(d *difference) bool { return d.isScale() }},
	{"3.7", sequence, func(d *difference) bool { return d.apply }},
	{"6.1", value, func(d *difference) bool { return d.apply && d.extra && d.dropped() }},
	{"6.2", value, func(d *difference) bool { return d.apply && d.extra && d.in(d.live) }},
	{"6.1", value, func(d *difference) bool { return d.apply && d.missing && d.dropped() }},
	{"3.1", value, func(d *difference) bool { return d.apply && d.at.String() != ".metadata.generation" }},
	{"13.1", written, func(d *difference) bool { return d.apply }},
	{"", anything, func(*difference) bool { return true }},
}

// rulesOf returns the rules that differences break, the verdict first. A rule is "" if doc/spec.md has no rule for
// it.
func rulesOf(differences []difference) (rules []string) {
	var rows []int
	for i := range differences {
		for row := range verdicts {
			if v := verdicts[row]; v.what&differences[i].what != 0 && v.is(&differences[i]) {
				rows = append(rows, row)
				break
			}
		}
	}
	slices.Sort(rows)
	for _, row := range rows {
		if rule := verdicts[row].rule; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// Rule is a rule of doc/spec.md.
type Rule struct {
	Number, Text, Link string
}

var (
	chapterInSpec = regexp.MustCompile(`(?m)^## (\d+) (.*)$`)
	ruleInSpec    = regexp.MustCompile(`(?m)^- \*\*(\d+\.\d+)\*\* ((?:.|\n {2})*)`)
)

// rules returns the rules of doc/spec.md, and at the end a rule without a number, for differences that break none of
// them.
func rules() (out []Rule) {
	chapters := map[string]string{}
	for _, m := range chapterInSpec.FindAllStringSubmatch(doc.Spec, -1) {
		chapters[m[1]] = m[1] + "-" + strings.ReplaceAll(strings.ToLower(m[2]), " ", "-")
	}
	for _, m := range ruleInSpec.FindAllStringSubmatch(doc.Spec, -1) {
		chapter, _, _ := strings.Cut(m[1], ".")
		out = append(out, Rule{
			Number: m[1], Text: strings.Join(strings.Fields(m[2]), " "),
			Link: "https://github.com/tenure-ssa/tenure/blob/main/doc/spec.md#" + chapters[chapter],
		})
	}
	return append(out, Rule{Text: "What the Kubernetes API does, whatever the write."})
}
