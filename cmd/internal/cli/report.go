package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/excess"
	"github.com/tenure-ssa/tenure/ownership/report"
)

type reportFlags struct {
	objectFlags
	concurrency int
	silent      time.Duration
	applier     string
	format      string
	policy      string
	drift       bool
	named       []string // the arguments, if they name objects or select them in files
}

func newReport(env *process.Env) *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:   "report [KIND…] [-A] | --live FILE",
		Short: "Summarize who owns what in a whole cluster",
		Long: `Report adds up the managed fields of many objects. For each manager, it shows the
number of fields, the kinds, the size of managed fields and the time of the last
write. It also shows objects that are still applied client-side, and the effect of
their migration; entries of versions that are no longer served; silent managers,
which have not written for the duration of --silent; fields with several owners, and
fields without an owner, apart from defaults; and entries that were merged into
ancient-changes. It ends with suggested commands.

Report reads objects of KIND, or of all kinds that can be listed. It reads one
namespace (-n; the default is the kubeconfig's namespace) or, with -A, all
namespaces. With -f, it reads the live objects of manifests; with --live, it reads
objects in files. It reads objects in chunks, and keeps only some examples in
memory. Kinds that you may not list are omitted, with a note; if you named such a
kind, that is an error.

With --policy, report lists only the fields that managers own but may not own, each
with its owner and the time of the owner's entry. A manager may own the fields that
the policy's permissions name for it, and the fields that a rule gives up to it or
shares with it. Report ignores managers that the policy does not name, components of
the control plane, and entries of the status subresource.

With --policy and --drift, report lists the owned fields and list items that none of
their owners may own, each with its value, its owners, the times of the owners'
entries, and the commands that end the drift. A manager that the policy does not
name may own nothing. Unowned fields, and defaults that only Update entries own, are
not drift. To compare with manifests too, use plan --drift.

With --policy, -o ndjson prints a line for each field; with --drift, it prints a
line for each object. It prints lines as soon as objects are read, and keeps no
objects in memory.

Sizes are in bytes of JSON. An apply that changes nothing is not a write, so a
manager that only repeats its last apply may be reported as silent.

Exit status: 0 on success, 1 on any error. With --policy or --drift: 0 if no field
is listed, 1 if some are, 3 on any error. In all cases, the status is 4 instead of 0
if some objects could not be read or compared; stderr names them.`,
		Example: `  tenure report -A
  tenure report -A -o json > report.json

  # only some kinds, of one namespace, for scripts
  tenure report deployments,services -n shop -o json

  # fail if a manager owns fields that it may not own
  tenure report -A --policy tenure.yaml

  kubectl get all -A -o yaml --show-managed-fields | tenure report --live -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case flags.drift:
				return flags.printDrift(args)
			case flags.format == "html":
				return errors.New("-o html needs --drift")
			case flags.policy != "":
				return flags.printExcess(args)
			case flags.format == view.Lines:
				return errors.New("-o ndjson needs --policy or --drift")
			}
			return flags.printReport(args)
		},
	}
	flags.add(env, cmd)
	cmd.Flags().DurationVar(&flags.silent, "silent", 90*24*time.Hour,
		"report a manager as silent if it has not written for `DURATION`, such as 720h")
	addManager(cmd, &flags.applier, kubectlManager,
		"`NAME` of the manager that objects under client-side apply would move to")
	cmd.Flags().StringVar(&flags.policy, "policy", "",
		"list fields that managers own although the policy in `FILE` does not permit it")
	cmd.Flags().BoolVar(&flags.drift, "drift", false,
		"with --policy: list owned fields that none of their owners may own, and the commands that end the drift")
	addConcurrency(cmd, &flags.concurrency)
	addFormat(env, cmd, &flags.format, "text", "json", view.Lines, "html")
	if strings.Contains(env.CommandLine, " --policy") || strings.Contains(env.CommandLine, " --drift") {
		return withErrorStatus(statusFailed, cmd) // also for errors of flags, which are found while flags are parsed
	}
	return cmd
}

func (f *reportFlags) printReport(args []string) error {
	if f.silent <= 0 {
		return fmt.Errorf("--silent: expected a duration above 0, got %s", f.silent)
	}
	var r *report.Report
	in := ""
	err := f.visit(args, func(namespace string, isServed func(schema.GroupVersionKind) bool) func(*place.Target) {
		in = namespace
		r = report.New(f.options(isServed))
		return func(t *place.Target) { r.Add(f.env.Context, objectOf(t)) }
	})
	if r == nil {
		return err
	}
	summary := r.Summary()
	suggest := f.suggestFor(func(o advice.Objects) []string { return f.selected(in, o) })
	if f.format == "json" {
		return errors.Join(view.Encode(f.env.Stdout, f.format, view.ReportData(suggest, summary)), err)
	}
	return errors.Join(view.WriteReport(f.env, f.env.Stdout, suggest, summary), err)
}

// printExcess prints the fields that managers own without permission.
func (f *reportFlags) printExcess(args []string) error {
	p, err := readPolicy(f.env, f.policy)
	if err != nil {
		return err
	}
	found := []excess.Field{}
	isFound := false
	var failed []error
	isEmpty := true
	err = f.visit(args, func(string, func(schema.GroupVersionKind) bool) func(*place.Target) {
		return func(t *place.Target) {
			isEmpty = false
			f.noteUnmanaged(t)
			fields, err := excess.Find(p, place.Wrap(t.Object))
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", t.Title(), err))
			}
			isFound = isFound || len(fields) > 0
			if f.format != view.Lines {
				found = append(found, fields...)
				return
			}
			for _, field := range fields {
				failed = append(failed, view.Encode(f.env.Stdout, view.Lines, field))
			}
		}
	})
	slices.SortStableFunc(found, func(a, b excess.Field) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if f.format == "json" {
		err = errors.Join(err, view.Encode(f.env.Stdout, f.format, map[string]any{"excess": found}))
	} else {
		for _, field := range found {
			fmt.Fprintln(f.env.Stdout, field)
		}
	}
	err = errors.Join(append(failed, err)...)
	if err == nil && isEmpty {
		f.noteEmpty()
	}
	if err == nil && isFound {
		return exitWith(statusChanges)
	}
	return err
}

// printDrift prints the owned fields that none of their owners may own.
func (f *reportFlags) printDrift(args []string) error {
	if f.policy == "" {
		return errors.New("--drift needs --policy: without a manifest, only a policy says who may own what")
	}
	rules, err := readPolicy(f.env, f.policy)
	if err != nil {
		return err
	}
	var found []driftOf
	var count view.DriftCount
	palette := view.PaletteFor(f.env, f.env.Stdout)
	var failed []error
	err = f.visit(args, func(_ string, isServed func(schema.GroupVersionKind) bool) func(*place.Target) {
		return func(t *place.Target) {
			drift, err := planning.DriftOf(t, rules, isServed)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", t.Title(), err))
				count.Uncompared++
				return
			}
			f.noteUnmanaged(t)
			one := view.DriftView{Target: t, Drift: &drift}
			count.Add(one)
			switch {
			case one.IsEmpty():
			case f.format == view.Lines:
				failed = append(failed, view.Encode(f.env.Stdout, view.Lines, view.DriftData(f.suggest(), one)))
			default:
				kept, err := f.driftOf(palette, one)
				failed, found = append(failed, err), append(found, kept)
			}
		}
	})
	slices.SortStableFunc(found, func(a, b driftOf) int {
		return cmp.Or(cmp.Compare(a.reference, b.reference), cmp.Compare(a.namespace, b.namespace))
	})
	err = errors.Join(append(failed, err, f.writeDrift(found, count))...)
	if err == nil && count.Compared+count.Uncompared == 0 {
		f.noteEmpty()
	}
	if err == nil && count.Fields > 0 {
		return exitWith(statusChanges)
	}
	return err
}

// noteEmpty notes that there was nothing to compare with the policy, for example in a namespace that does not exist.
func (f *reportFlags) noteEmpty() {
	f.env.NoteUnread(errors.New("no objects found: nothing was compared"))
}

// noteUnmanaged notes that an object in a file can't be checked, because it has no managed fields.
func (f *reportFlags) noteUnmanaged(t *place.Target) {
	if f.live != nil && document.ManagedFields(t.Object) == nil {
		noteUnmanaged(f.env, t, true)
	}
}

// driftOf keeps the drift of an object until all objects are sorted. It contains the drift as text or JSON, so that the
// object itself can be freed. With -o html, it contains the object instead.
type driftOf struct {
	reference, namespace string
	written              []byte
	view                 view.DriftView
}

func (f *reportFlags) driftOf(p view.Palette, one view.DriftView) (out driftOf, err error) {
	out.reference, out.namespace = one.Reference(), one.Namespace
	var text bytes.Buffer
	switch f.format {
	case "html":
		out.view = one
	case "json":
		err = view.Encode(&text, view.Lines, view.DriftData(f.suggest(), one))
	default:
		fmt.Fprintln(&text, one.Title())
		p.WriteDrift(&text, f.suggest(), one)
	}
	out.written = text.Bytes()
	return out, err
}

// writeDrift writes the drift of all objects in the format of --output.
func (f *reportFlags) writeDrift(found []driftOf, count view.DriftCount) error {
	out := f.env.Stdout
	switch f.format {
	case view.Lines: // already written, one by one
		return nil
	case "json":
		objects := []json.RawMessage{}
		for _, one := range found {
			objects = append(objects, one.written)
		}
		return view.Encode(out, f.format, map[string]any{"objects": objects})
	case "html":
		var views []view.DriftView
		for _, one := range found {
			views = append(views, one.view)
		}
		return view.WriteDriftPage(out, f.suggest(), views, f.env.Now())
	}
	for _, one := range found {
		if _, err := out.Write(one.written); err != nil {
			return err
		}
	}
	return count.Write(out, "")
}

// options returns the options of a report. They cache the results of isServed.
func (f *reportFlags) options(isServed func(schema.GroupVersionKind) bool) report.Options {
	known := map[schema.GroupVersionKind]bool{}
	return report.Options{
		Now: f.env.Now(), Silent: f.silent, Applier: f.applier,
		IsServed: func(gvk schema.GroupVersionKind) bool {
			served, ok := known[gvk]
			if !ok {
				served = isServed(gvk)
				known[gvk] = served
			}
			return served
		},
	}
}

// selected returns arguments that select objects of the report. namespace is the report's namespace; "" for all.
func (f *reportFlags) selected(namespace string, o advice.Objects) (args []string) {
	switch {
	case o.Name != "":
		return objectArguments(o)
	case f.live != nil || f.named != nil || f.app != "" ||
		!f.inputs.Empty() && !slices.Contains(f.inputs.Filenames, "-"):
		args = append(slices.Clone(f.named), flagsOf(f.cmd, func(name string) bool {
			return slices.Contains([]string{"app", "filename", "kustomize", "recursive", "namespace"}, name)
		})...)
	default:
		o.Namespace = namespace
		if args = objectArguments(o); namespace == "" {
			args = append(args, "-A")
		}
		if f.fields != "" {
			args = append(args, "--field-selector", f.fields)
		}
	}
	if o.Name == "" && f.selector != "" {
		args = append(args, "-l", f.selector)
	}
	return args
}

func objectOf(t *place.Target) report.Object {
	o := report.Object{Tree: t.Object}
	if t.Types != nil && t.Kind.Unknown == nil {
		o.Types, o.Converter, o.Defaulter = t.Types, t.Converter(), t.PlanOptions(false).Defaulter
	}
	return o
}

// visitor is called before the objects of a namespace, or of all namespaces, are read. It returns a function that is
// called for each object.
type visitor func(namespace string, isServed func(schema.GroupVersionKind) bool) (look func(*place.Target))

// visit calls begin, which returns a function. It then calls this function with each object that the arguments select.
// The error of visit joins the errors of objects that could not be read.
func (f *reportFlags) visit(args []string, begin visitor) error {
	if f.live != nil || slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "/") }) {
		f.named = args
	}
	isSelected := f.selector != "" || f.fields != ""
	if f.live == nil && f.inputs.Empty() && f.app == "" && f.named == nil && (len(args) == 0 || !isSelected) {
		return f.withPlace(process.NoStore, func(p place.Place) error { return f.visitKinds(p, args, begin) })
	}
	var look func(*place.Target)
	var failed error
	bar := view.Bar{}
	if f.format != view.Lines { // lines are printed meanwhile
		bar = f.readingBar()
	}
	defer bar.Done()
	return f.eachObject(args, func(p place.Place, t *place.Target) {
		bar.Step()
		if look == nil && failed == nil {
			namespace := f.namespace()
			if c, ok := p.(*place.Cluster); ok {
				namespace, failed = f.namespaceIn(c, f.all)
			}
			if failed == nil {
				look = begin(namespace, p.IsServed)
			}
		}
		if look != nil {
			look(t)
		}
	}, func(missing error) error { return errors.Join(missing, failed) })
}

// visitKinds visits all objects of kinds, one page of a list at a time.
func (f *reportFlags) visitKinds(p place.Place, args []string, begin visitor) error {
	kinds, err := kindsOf(f.env, p, args)
	if err != nil {
		return err
	}
	c := place.ClusterOf(p)
	namespace, err := f.namespaceIn(c, f.all)
	if err == nil {
		_, err = labels.Parse(f.selector)
	}
	if err != nil {
		return err
	}
	kinds = reportedKinds(kinds, namespace, len(args) > 0)
	look, isFound := begin(namespace, c.IsServed), false
	bar := view.Bar{}
	if f.format != view.Lines {
		bar = view.NewBar(f.env, "reading kinds", len(kinds))
	}
	in := place.Selection{Namespace: namespace, Selector: f.selector, Fields: f.fields}
	err = c.Each(f.env.Context, kinds, in, f.concurrency, func(t *place.Target) { isFound = true; look(t) }, bar.Step)
	bar.Done()
	if len(args) == 0 {
		err = noteUnlisted(f.env, err)
	}
	if err == nil && !isFound && (f.selector != "" || f.fields != "") {
		err = fmt.Errorf("%w in %s", errNoObjects, p)
	}
	return err
}

// deprecatedKinds are kinds whose objects servers or controllers derive from other objects. The report contains these
// other objects.
var deprecatedKinds = []string{"componentstatuses", "endpoints"}

// reportedKinds returns the kinds to report on: all that the user named. If none was named, it leaves out deprecated
// kinds, one of the two API groups that serve Events, and, in a report about one namespace, cluster-scoped kinds.
func reportedKinds(kinds []cluster.Kind, namespace string, isNamed bool) (out []cluster.Kind) {
	for _, k := range kinds {
		isDeprecated := k.Group == "" && slices.Contains(deprecatedKinds, k.Resource.Resource)
		if isNamed || (k.Namespaced || namespace == "") && k.Group != "events.k8s.io" && !isDeprecated {
			out = append(out, k)
		}
	}
	return out
}
