package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/managedfields"
)

// pruneFlags are the flags of what an apply with --prune would delete, as kubectl has them.
type pruneFlags struct {
	prune    bool
	all      bool
	kinds    []string
	applySet string // the parent's name
}

func (f *pruneFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(
		&f.prune,
		"prune",
		false,
		"also list the objects that are not in the input any more; needs -l, --all or --applyset",
	)
	flags.BoolVar(&f.all, "all", false, "prune objects with any labels")
	flags.StringArrayVar(&f.kinds, "prune-allowlist", nil,
		"prune only objects of the kind `GROUP/VERSION/KIND`, such as core/v1/ConfigMap; may be given several times")
	flags.StringVar(&f.applySet, "applyset", "",
		"prune the members of an ApplySet, whose `PARENT` is named as [RESOURCE[.GROUP]/]NAME; a Secret without a resource")
}

// check returns what can be pruned, without the namespaces; ok is false without --prune.
func (f *pruneFlags) check(selector string) (c place.Candidates, ok bool, err error) {
	switch {
	case !f.prune && (f.all || len(f.kinds) > 0 || f.applySet != ""):
		return c, false, errors.New("--all, --prune-allowlist and --applyset need --prune")
	case !f.prune:
		return c, false, nil
	case f.applySet != "" && (selector != "" || f.all || len(f.kinds) > 0):
		return c, false, errors.New("--applyset does not go with -l, --all or --prune-allowlist")
	case f.applySet != "":
		return c, true, nil
	case f.all == (selector != ""):
		return c, false, errors.New("--prune: expected -l, --all or --applyset")
	}
	if c.Selector, err = labels.Parse(selector); err != nil {
		return c, false, fmt.Errorf("-l: %w", err)
	}
	c.Kinds = place.PrunedKinds
	if len(f.kinds) > 0 {
		c.Kinds = nil
	}
	for _, text := range f.kinds {
		parts := strings.Split(text, "/")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			return c, false, fmt.Errorf("--prune-allowlist: expected GROUP/VERSION/KIND, got %q", text)
		}
		if parts[0] == "core" {
			parts[0] = ""
		}
		c.Kinds = append(c.Kinds, schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]})
	}
	return c, true, nil
}

// objectKey names an object.
type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

func keyOf(t *place.Target) objectKey { return objectKey{t.Kind.GroupKind(), t.Namespace, t.Name} }

// keysOf returns the keys of what is planned.
func keysOf(planned []view.Planned) map[objectKey]bool {
	keys := map[objectKey]bool{}
	for i := range planned {
		keys[keyOf(planned[i].Target)] = true
	}
	return keys
}

// pruned returns the objects that were applied and are not in the input: the members of the ApplySet; without one,
// those with the annotation of kubectl apply, and those with an Apply entry of the manager.
func pruned(
	ctx context.Context, p place.Place, c place.Candidates, set *applySet, plans []view.Planned, manager string,
) ([]view.Pruned, error) {
	if set != nil {
		set.limit(&c)
	}
	inInput := keysOf(plans)
	for i := range plans {
		t := plans[i].Target
		if set == nil && t.Namespace != "" && !slices.Contains(c.Namespaces, t.Namespace) {
			c.Namespaces = append(c.Namespaces, t.Namespace)
		}
	}
	slices.Sort(c.Namespaces)
	targets, err := p.Candidates(ctx, c)
	var out []view.Pruned
	for _, t := range targets {
		if inInput[keyOf(t)] {
			continue
		}
		if set != nil {
			out = append(out, view.Pruned{Target: t, ApplySet: set.parent})
		} else if by := appliedBy(t, manager); by != "" {
			out = append(out, view.Pruned{Target: t, By: by})
		}
	}
	slices.SortFunc(out, func(a, b view.Pruned) int { // what takes others with it is seen first
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(a.Reference(), b.Reference()),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return out, err
}

// severity orders deletions, the worst first.
func severity(p view.Pruned) int {
	switch {
	case p.Kind.GroupKind() == place.NamespaceKind || p.Kind.GroupKind() == place.DefinitionKind:
		return 0
	case p.Takes() != "":
		return 1
	}
	return 2
}

// appliedBy returns who applied an object: kubectl apply, by the annotation, or the manager; empty for neither.
func appliedBy(t *place.Target, manager string) string {
	object := &unstructured.Unstructured{Object: t.Object}
	if _, ok := object.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok {
		return "kubectl apply"
	}
	list, _, err := managedfields.Read(object)
	if err == nil && list.Get(managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", "")) != nil {
		return manager
	}
	return ""
}
