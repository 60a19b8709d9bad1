package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
)

// checkBefore adds a check of flags that runs before the command.
func checkBefore(cmd *cobra.Command, check func() error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// addFormat adds the flag --output for formats.
func addFormat(env *process.Env, cmd *cobra.Command, format *string, formats ...string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "output `FORMAT`: "+strings.Join(formats, ", "))
	completeChoices(env, cmd, "output", formats...)
	checkBefore(cmd, func() error { return checkFormat(*format, formats...) })
}

// checkFormat returns an error for an unknown format.
func checkFormat(format string, formats ...string) error {
	if format != "" && !slices.Contains(formats, format) {
		return fmt.Errorf("--output: expected one of %s, got %q", strings.Join(formats, ", "), format)
	}
	return nil
}

// addOutput adds the flags for printing objects in the given formats.
func addOutput(env *process.Env, cmd *cobra.Command, o *view.Output, formats ...string) {
	addFormat(env, cmd, &o.Format, formats...)
	cmd.Flags().BoolVar(&o.ManagedFields, "show-managed-fields", false, "print metadata.managedFields in yaml and json")
}

// addDryRun adds the flag --dry-run, with kubectl's values. isLocal is true if the command itself computes the dry
// run. Otherwise the server does, and "client" is refused with kubectl's error for server-side apply.
func addDryRun(cmd *cobra.Command, into *bool, isLocal bool, usage string) {
	cmd.Flags().BoolFunc("dry-run", usage, func(text string) error {
		isDryRun, err := strconv.ParseBool(text)
		switch {
		case text == "client" && !isLocal:
			return errors.New("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)")
		case text == "client" || text == "server":
			isDryRun = true
		case err != nil && text != "none":
			return fmt.Errorf(`invalid dry-run value (%q). Must be "none", "server", or "client"`, text)
		}
		*into = isDryRun
		return nil
	})
}

// addManager adds the flag for a field manager.
func addManager(cmd *cobra.Command, name *string, otherwise, usage string) {
	cmd.Flags().StringVar(name, "field-manager", otherwise, usage)
	checkBefore(cmd, func() error {
		if *name == "" {
			return errors.New("--field-manager: the name is missing")
		}
		if err := managedfields.ValidateManager(*name); err != nil {
			return fmt.Errorf("--field-manager: %w", err)
		}
		return nil
	})
}

// defaultConcurrency is the default of --concurrency, the number of concurrent requests.
const defaultConcurrency = 16

// addConcurrency adds the flag for the number of concurrent requests.
func addConcurrency(cmd *cobra.Command, into *int) {
	cmd.Flags().IntVar(into, "concurrency", defaultConcurrency,
		"send at most `N` requests at the same time")
	checkBefore(cmd, func() error {
		if *into < 1 {
			return fmt.Errorf("--concurrency: expected at least 1, got %d", *into)
		}
		return nil
	})
}

// inParallel calls do for each index below count, with the given number of concurrent workers, and shows the progress.
func inParallel(env *process.Env, what string, workers, count int, do func(i int)) {
	bar := view.NewBar(env, what, count)
	workqueue.ParallelizeUntil(context.Background(), workers, count, func(i int) {
		do(i)
		bar.Step()
	})
	bar.Done()
}

// inputFlags are the flags that name input documents, the same as kubectl's.
type inputFlags struct {
	inputs manifest.Inputs
}

func (f *inputFlags) add(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.inputs.Filenames, "filename", "f", nil,
		"`FILE`, folder, pattern or URL with "+what+", or - for stdin; may be given several times")
	flags.StringVarP(&f.inputs.Kustomize, "kustomize", "k", "", "build the kustomization in `DIR`")
	flags.BoolVarP(&f.inputs.Recursive, "recursive", "R", false, "read subfolders too")
}

// each calls see with the documents that match a label selector. It returns an error if there are none.
func (f *inputFlags) each(env *process.Env, selector string, see func(document.Document)) error {
	selected, err := labels.Parse(selector)
	if err != nil {
		return fmt.Errorf("-l: %w", err)
	}
	found := false
	err = f.inputs.Each(env, func(doc document.Document) {
		object := unstructured.Unstructured{Object: doc.Tree}
		if doc.Err == nil && !selected.Matches(labels.Set(object.GetLabels())) {
			return
		}
		found = true
		see(doc)
	})
	if err == nil && !found {
		err = errors.New("-f: no objects found")
	}
	return err
}

// read returns the documents that match a label selector. It returns an error if there are none. If packs is true, the
// documents are packed to save memory: see [document.Document.Packed].
func (f *inputFlags) read(env *process.Env, selector string, packs bool) (docs []document.Document, err error) {
	err = f.each(env, selector, func(doc document.Document) {
		if packs {
			doc = doc.Packed()
		}
		docs = append(docs, doc)
	})
	return docs, err
}

// errNoObjects reports that no object was selected.
var errNoObjects = errors.New("no objects found")

// noteEmpty prints errNoObjects and returns nil, for commands that treat an empty selection as success.
func noteEmpty(env *process.Env, err error) error {
	if errors.Is(err, errNoObjects) {
		fmt.Fprintln(env.Stderr, err)
		return nil
	}
	return err
}

// objectFlags are the flags that select objects.
type objectFlags struct {
	inputFlags
	placeFlags
	appFlags
	selector string
	fields   string
	all      bool
}

func (f *objectFlags) add(env *process.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.inputFlags.add(cmd, "manifests of the objects")
	addSelectors(flags, &f.selector, &f.fields)
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "objects of all namespaces")
	f.placeFlags.add(env, cmd)
	f.appFlags.add(&f.placeFlags)
	cmd.ValidArgsFunction = f.completeObjects
}

func addSelectors(flags *pflag.FlagSet, labels, fields *string) {
	flags.StringVarP(labels, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	flags.StringVar(fields, "field-selector", "", "only objects with these `FIELDS`, as in metadata.name=web")
}

// withObjects opens the place, and calls do with the objects that the command line selects, and with the joined
// errors of objects that could not be read. If there is no object at all, it returns an error without calling do. It
// closes the place after do.
func (f *objectFlags) withObjects(
	args []string, do func(p place.Place, targets []*place.Target, missing error) error,
) error {
	var at place.Place
	var targets []*place.Target
	bar := f.readingBar()
	defer bar.Done() // in case of an error before the second function is called
	return f.eachObject(args, func(p place.Place, t *place.Target) {
		bar.Step()
		at, targets = p, append(targets, t)
	}, func(missing error) error {
		bar.Done()
		return do(at, targets, missing)
	})
}

// readingBar returns a bar that counts the objects as they are read. The bar is shown only if the objects are not in
// files, and --app, -A, -l or --field-selector is set.
func (f *objectFlags) readingBar() view.Bar {
	if f.live == nil && (f.all || f.selector != "" || f.fields != "" || f.app != "") {
		return view.NewBar(f.env, "reading objects", -1)
	}
	return view.Bar{}
}

// eachObject opens the place, and calls see with each object that the command line selects, as soon as the object is
// read. It then calls end with the joined errors of objects that could not be read. If there is no object at all, it
// returns an error without calling end. It keeps no objects in memory, and closes the place after end.
func (f *objectFlags) eachObject(
	args []string, see func(place.Place, *place.Target), end func(missing error) error,
) error {
	switch hasInputs := !f.inputs.Empty(); {
	case f.app != "" && (hasInputs || len(args) > 0 || f.all || f.selector != "" || f.fields != ""):
		return errors.New("choose objects in one way only: by --app, by manifests (-f, -k), or by name, -l and -A")
	case hasInputs && (len(args) > 0 || f.all || f.selector != "" || f.fields != ""):
		return errors.New("choose objects in one way only: by manifests (-f, -k), or by name, -l and -A")
	case f.live != nil && (f.all || f.fields != ""):
		return errors.New("--live cannot be used with -A or --field-selector, only with KIND, NAME and -l")
	case f.live == nil && !hasInputs && f.app == "" && len(args) == 0:
		return errors.New("no objects: expected KIND, KIND NAME or KIND/NAME, --app, manifests with -f, or --live")
	}
	return f.withPlace(process.NoStore, func(p place.Place) error {
		found := false
		err := f.visit(p, args, func(t *place.Target) {
			found = true
			see(p, t)
		})
		switch {
		case found:
			return end(err)
		case err == nil:
			return fmt.Errorf("%w in %s", errNoObjects, p)
		}
		return err
	})
}

// visit calls see with each object that the command line selects.
func (f *objectFlags) visit(p place.Place, args []string, see func(*place.Target)) error {
	ctx := f.env.Context
	if f.app != "" {
		targets, err := f.members(&f.placeFlags, p)
		for _, t := range targets {
			see(t)
		}
		return err
	}
	if f.inputs.Empty() {
		return p.Visit(ctx, place.Selection{
			Args: args, Selector: f.selector, Fields: f.fields, Namespace: f.namespace(), All: f.all,
		}, see)
	}
	var errs []error
	err := f.each(f.env, f.selector, func(doc document.Document) {
		t, err := (*place.Target)(nil), doc.Err
		if err == nil {
			t, _, err = p.Live(ctx, doc.Tree)
		}
		switch {
		case err != nil:
			errs = append(errs, doc.Wrap(err))
		case t.Object == nil:
			errs = append(errs, doc.Wrap(fmt.Errorf("%s: %w", t.Title(), cluster.ErrNotFound)))
		default:
			t.Asked = true
			see(t)
		}
	})
	return errors.Join(append(errs, err)...)
}
