package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestAdviceAtRandom makes clusters with random histories, as TestTruthAtRandom does, and plans random intents.
// It follows the suggestions that commands print for these intents and in reports, and checks what each suggestion
// promises.
// SEEDS=1:50 makes 50 clusters; with MINUTES=15, no cluster is started after 15 minutes; KUBE_APISERVER names the
// binary of a kube-apiserver to use.
func TestAdviceAtRandom(t *testing.T) {
	first, count, intents := uint64(1), uint64(1), 150
	if text := os.Getenv("SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d:%d", &first, &count)
		require.NoError(t, err)
		intents = 400
	}
	end := time.Now().Add(24 * time.Hour)
	if text := os.Getenv("MINUTES"); text != "" {
		minutes, err := strconv.Atoi(text)
		require.NoError(t, err)
		end = time.Now().Add(time.Duration(minutes) * time.Minute)
	}
	followed, clusters := map[string]int{}, 0
	for seed := first; seed < first+count && time.Now().Before(end); seed++ {
		clusters++
		t.Run(fmt.Sprint(seed), func(t *testing.T) { adviseAtRandom(t, seed, intents, followed, count > 1) })
		t.Log(seed, followed)
	}
	wanted := []string{
		"upgrade", "conflicts", "drop", "promise keeps", "promise done", "promise removes", "policy", "again",
	}
	if count > 1 { // too rare to require of one cluster
		wanted = append(wanted, "transfer", "promise unblocks", "watch", "release", "forecast deletes", "forecast sets",
			"forecast regains", "drift transfer", "drift policy", "drift extract")
	}
	if clusters > 20 {
		wanted = append(wanted, "adopt")
	}
	for _, kind := range wanted {
		require.Positive(t, followed[kind], "%s: %v", kind, followed)
	}
}

// adviseAtRandom follows suggestions in a cluster. watches says whether to follow suggestions about fights, too:
// which fights are found depends on timing.
func adviseAtRandom(t *testing.T, seed uint64, intents int, followed map[string]int, watches bool) {
	var server *testCluster
	if binary := os.Getenv(realServer); binary != "" {
		server = &testCluster{server: startRealServer(testHost{t}, binary)}
	} else {
		server = newTestCluster(testHost{t}, apiserver.Options{})
	}
	client := truthServerOn(t, server)
	a := &adviceWorld{truthWorld: newTruthWorld(t, client, seed), followed: followed}
	a.flags, a.dir = listen(testHost{t}, server), t.TempDir()
	a.install()
	for i := range intents {
		switch {
		case i%25 == 24:
			a.checkReport()
		case i%25 == 12:
			a.checkPolicy()
		case i%25 == 7:
			a.checkDriftAdvice()
		case i%25 == 18:
			a.checkAgain()
		case i%50 == 30 && watches:
			a.checkWatch()
		case i%10 == 5:
			a.checkForecast()
		default:
			a.checkAdvice()
		}
	}
	for range intents { // few intents have conflicts that a policy decides
		if followed["policy"] > 0 {
			break
		}
		a.checkPolicy()
	}
}

// adviceWorld is a cluster in which suggestions are followed.
type adviceWorld struct {
	*truthWorld
	dir      string
	flags    []string
	followed map[string]int
}

// suggested is a suggestion as the command prints it.
type suggested struct {
	Why, Decision string
	Arguments     []string
	Refused       string
	Promise       struct {
		Unblocks, Keeps, Done bool
		NextApplyRemoves      []string
	}
}

// run runs a command in the cluster, and again if the connection ended unexpectedly.
func (a *adviceWorld) run(args ...string) (status int, out, errs string) {
	for range 3 {
		status, out, errs = output(process.Env{Dir: a.dir, Name: "tenure"}, args...)
		if !strings.Contains(errs, "unexpected EOF") {
			break
		}
	}
	return status, out, errs
}

// rarest returns a suggestion whose verb was followed least often, in suggestions of its kind.
func (a *adviceWorld) rarest(found []suggested, kind string) suggested {
	a.r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return slices.MinFunc(found, func(x, y suggested) int {
		return cmp.Compare(a.followed[kind+x.Arguments[0]], a.followed[kind+y.Arguments[0]])
	})
}

// portOutOfRange is part of the error for a node port outside of the server's range, which a dry run does not check.
const portOutOfRange = "provided port is "

// checkAdvice plans an intent, and follows one of the suggestions for it.
func (a *adviceWorld) checkAdvice() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	tree, manager := a.variant(o), a.manager()
	if spec, ok := tree["spec"].(map[string]any); ok && tree["kind"] == "Deployment" && a.r.IntN(4) == 0 {
		spec["strategy"] = map[string]any{"type": "Recreate"} // invalid together with the defaults of another type
	}
	kind := a.kind(tree)
	write(t, a.dir, map[string]string{"intent.json": jsonText(tree)})
	input := append([]string{"-f", "intent.json", "--field-manager", manager}, a.flags...)
	plan := append([]string{"plan"}, input...)
	_, out, errs := a.run(append(plan, "-o", "json")...)
	var report struct {
		Objects []struct{ Ways, Suggestions, Leftovers []suggested }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report), "%s\n%s", out, errs)
	var found []suggested
	for _, o := range report.Objects {
		found = slices.Concat(found, o.Ways, o.Suggestions, o.Leftovers)
	}
	found = slices.DeleteFunc(found, func(s suggested) bool { return len(s.Arguments) == 0 || s.Refused != "" })
	if len(found) == 0 {
		if a.r.IntN(2) == 0 { // so that later intents find another state
			a.run(append(plan, "--apply", "--yes", "--force-conflicts")...)
		}
		a.happen(o)
		return
	}
	s := a.rarest(found, "")
	before, _ := a.client.Get(t.Context(), kind, o.namespace, o.name)
	about := fmt.Sprintf("seed %d, manager %q, intent %s\n%s: %v %+v\nbefore %s\nhistory %s", a.seed, manager,
		jsonText(tree), s.Why, s.Arguments, s.Promise, jsonText(before), strings.Join(o.history, "\n  "))
	did, out, wrong := a.run(append(slices.Clone(s.Arguments), "--yes")...)
	if strings.Contains(wrong, portOutOfRange) {
		return
	}
	require.Zero(t, did, "%s\n%s%s", about, out, wrong)
	a.followed[s.Arguments[0]]++
	o.history = append(o.history, strings.Join(s.Arguments, " "))
	if s.Decision != "" { // the suggestion has sent the apply, with another intent
		after, _ := a.client.Get(t.Context(), kind, o.namespace, o.name)
		a.requireKept(s, tree, manager, before, after, about)
		return
	}
	moved, _ := a.client.Get(t.Context(), kind, o.namespace, o.name)
	require.Equal(t, jsonText(truthStripped(before, false)), jsonText(truthStripped(moved, false)), about)
	status, out, errs := a.run(append(plan, "-o", "json")...)
	if s.Promise.Unblocks {
		a.followed["promise unblocks"]++
		require.NotEqual(t, statusFailed, status, "%s\n%s", about, errs)
		require.NotEqual(t, statusConflict, status, "%s\n%s", about, out)
	}
	if s.Promise.Done {
		a.followed["promise done"]++
		for _, line := range suggestedIn(out) {
			require.NotEqual(t, s.Arguments, shellWords(t, line), about)
		}
	}
	if s.Promise.NextApplyRemoves == nil {
		if status == statusChanges && s.Promise.Keeps {
			a.run(append(plan, "--apply", "--yes")...)
			after, _ := a.client.Get(t.Context(), kind, o.namespace, o.name)
			a.requireKept(s, tree, manager, before, after, about)
		}
		return
	}
	_, _, errs = a.run(append(plan, "--apply", "--yes", "--force-conflicts")...)
	if strings.Contains(errs, portOutOfRange) {
		return
	}
	after, _ := a.client.Get(t.Context(), kind, o.namespace, o.name)
	a.followed["promise removes"]++
	a.requireRemoved(tree, moved, after, s.Promise.NextApplyRemoves, about)
}

// requireKept checks that values owned by others are the same before and after, if the suggestion promised this.
// Exempt are fields whose removal was promised, fields that the server sets in metadata, and fields that the manager
// owns too.
func (a *adviceWorld) requireKept(
	s suggested, tree map[string]any, manager string, before, after map[string]any, about string,
) {
	if !s.Promise.Keeps || before == nil {
		return
	}
	a.followed["promise keeps"]++
	target, _, err := a.place.Live(a.t.Context(), tree)
	require.NoError(a.t, err)
	typ := target.Kind.Typ
	list, err := managedfields.Read(place.Wrap(before))
	require.NoError(a.t, err)
	leaves := typ.FieldSet(before).Leaves().Difference(setByServer)
	stay := typ.FieldSet(after).Leaves()
	for i := range list {
		if e := &list[i]; e.Manager != manager && e.APIVersion == tree["apiVersion"] {
			for path := range typ.Reconcile(e.Owned()).Intersection(leaves).All() {
				was, _ := typ.Get(before, path)
				is, exists := typ.Get(after, path)
				if exists && !stay.Has(path) {
					continue // others may add to an empty list or map whose parts have owners of their own
				}
				isPromised := slices.ContainsFunc(s.Promise.NextApplyRemoves, func(p string) bool {
					return strings.HasPrefix(path.String(), p)
				})
				require.True(a.t, isPromised || typed.Equal(was, is), "%s of %q changed from %v to %v\n%s\nafter %s", path,
					e.Manager, was, is, about, jsonText(after))
			}
		}
	}
}

// setByServer has the fields that a server sets no matter who owns them: when kubectl's manager applies, and when a
// template changes.
var setByServer = fieldpath.NewSet(
	fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation),
	fieldpath.NewPath("metadata", "annotations", "deprecated.daemonset.template.generation"),
)

// controlPlane lists managers whose entries must not be dropped.
var controlPlane = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"}

// checkReport follows a suggestion of a report. Half of the reports run a year later, when every manager is silent.
func (a *adviceWorld) checkReport() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	for _, manager := range controlPlane {
		tree := o.valid[0]
		patch := []byte(`{"metadata":{"annotations":{"control-plane":"` + manager + `"}}}`)
		_, _ = a.client.Patch(t.Context(), a.kind(tree), o.namespace, o.name, types.MergePatchType, patch,
			cluster.WriteOptions{Manager: manager})
	}
	now := time.Now()
	if a.r.IntN(2) == 0 {
		now = now.AddDate(1, 0, 0)
	}
	report := append([]string{"report", "-n", o.namespace, "-o", "json"}, a.flags...)
	isRelease := a.r.IntN(3) == 0
	if isRelease {
		report = append(report, "--app", "helm/"+releaseName)
	}
	run := func() []suggested {
		status, out, errs := output(process.Env{Dir: a.dir, Name: "tenure", Now: func() time.Time { return now }}, report...)
		require.Zero(t, status, errs)
		var report struct{ Suggestions []suggested }
		require.NoError(t, json.Unmarshal([]byte(out), &report), out)
		return report.Suggestions
	}
	found := slices.DeleteFunc(run(), func(s suggested) bool { return len(s.Arguments) == 0 })
	for _, s := range found {
		for _, manager := range controlPlane {
			require.NotContains(t, s.Arguments, manager, s.Why)
		}
	}
	if len(found) == 0 {
		return
	}
	s := a.rarest(found, "")
	before, others := a.values(), a.others()
	status, out, errs := a.run(append(slices.Clone(s.Arguments), "--yes")...)
	require.Contains(t, []int{0, statusChanges}, status, "seed %d: %s: %v\n%s%s", a.seed, s.Why, s.Arguments, out, errs)
	if strings.Contains(errs, "the server has kept the managed fields") {
		t.Log(errs)
		return
	}
	a.followed[s.Arguments[0]]++
	require.Equal(t, before, a.values(), "seed %d: %s: %v", a.seed, s.Why, s.Arguments)
	if isRelease {
		a.followed["release"]++
		require.Equal(t, others, a.others(), "seed %d: %s: %v", a.seed, s.Why, s.Arguments)
	}
	for _, again := range run() {
		if s.Promise.Done {
			require.NotEqual(t, s.Arguments, again.Arguments, "seed %d: %s\n%s%s\n%s", a.seed, s.Why, out, errs,
				strings.Join(a.entriesOf(s.Arguments), "\n"))
		}
	}
}

// entriesOf returns the managed fields of all objects with an entry of a manager that the arguments name.
func (a *adviceWorld) entriesOf(arguments []string) (out []string) {
	for _, o := range a.objects {
		live, err := a.client.Get(a.t.Context(), a.kind(o.valid[0]), o.namespace, o.name)
		if err != nil {
			continue
		}
		entries := (&unstructured.Unstructured{Object: live}).GetManagedFields()
		if slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
			return slices.Contains(arguments, e.Manager)
		}) {
			out = append(out, o.name+": "+jsonText(map[string]any{"managedFields": entries}))
		}
	}
	return out
}

// checkAgain applies an intent. A second plan of it must not change the object any more.
func (a *adviceWorld) checkAgain() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	tree, manager := a.variant(o), a.manager()
	write(t, a.dir, map[string]string{"intent.json": jsonText(tree)})
	plan := append([]string{"plan", "-f", "intent.json", "--field-manager", manager}, a.flags...)
	status, first, _ := a.run(append(plan, "--apply", "--yes", "--force-conflicts")...)
	if status != 0 {
		return
	}
	a.followed["again"]++
	status, again, errs := a.run(append(plan, "--force-conflicts")...) // conflicts over 1000m and 1 remain
	about := fmt.Sprintf("seed %d, manager %q, intent %s\n%s\n%s%s", a.seed, manager, jsonText(tree), first, again,
		errs)
	// The first apply removes a struct with its last field. The second adds the struct, empty, which may be invalid.
	options := cluster.WriteOptions{Manager: manager, Force: true, DryRun: true}
	if _, err := a.client.Apply(t.Context(), a.kind(tree), o.namespace, tree, options); apierrors.IsInvalid(err) {
		if !strings.Contains(again, ": unchanged") { // no dry run is sent, and a policy for updates may deny it
			require.Equal(t, statusFailed, status, about)
		}
		return
	}
	require.Contains(t, []int{0, statusChanges}, status, about)
	require.NotContains(t, again, ": changed\n", about)
}

// checkDriftAdvice follows a suggestion that ends the drift of a field. It must not be made again.
func (a *adviceWorld) checkDriftAdvice() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	tree, manager := a.variant(o), a.manager()
	write(t, a.dir, map[string]string{"intent.json": jsonText(tree)})
	plan := append([]string{"plan", "-f", "intent.json", "--field-manager", manager, "--drift", "-o", "json"},
		a.flags...)
	ways := func(more ...string) (found []suggested) {
		status, out, errs := a.run(append(slices.Clone(plan), more...)...)
		if status == statusFailed {
			return nil
		}
		var planned struct {
			Objects []struct{ Drift []struct{ Ways []suggested } }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &planned), "%s%s", out, errs)
		for _, object := range planned.Objects {
			for _, field := range object.Drift {
				found = append(found, field.Ways...)
			}
		}
		return found
	}
	found := ways()
	if len(found) == 0 {
		return
	}
	s := a.rarest(found, "drift ")
	verb := s.Arguments[0]
	args := slices.Clone(s.Arguments)
	if verb == "transfer" {
		args = append(args, "--yes")
	}
	before := a.values()
	status, out, errs := a.run(args...)
	about := fmt.Sprintf("seed %d, manager %q, intent %s\n%s: %v\n%s%s", a.seed, manager, jsonText(tree), s.Why, args,
		out, errs)
	require.Zero(t, status, about)
	require.Equal(t, before, a.values(), about)
	a.followed["drift "+verb]++
	switch verb {
	case "extract": // a person adds what is printed to the manifest
		require.Contains(t, out, "metadata:", about)
		return
	case "policy":
		defer func() { require.NoError(t, os.Remove(filepath.Join(a.dir, "tenure.yaml"))) }()
		found = ways("--policy", "tenure.yaml")
	default:
		found = ways()
	}
	for _, again := range found {
		require.False(t, s.Promise.Done && slices.Equal(s.Arguments, again.Arguments), about)
	}
}

// checkWatch makes two managers fight over a label, and follows one of the suggestions of watch to end the fight.
func (a *adviceWorld) checkWatch() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	tree := o.valid[0]
	kind := a.kind(tree)
	watch := append([]string{"watch", strings.ToLower(kind.GroupKind().String()), "--for", "500ms", "-o", "json",
		"--field-selector", "metadata.name=" + o.name, "-n", o.namespace}, a.flags...)
	done, ended := make(chan string), false
	go func() {
		_, out, errs := a.run(watch...)
		done <- out + errs
	}()
	var out string
	for i := 0; !ended; i++ {
		side := []string{"flux", `o"d d*`}[i%2]
		label := runtime.DeepCopyJSON(tree)
		label["metadata"].(map[string]any)["labels"] = map[string]any{"fought": "by-" + side[:1]}
		_, err := a.client.Apply(t.Context(), kind, o.namespace, label, cluster.WriteOptions{Manager: side, Force: true})
		select {
		case out = <-done:
			ended = true
		default:
			if err != nil { // the server does not accept applies of the object any more
				out, ended = <-done, true
			}
		}
	}
	var found []suggested
	for line := range strings.Lines(out) {
		var finding struct{ Suggestions []suggested }
		if json.Unmarshal([]byte(line), &finding) == nil {
			found = append(found, finding.Suggestions...)
		}
	}
	found = slices.DeleteFunc(found, func(s suggested) bool { return len(s.Arguments) == 0 })
	if len(found) == 0 {
		return
	}
	s, before := a.rarest(found, ""), a.values()
	applied := runtime.DeepCopyJSON(tree)
	applied["metadata"].(map[string]any)["labels"] = map[string]any{"fought": "by-f"}
	write(t, a.dir, map[string]string{"MANIFEST": jsonText(applied)})
	status, printed, errs := a.run(append(slices.Clone(s.Arguments), "--yes")...)
	require.Contains(t, []int{0, statusChanges}, status, "seed %d: %s: %v\n%s%s", a.seed, s.Why, s.Arguments, printed,
		errs)
	require.Equal(t, before, a.values(), "seed %d: %s: %v", a.seed, s.Why, s.Arguments)
	a.followed[s.Arguments[0]]++
	a.followed["watch"]++
}

// install makes a Helm release, with objects as Helm 3 and Helm 4 write them.
func (a *adviceWorld) install() {
	t := a.t
	var manifest strings.Builder
	for i, o := range a.objects {
		if i%3 != 0 {
			continue
		}
		tree := o.valid[0]
		fmt.Fprintf(&manifest, "---\n# Source: web/templates/%s.yaml\n%s\n", o.name, jsonText(tree))
		written := runtime.DeepCopyJSON(tree)
		u := &unstructured.Unstructured{Object: written}
		u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{"app.kubernetes.io/managed-by": "Helm"}))
		u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{
			"meta.helm.sh/release-name": releaseName, "meta.helm.sh/release-namespace": o.namespace,
		}))
		kind, helm := a.kind(tree), cluster.WriteOptions{Manager: "helm"}
		if a.r.IntN(2) == 0 {
			helm.Force = true
			_, _ = a.client.Apply(t.Context(), kind, o.namespace, written, helm)
		} else if _, err := a.client.Create(t.Context(), kind, o.namespace, written, helm); err != nil {
			patch := []byte(jsonText(written))
			_, _ = a.client.Patch(t.Context(), kind, o.namespace, o.name, types.MergePatchType, patch,
				cluster.WriteOptions{Manager: "helm"})
		}
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(jsonText(map[string]any{
		"name": releaseName, "namespace": a.objects[0].namespace, "version": 1, "manifest": manifest.String(),
	})))
	require.NoError(t, errors.Join(err, w.Close()))
	encoded := base64.StdEncoding.EncodeToString(zipped.Bytes()) // Helm encodes once, the API a second time
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata": map[string]any{"name": "sh.helm.release.v1." + releaseName + ".v1", "labels": map[string]any{
			"owner": "helm", "name": releaseName, "status": "deployed", "version": "1",
		}},
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(encoded))},
	}
	_, err = a.client.Create(t.Context(), a.kind(secret), a.objects[0].namespace, secret,
		cluster.WriteOptions{Manager: "Helm"})
	require.NoError(t, err)
}

// others returns the objects outside of the release, with their managed fields.
func (a *adviceWorld) others() (out []string) {
	for i, o := range a.objects {
		if live, _ := a.client.Get(a.t.Context(), a.kind(o.valid[0]), o.namespace, o.name); live != nil && i%3 != 0 {
			out = append(out, jsonText(truthStripped(live, true)))
		}
	}
	return out
}

// values returns the objects without their managed fields.
func (a *adviceWorld) values() (out []string) {
	for _, o := range a.objects {
		if live, _ := a.client.Get(a.t.Context(), a.kind(o.valid[0]), o.namespace, o.name); live != nil {
			out = append(out, jsonText(truthStripped(live, false)))
		}
	}
	return out
}

// checkPolicy decides the conflicts of an intent by the policy that "policy init" proposes for its manager. The rule
// for the owner must decide each conflict, whatever characters the names of managers and fields contain.
func (a *adviceWorld) checkPolicy() {
	t, o := a.t, a.objects[a.r.IntN(len(a.objects))]
	tree, manager := a.variant(o), a.manager()
	propose := []string{"policy", "init", "-n", o.namespace, "--field-manager", manager}
	status, out, errs := a.run(append(propose, a.flags...)...)
	require.Zero(t, status, errs)
	write(t, a.dir, map[string]string{"intent.json": jsonText(tree), "policy.yaml": out})
	status, tested, errs := a.run("policy", "test", "policy.yaml")
	require.Zero(t, status, "%s%s\n%s", tested, errs, out)
	_, planned, _ := a.run(append([]string{"plan", "-f", "intent.json", "--field-manager", manager,
		"--policy", "policy.yaml", "-o", "json"}, a.flags...)...)
	var plan struct {
		Objects []struct {
			Decisions []struct {
				Field, Reason string
				Rule          int
				Owner         struct{ Manager string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(planned), &plan), planned)
	for _, object := range plan.Objects {
		for _, d := range object.Decisions {
			if d.Rule > 0 {
				a.followed["policy"]++
				// One rule decides for all owners of the field, of what is in it and of what it is in.
				isSet := strings.HasPrefix(d.Reason, "what people change")
				for _, other := range object.Decisions {
					isRelated := strings.HasPrefix(other.Field, d.Field) || strings.HasPrefix(d.Field, other.Field)
					isSet = isSet || isRelated && strings.HasPrefix(d.Reason, other.Owner.Manager+" ")
				}
				require.True(t, isSet, "%s\n%s", planned, out)
			}
		}
	}
}

// requireRemoved checks that the apply removed the promised leaves, and no others.
func (a *adviceWorld) requireRemoved(
	tree, before, after map[string]any, promised []string, about string,
) {
	target, _, err := a.place.Live(a.t.Context(), tree)
	require.NoError(a.t, err)
	was, is := target.Kind.Typ.FieldSet(before), target.Kind.Typ.FieldSet(after)
	var removed []string
	for path := range was.Difference(is).Leaves().Difference(managedfields.Unowned()).All() {
		removed = append(removed, path.String())
	}
	for _, path := range removed {
		isPromised := slices.ContainsFunc(promised, func(p string) bool { return strings.HasPrefix(path, p) })
		require.True(a.t, isPromised, "%s is removed, and was not promised\n%s\nmoved %s\nafter %s", path, about,
			jsonText(before), jsonText(after))
	}
	for _, path := range promised {
		isRemoved := slices.ContainsFunc(removed, func(p string) bool { return strings.HasPrefix(p, path) })
		require.True(a.t, isRemoved || a.isDefaulted(before, after, path, target),
			"%s was promised, and is not removed\n%s\nafter %s", path, about, jsonText(after))
	}
}

// isDefaulted reports whether a field has got another value, which is its default.
func (a *adviceWorld) isDefaulted(before, after map[string]any, path string, target *place.Target) bool {
	for p := range target.Kind.Typ.FieldSet(before).All() {
		if p.String() == path {
			was, _ := target.Kind.Typ.Get(before, p)
			is, _ := target.Kind.Typ.Get(after, p)
			return !typed.Equal(was, is)
		}
	}
	return false
}

// truthServerOn prepares a server for tests on random clusters.
func truthServerOn(t *testing.T, server *testCluster) *cluster.Cluster {
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	client, err := cluster.Local(&rest.Config{Host: listener.URL, WarningHandler: rest.NoWarnings{}, QPS: -1})
	require.NoError(t, err)
	return setUpTruth(t, client)
}
