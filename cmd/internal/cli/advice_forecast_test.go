package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// checkForecast moves a field to an applier, applies a manifest of the old or the new owner, and checks what the move
// said about this apply.
func (a *adviceWorld) checkForecast() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	tree := a.variant(o)
	kind := a.kind(tree)
	live, err := a.client.Get(t.Context(), kind, o.namespace, o.name)
	if err != nil {
		return
	}
	list, err := managedfields.Read(place.Wrap(live))
	require.NoError(t, err)
	list = slices.DeleteFunc(list, func(e managedfields.Entry) bool {
		return e.APIVersion != tree["apiVersion"] || e.Subresource != ""
	})
	if len(list) == 0 {
		return
	}
	from, to := list[a.r.IntN(len(list))], managedfields.Key{Manager: a.manager()}
	if from.Manager == to.Manager {
		return
	}
	target, _, err := a.place.Live(t.Context(), tree)
	require.NoError(t, err)
	leaves := slices.Collect(from.Owned().Leaves().All())
	if both := target.Kind.Typ.FieldSet(tree).Intersection(from.Owned()).Leaves(); !both.IsEmpty() && a.r.IntN(2) == 0 {
		leaves = slices.Collect(both.All())
	}
	args := []string{"transfer", strings.ToLower(kind.GroupKind().String()) + "/" + o.name}
	if kind.Namespaced {
		args = append(args, "-n", o.namespace)
	}
	args = slices.Concat(args, keyArguments("from", from.Key), keyArguments("to", to),
		[]string{"--field", leaves[a.r.IntN(len(leaves))].String()}, a.flags)
	status, forecast, errs := a.run(append(slices.Clone(args), "--dry-run")...)
	if status != 0 || a.r.IntN(3) == 0 {
		to.Manager = from.Manager // the old owner applies next
	}
	if status, _, _ := a.run(append(args, "--yes")...); status != 0 {
		return // the server does not accept the object any more, or the field no longer exists
	}
	write(t, a.dir, map[string]string{"intent.json": jsonText(tree)})
	apply := append([]string{"plan", "-f", "intent.json", "--field-manager", to.Manager, "--apply", "--yes",
		"--force-conflicts"}, a.flags...)
	if status, _, _ := a.run(apply...); status > statusChanges {
		return
	}
	after, err := a.client.Get(t.Context(), kind, o.namespace, o.name)
	require.NoError(t, err)
	list, err = managedfields.Read(place.Wrap(after))
	require.NoError(t, err)
	about := fmt.Sprintf("seed %d: %v\n%s%s\nintent of %q: %s\nlive %s\nafter %s", a.seed, args, forecast, errs,
		to.Manager, jsonText(tree), jsonText(live), jsonText(after))
	a.checkForecasts(forecast, to.Manager, func(line, said string) {
		path, err := fieldpath.ParsePath(strings.TrimSpace(line))
		require.NoError(t, err, about)
		var owners []managedfields.Key
		applier := managedfields.KeyOf(to.Manager, metav1.ManagedFieldsOperationApply, "", "")
		for _, e := range list {
			if !e.Owned().AtOrBelow(fieldpath.NewSet(path)).IsEmpty() {
				owners = append(owners, e.Key)
			}
		}
		_, isWanted := target.Kind.Typ.Get(tree, path)
		switch {
		case strings.HasPrefix(said, "takes back"):
			a.followed["forecast regains"]++
			require.Equal(t, isWanted, slices.Contains(owners, applier), "%s %s\n%s", said, path, about)
		case isWanted:
			a.followed["forecast sets"]++
			require.Contains(t, said, "or sets", "%s\n%s", path, about)
			require.Contains(t, owners, applier, "%s\n%s", path, about)
		default:
			a.followed["forecast deletes"]++
			require.Empty(t, owners, "%s %s\n%s", said, path, about) // the field may exist, with its default
		}
	})
}

// checkForecasts calls check for each field in the forecast of a manager's next apply, with what the forecast says
// about it.
func (a *adviceWorld) checkForecasts(forecast, manager string, check func(field, said string)) {
	said := ""
	for line := range strings.Lines(forecast) {
		if !strings.HasPrefix(line, "    ") {
			_, said, _ = strings.Cut(line, "the next apply of "+strconv.Quote(manager)+" (Apply) ")
		} else if said != "" {
			check(line, strings.TrimSpace(said))
		}
	}
}

// releaseName is the Helm release of a third of the objects.
const releaseName = "web"
