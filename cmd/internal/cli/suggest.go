package cli

import (
	"cmp"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// suggest returns the functions that turn suggestions into commands. The commands get all flags of this command that
// select the place, so that they act on the same place. All suggested commands are made here.
func (f *placeFlags) suggest() view.Suggest { return f.suggestFor(objectArguments) }

// placeNames returns the names of the flags that select the place.
func placeNames() []string { return append(clusterFlags(), "store", "live", "schema") }

// suggestFor is like suggest, but calls the parameter objects to get the arguments that select objects.
func (f *placeFlags) suggestFor(objects func(advice.Objects) []string) view.Suggest {
	given := flagsOf(f.cmd, func(name string) bool { return slices.Contains(placeNames(), name) })
	return view.Suggest{
		Arguments: func(s advice.Suggestion) []string {
			if a, ok := s.Action.(advice.AddPermission); ok {
				return append([]string{"policy", "permit", f.policyFile()}, permitArguments(a)...)
			}
			verb, named, flags := f.actionArguments(s.Action)
			if verb == "" {
				return nil
			}
			return withoutToken(slices.Concat([]string{verb}, objects(named), flags, given))
		},
		Line: func(args []string) string { return commandLine(f.env, args) },
	}
}

// actionArguments returns the verb of an action, the objects on which it acts, and its flags. The verb is "" if no
// command does the action.
func (f *placeFlags) actionArguments(action advice.Action) (verb string, on advice.Objects, flags []string) {
	switch a := action.(type) {
	case advice.Move:
		switch move := a.Move.(type) {
		case ownership.Transfer:
			flags = append(keyArguments("from", move.From), keyArguments("to", move.To)...)
			return "transfer", a.Objects, append(flags, fieldArguments(move.Fields)...)
		case ownership.Adopt:
			return "adopt", a.Objects, append(keyArguments("to", move.To), fieldArguments(move.Fields)...)
		}
	case advice.Drop:
		if a.Undecodable {
			return "drop", a.Objects, []string{"--undecodable"}
		}
		return "drop", a.Objects, keyArguments("from", a.From)
	case advice.Upgrade:
		flags = []string{"--field-manager", a.Manager}
		if a.From != "" {
			flags = append(flags, "--from", a.From, "--everything")
		}
		return "upgrade", a.Objects, flags
	case advice.HandOver:
		flags = []string{"-f", "MANIFEST"}
		if f.cmd.Name() == "handover" { // the manifest that the user gave
			flags = flagsOf(f.cmd, func(name string) bool { return slices.Contains(inputNames, name) })
		}
		flags = append(append(flags, "--field-manager", a.Manager), fieldArguments(fieldpath.NewSet(a.Fields...))...)
		return "handover", advice.Objects{}, append(flags, objectArguments(advice.Objects{Namespace: a.Namespace})...)
	case advice.Extract:
		flags = append(keyArguments("manager", a.From), fieldArguments(fieldpath.NewSet(a.Fields...))...)
		return "extract", a.Objects, flags
	case advice.Repeat:
		others := append(placeNames(), "cache-dir", "namespace", "all-namespaces", "selector", "field-selector",
			"filename", "kustomize", "recursive", "app", "yes")
		flags = flagsOf(f.cmd, func(name string) bool { return !slices.Contains(others, name) })
		return f.cmd.Name(), a.Objects, flags
	case advice.Look:
		return "blame", a.Objects, nil
	case advice.Resolve:
		known := []string{"field-manager", "namespace", "subresource", "selector"}
		switch {
		case f.usedPolicy() != "":
			return "", advice.Objects{}, nil // --resolve decides all conflicts, including those that the policy decides
		case f.sources[a.File] != 1: // conflicts would also resolve other documents
			return "", advice.Objects{}, nil
		case len(f.sources) == 1:
			known = append(known, inputNames...)
		case f.isFile(a.File):
			flags = []string{"-f", a.File}
		default: // such as one document of a kustomization
			return "", advice.Objects{}, nil
		}
		flags = append(flags, flagsOf(f.cmd, func(name string) bool { return slices.Contains(known, name) })...)
		return "conflicts", advice.Objects{}, append(flags, "--resolve", string(a.Decision))
	}
	return "", advice.Objects{}, nil
}

// inputNames are the names of the flags that select manifests.
var inputNames = []string{"filename", "kustomize", "recursive"}

// countSources counts the documents of each file, for suggestions.
func (f *placeFlags) countSources(docs []document.Document) {
	f.sources = map[string]int{}
	for _, doc := range docs {
		f.sources[doc.Source]++
	}
}

func (f *placeFlags) isFile(name string) bool {
	info, err := os.Stat(f.env.Path(name))
	return err == nil && info.Mode().IsRegular()
}

// policyFile returns the name of the policy that the command uses; without a policy, the name of a file to create.
func (f *placeFlags) policyFile() string { return cmp.Or(f.usedPolicy(), "tenure.yaml") }

// usedPolicy returns the name of the policy that the command uses; "" if there is none.
func (f *placeFlags) usedPolicy() string {
	if flag := f.cmd.Flags().Lookup("policy"); flag != nil && flag.Value.String() != "" {
		return flag.Value.String()
	}
	return f.env.Getenv(policyVariable)
}

// permitArguments returns the arguments of policy permit.
func permitArguments(a advice.AddPermission) []string {
	args := []string{"--manager", a.Owner.Manager, "--operation", string(a.Owner.Operation)}
	if a.Owner.Subresource != "" {
		args = append(args, "--subresource", a.Owner.Subresource)
	}
	return append(args, "--kind", a.Kind.Kind+"."+a.Kind.Group, "--field", a.Field)
}

// objectArguments returns the arguments that select objects.
func objectArguments(o advice.Objects) (args []string) {
	if o.Name != "" {
		args = append(args, o.Kinds[0]+"/"+o.Name)
	} else if len(o.Kinds) > 0 {
		args = append(args, strings.Join(o.Kinds, ","))
	}
	if o.Namespace != "" {
		args = append(args, "-n", o.Namespace)
	}
	return args
}

// keyArguments returns the flags that select an entry.
func keyArguments(prefix string, k managedfields.Key) []string {
	args := []string{"--" + prefix, k.Manager}
	if k.Operation == metav1.ManagedFieldsOperationApply {
		k.APIVersion = "" // a manager has one Apply entry for the main resource, and one for each subresource
	}
	for _, part := range []struct{ name, value string }{
		{"operation", string(k.Operation)}, {"version", k.APIVersion}, {"subresource", k.Subresource},
	} {
		if part.value != "" {
			args = append(args, "--"+prefix+"-"+part.name, part.value)
		}
	}
	return args
}

func fieldArguments(fields *fieldpath.Set) (args []string) {
	for path := range fields.All() {
		args = append(args, "--field", path.String())
	}
	return args
}
