package conformance

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/doc"
)

// what says what differs.
type what int

const (
	code     what = iota // the status code of the response
	cause                // a conflict
	warning              // a warning of the response
	entry                // an entry of managed fields is there on one side only
	version              // the version of an applier's entry
	timeOf               // the time of an entry
	order                // the order of entries
	member               // a field, item or container that an entry owns
	written              // whether the object was written
	value                // a value of the object
	sequence             // the order of the items of a list
)

// A difference between a response and the recorded one. Fields about entries are those of the entry that differs.
type difference struct {
	*write
	what what
	// extra: only the server under test has it. missing: only the recorded response has it.
	extra, missing bool
	// at is where it is, in the object or in the entry.
	at fieldpath.Path

	entry key
	// own: the entry is that of the write's manager.
	own bool
	// renamed: the same fields are in an entry of another manager, and rekeyed: of the same manager.
	renamed, rekeyed bool
	// isEmpty: the entry owns nothing.
	isEmpty bool
	// isContainer: other fields of the entry are below the path. stays: the recorded write left the entry as it was.
	isContainer, stays bool

	text string
}

// inWant reports whether the recorded response has a value at the path.
func (d *difference) inWant() bool {
	_, ok := lookup(d.want, d.at)
	return ok
}

// inLive reports whether the object had a value at the path before the write.
func (d *difference) inLive() bool {
	_, ok := lookup(d.live, d.at)
	return ok
}

// dropped reports whether the path was owned by the manager of the write, and is not in the intent.
func (d *difference) dropped() bool {
	for k, o := range owners(d.live) {
		if d.isOf(k) && covers(o.fields, d.at) {
			_, isApplied := lookup(d.body, d.at)
			return !isApplied
		}
	}
	return false
}

// says reports whether the recorded response is a failure whose message has a text.
func (d *difference) says(text string) bool {
	message, _ := d.want["message"].(string)
	return d.want["kind"] == "Status" && strings.Contains(message, text)
}

// neverOwned are the fields of metadata that nobody owns.
var neverOwned = sets.New(
	".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace", ".metadata.creationTimestamp",
	".metadata.selfLink", ".metadata.uid", ".metadata.clusterName", ".metadata.generation", ".metadata.managedFields",
	".metadata.resourceVersion",
)

// verdicts says which rule of doc/spec.md a difference breaks: that of the first row that is about it. Of several
// differences in one response, that of the first row names the verdict. A row without a rule is about what all of the
// Kubernetes API does alike.
var verdicts = []struct {
	rule string
	is   func(d *difference) bool
}{
	{"1.1", func(d *difference) bool { return d.what == code && d.says("invalid object type") }},
	{"1.2", func(d *difference) bool { return d.what == code && d.says("metadata.managedFields must be nil") }},
	{"2.2", func(d *difference) bool { return d.what == code && d.says("fieldManager: ") }},
	{"2.8", func(d *difference) bool { return d.what == code && d.step.Fault() == recorded.ScaleFault }},
	{"6.2", func(d *difference) bool { return d.what == code && d.step.Fault() == recorded.NullFault }},
	{"1.3", func(d *difference) bool { return d.what == code && d.step.Fault() == recorded.SchemaFault }},
	{"9.1", func(d *difference) bool { return d.what == code && d.isClientSide && len(conflictsIn(d.got)) > 0 }},
	{"5.1", func(d *difference) bool {
		return d.what == cause || d.what == code && (len(conflictsIn(d.got))+len(conflictsIn(d.want)) > 0)
	}},
	{"", func(d *difference) bool { return d.what == code }},
	{"1.6", func(d *difference) bool { return d.failed }},

	{"1.5", func(d *difference) bool { return d.entry.Manager == "before-first-apply" && d.isUntracked }},
	{"2.5", func(d *difference) bool { return d.what != timeOf && d.entry.Manager == "ancient-changes" }},
	{"2.5", func(d *difference) bool { return d.what == entry && d.extra && d.updates > 10 }},
	{"2.6", func(d *difference) bool { return (d.what == entry || d.what == member) && d.carries }},
	{"1.4", func(d *difference) bool { return d.what == entry && d.extra && d.isUntracked && !d.apply }},
	{"2.2", func(d *difference) bool { return d.what == entry && d.renamed }},
	{"2.8", func(d *difference) bool {
		isScale := d.entry.Subresource == "scale" || d.subresource == "scale"
		return isScale && (d.what == entry || d.what == member && d.at.String() == ".spec.replicas")
	}},
	{"2.1", func(d *difference) bool { return d.what == version || d.what == entry && d.rekeyed }},
	{"2.10", func(d *difference) bool { return d.what == entry && d.extra && d.isEmpty }},
	{"4.1", func(d *difference) bool { return d.what == entry && d.own && d.apply }},
	{"5.5", func(d *difference) bool { return d.what == entry && d.own }},
	{"5.1", func(d *difference) bool { return d.what == entry }},
	{"2.3", func(d *difference) bool { return d.what == timeOf }},
	{"2.4", func(d *difference) bool { return d.what == order }},

	{"2.7", func(d *difference) bool { return d.what == member && neverOwned.Has(d.at.String()) }},
	{"8.1", func(d *difference) bool { return d.what == member && d.redefined && !d.own && !d.stays }},
	{"8.2", func(d *difference) bool { return d.what == member && d.redefined && !d.own }},
	{"2.9", func(d *difference) bool {
		return d.what == member && d.own && d.extra && strings.HasPrefix(d.at.String(), ".status") != (d.subresource == "status")
	}},
	{"4.3", func(d *difference) bool {
		return d.what == member && d.own && d.apply && (d.at[len(d.at)-1].FieldName == nil || d.isContainer && !d.extra)
	}},
	{"4.1", func(d *difference) bool { return d.what == member && d.own && d.apply && !d.extra }},
	{"4.2", func(d *difference) bool { return d.what == member && d.own && d.apply && d.isContainer }},
	{"4.1", func(d *difference) bool { return d.what == member && d.own && d.apply }},
	{"5.5", func(d *difference) bool { return d.what == member && d.own }},
	{"5.2", func(d *difference) bool { return d.what == member && d.extra && !d.inWant() }},
	{"5.1", func(d *difference) bool { return d.what == member }},

	{"9.2", func(d *difference) bool { return d.what == value && d.at.Equals(lastApplied) }},
	{"2.8", func(d *difference) bool { return d.what == value && d.subresource == "scale" }},
	{"3.7", func(d *difference) bool { return d.what == sequence && d.apply }},
	{"6.1", func(d *difference) bool { return d.what == value && d.apply && d.extra && d.dropped() }},
	{"6.2", func(d *difference) bool { return d.what == value && d.apply && d.extra && d.inLive() }},
	{"6.1", func(d *difference) bool { return d.what == value && d.apply && d.missing && d.dropped() }},
	{"3.1", func(d *difference) bool {
		return d.what == value && d.apply && d.at.String() != ".metadata.generation"
	}},
	{"13.1", func(d *difference) bool { return d.what == written && d.apply }},
	{"", func(d *difference) bool { return true }},
}

// rulesOf returns the rules that differences break, the verdict first. It is "" if no rule is about it.
func rulesOf(differences []difference) (rules []string) {
	var rows []int
	for i := range differences {
		for row := range verdicts {
			if verdicts[row].is(&differences[i]) {
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

// A Rule is a rule of doc/spec.md.
type Rule struct {
	Number, Text, Link string
}

var (
	chapterInSpec = regexp.MustCompile(`(?m)^## (\d+) (.*)$`)
	ruleInSpec    = regexp.MustCompile(`(?m)^- \*\*(\d+\.\d+)\*\* ((?:.|\n {2})*)`)
)

// rules returns the rules of doc/spec.md, and last what stands for none of them.
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
