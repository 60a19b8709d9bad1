package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// DefinitionsOptions say how many random histories to run, and with which seeds: the n-th history of each definition
// has the seed Seed+n.
type DefinitionsOptions struct {
	Seed     uint64
	Count    int           // histories for each definition
	Duration time.Duration // for all definitions, instead of Count; 0 for none
	Parallel int
}

// Definitions are CustomResourceDefinitions, with the results of random writes to their objects by both engines.
type Definitions struct {
	all      []*checked
	total    checked
	bad      []error
	isServed bool     // writes are also sent to a server
	skipped  []string // skipped resources of the server, with the reason
}

// checked is a definition with the totals of its histories.
type checked struct {
	oracle.Definition
	name                                   string
	histories, writes, stored, unexplained int
	uncompared                             int
	refused                                map[string]int  // writes that a server rejected, by reason
	met                                    map[int]int     // known differences, by number
	first                                  *oracle.History // the failed history with the smallest seed
	seed                                   uint64          // the seed of first
}

// NewDefinitions reads CustomResourceDefinitions from documents, and ignores other kinds. Documents that can't be
// read, and definitions that kube-apiserver would not serve, are recorded as bad.
func NewDefinitions(documents []document.Document) *Definitions {
	return newDefinitions(documents, openapi.CompileCRD)
}

func newDefinitions(
	documents []document.Document, compile func([]byte) (*openapi.Registry, error),
) *Definitions {
	d := &Definitions{total: checked{met: map[int]int{}}}
	for _, document := range documents {
		if document.Err == nil && document.Tree["kind"] != "CustomResourceDefinition" {
			continue
		}
		definition, data, err := newChecked(document)
		if err != nil {
			d.bad = append(d.bad, document.Wrap(err))
			continue
		}
		if definition.Tenure, err = compile(data); err != nil {
			d.add(definition, oracle.History{Err: fmt.Errorf("only upstream accepts the definition: %w", err)}, 0)
		}
		d.all = append(d.all, definition)
	}
	return d
}

// ListDefinitions returns the CustomResourceDefinitions of a cluster.
func ListDefinitions(ctx context.Context, config *rest.Config) (out []document.Document, err error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		out = append(out, document.Document{Tree: item.Object})
	}
	return out, nil
}

// newChecked returns a definition without results, and the definition as JSON.
func newChecked(document document.Document) (out *checked, data []byte, err error) {
	if document.Err != nil {
		return nil, nil, document.Err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document.Tree, crd); err != nil {
		return nil, nil, err
	}
	if want := apiextensionsv1.SchemeGroupVersion.String(); crd.APIVersion != want {
		return nil, nil, fmt.Errorf("%s: apiVersion is %q, expected %s", crd.Name, crd.APIVersion, want)
	}
	definition, err := newDefinition(crd)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	data, err = json.Marshal(document.Tree)
	return &checked{Definition: *definition, name: crd.Name, met: map[int]int{}}, data, err
}

// newDefinition compiles a definition for upstream, as kube-apiserver does.
func newDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*oracle.Definition, error) {
	structurals := map[string]*structuralschema.Structural{}
	d := &oracle.Definition{
		Kind:    schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
		Schemas: map[string]*spec.Schema{},
		Prune:   func(version string, object map[string]any) { pruning.Prune(object, structurals[version], true) },
	}
	var specs []*spec3.OpenAPI
	for _, v := range crd.Spec.Versions {
		structural, err := structuralOf(v)
		if err != nil {
			return nil, fmt.Errorf("version %s: schema is not structural: %w", v.Name, err)
		}
		document, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{})
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", v.Name, err)
		}
		specs = append(specs, document)
		// Encode and decode it, so that extensions get the Go types that a generator expects.
		data, err := json.Marshal(structural.ToKubeOpenAPI())
		d.Schemas[v.Name] = &spec.Schema{}
		if err = errors.Join(err, json.Unmarshal(data, d.Schemas[v.Name])); err != nil {
			return nil, fmt.Errorf("version %s: %w", v.Name, err)
		}
		structurals[v.Name] = structural
		d.Versions = append(d.Versions, v.Name)
		d.HasStatus = d.HasStatus || v.Subresources != nil && v.Subresources.Status != nil
	}
	merged, err := builder.MergeSpecsV3(specs...)
	if err == nil && merged.Components == nil {
		err = errors.New("no versions")
	}
	if err != nil {
		return nil, err
	}
	d.Upstream, err = managedfields.NewTypeConverter(merged.Components.Schemas, crd.Spec.PreserveUnknownFields)
	return d, err
}

func structuralOf(v apiextensionsv1.CustomResourceDefinitionVersion) (*structuralschema.Structural, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, errors.New("missing")
	}
	var props apiextensions.JSONSchemaProps
	in := v.Schema.OpenAPIV3Schema
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in, &props, nil)
	if err != nil {
		return nil, err
	}
	out, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	return out, structuralschema.ValidateStructural(nil, out).ToAggregate()
}

// add adds the result of a history with a seed. It keeps the failed history with the smallest seed.
func (d *Definitions) add(c *checked, h oracle.History, seed uint64) {
	for _, sum := range []*checked{c, &d.total} {
		sum.histories++
		sum.writes += len(h.Writes)
		sum.stored += h.Stored
		sum.uncompared += h.Uncompared
		for number, n := range h.Met {
			sum.met[number] += n
		}
		for reason, n := range h.Refused {
			sum.refused[reason] += n
		}
		if h.Err != nil {
			sum.unexplained++
		}
	}
	if h.Err != nil && (c.first == nil || seed < c.seed) {
		c.first, c.seed = &h, seed
	}
}

// maxReplays limits the effort of shrinking a failed history.
const maxReplays = 3000

// Run runs random histories in both engines, until the limits of options are reached or ctx is done. It then shrinks
// the first failed history of each definition.
func (d *Definitions) Run(ctx context.Context, options DefinitionsOptions) {
	if options.Duration > 0 {
		timed, cancel := context.WithTimeout(ctx, options.Duration)
		defer cancel()
		ctx = timed
	}
	usable := slices.DeleteFunc(slices.Clone(d.all), func(c *checked) bool { return c.Tenure == nil })
	var group sync.WaitGroup
	var mutex sync.Mutex
	var started atomic.Int64
	for range max(options.Parallel, 1) {
		group.Go(func() {
			for len(usable) > 0 && ctx.Err() == nil {
				n := int(started.Add(1) - 1)
				if options.Duration == 0 && n >= options.Count*len(usable) {
					return
				}
				c, seed := usable[n%len(usable)], options.Seed+uint64(n/len(usable))
				h := c.Random(seed)
				mutex.Lock()
				d.add(c, h, seed)
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	for _, c := range usable {
		if c.first != nil {
			*c.first = c.Shrink(*c.first, maxReplays)
		}
	}
}

// Write writes a table of the definitions, and the shortest failed history of each. failed reports whether any history
// failed. The error reports bad definitions, or that there is no definition.
func (d *Definitions) Write(w io.Writer) (failed bool, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	title, more := "DEFINITION", ""
	d.total.name = printable.Counted(len(d.all), "definition", "definitions")
	if d.isServed {
		title, more = "RESOURCE", "REFUSED\tNOT COMPARED\t"
		d.total.name = printable.Counted(len(d.all), "resource", "resources")
	}
	fmt.Fprintf(table, "%s\tVERSIONS\tHISTORIES\tWRITES\tSTORED\t%sNUMBERED DIFFERENCES\tUNEXPLAINED\n", title, more)
	for _, c := range append(slices.Clone(d.all), &d.total) {
		if d.isServed {
			more = fmt.Sprintf("%d\t%d\t", sum(c.refused), c.uncompared)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s%s\t%d\n", c.name, strings.Join(c.Versions, ","), c.histories, c.writes,
			c.stored, more, strings.Trim(fmt.Sprint(c.met), "map[]"), c.unexplained)
		if reason := c.mostRefused(); c.stored == 0 && reason != "" && c != &d.total {
			d.skipped = append(d.skipped, c.name+": every write was refused, most of them by "+reason)
		}
	}
	err = table.Flush()
	for _, skipped := range d.skipped {
		fmt.Fprintln(w, "skipped", printable.Text(skipped))
	}
	for _, bad := range d.bad {
		fmt.Fprintf(w, "bad: %s\n", printable.Text(bad.Error()))
	}
	for _, c := range d.all {
		if c.first == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s differs, seed %d:\n", c.name, c.seed)
		for _, write := range c.first.Writes {
			fmt.Fprintln(w, write)
		}
		fmt.Fprintln(w, c.first.Err)
	}
	switch {
	case err != nil:
	case len(d.bad) > 0:
		err = errors.New(printable.Counted(len(d.bad), "bad definition", "bad definitions"))
	case len(d.all) == 0 && d.isServed:
		err = errors.New("no resources that can be written to")
	case len(d.all) == 0:
		err = errors.New("no CustomResourceDefinitions")
	}
	return d.total.unexplained > 0, err
}

func sum(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// mostRefused returns the most frequent reason for which writes were rejected; "" if there is none.
func (c *checked) mostRefused() string {
	reasons := slices.Sorted(maps.Keys(c.refused))
	slices.SortStableFunc(reasons, func(a, b string) int { return c.refused[b] - c.refused[a] })
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0]
}
