package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testHelmAtRandom upgrades random charts. Others edit the objects before the plan, and objects or charts after it. In
// the end, the objects must be as planned, or unchanged. CI uses 20 seeds; SEEDS, in the form FIRST:NUMBER,
// selects others:
//
//	SEEDS=1:300 go test ./test/e2e -timeout 2h -run 'TestHelm$/random-charts'
func testHelmAtRandom(t *testing.T, h helmRelease) {
	first, number := uint64(1), uint64(20)
	if text := os.Getenv("SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d:%d", &first, &number)
		require.NoError(t, err)
	}
	var applied, refused atomic.Int32
	t.Run("seed", func(t *testing.T) { // ends when all its subtests have ended
		for seed := first; seed < first+number; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				h := h
				h.t, h.namespace = t, fmt.Sprintf("random-%d", seed)
				h.folder = filepath.Join(h.folder, h.namespace)
				h.ensureNamespace(h.namespace)
				if h.upgradeAtRandom(rand.New(rand.NewPCG(seed, 0))) {
					applied.Add(1)
				} else {
					refused.Add(1)
				}
			})
		}
	})
	t.Logf("%d upgrades applied, %d refused", applied.Load(), refused.Load())
	require.Positive(t, applied.Load())
	require.Positive(t, refused.Load())
}

// randomObjects are the keys and values of ConfigMaps, by name. A value that begins with {{ is a template.
type randomObjects map[string]map[string]string

func (o randomObjects) template() (text string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n"
		for _, key := range slices.Sorted(maps.Keys(o[name])) {
			value := o[name][key]
			if !strings.HasPrefix(value, "{{") {
				value = strconv.Quote(value)
			}
			text += "  " + key + ": " + value + "\n"
		}
	}
	return text
}

// chart returns the chart of the objects.
func (o randomObjects) chart() *chart.Chart {
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "r", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/all.yaml", Data: []byte(o.template())}},
	}
}

func randomChartOf(r *rand.Rand) randomObjects {
	out := randomObjects{}
	for _, name := range []string{"a", "b", "c", "d"} {
		if r.IntN(4) == 0 && name != "a" {
			continue
		}
		out[name] = map[string]string{"k": strconv.Itoa(r.IntN(3))}
		for _, key := range []string{"l", "m", "o"} {
			switch r.IntN(4) {
			case 0:
				out[name][key] = "{{ randAlphaNum 8 | quote }}"
			case 1, 2:
				out[name][key] = strconv.Itoa(r.IntN(3))
			}
		}
	}
	return out
}

// changedField matches a row of a plan for a changed field.
var changedField = regexp.MustCompile(`^  (added|removed|modified) +\.data\.(\S+) +(.*)$`)

// upgradeAtRandom installs and upgrades a random chart. It returns whether the upgrade was applied.
func (h helmRelease) upgradeAtRandom(r *rand.Rand) bool {
	t := h.t
	old, next := randomChartOf(r), randomChartOf(r)
	h.write("policy.yaml", "apiVersion: tenure-ssa.github.io/v1alpha1\nkind: ConflictPolicy\nrules:\n"+
		"- {managers: [forced], decision: force, reason: r}\n- {decision: give-up, reason: r}\n")
	install := action.NewInstall(h.actions())
	install.ReleaseName, install.Namespace, install.WaitStrategy = "r", h.namespace, kube.HookOnlyStrategy
	_, err := install.RunWithContext(t.Context(), old.chart(), nil)
	require.NoError(t, err)
	t.Cleanup(h.uninstall)
	edit := func() {
		names := slices.Sorted(maps.Keys(old))
		h.edit(names[r.IntN(len(names))], []string{"forced", "other"}[r.IntN(2)], []string{"k", "l", "z"}[r.IntN(3)],
			"by others "+strconv.Itoa(r.IntN(3)))
	}
	for range r.IntN(4) {
		edit()
	}
	h.chart("r", next.template())
	before := h.configs()
	var between map[string]*corev1.ConfigMap
	status, out := h.betweenAny(func() {
		switch r.IntN(6) {
		case 0:
			edit()
		case 1:
			names := slices.Sorted(maps.Keys(before))
			require.NoError(t, h.client.CoreV1().ConfigMaps(h.namespace).Delete(t.Context(), names[r.IntN(len(names))],
				metav1.DeleteOptions{}))
		case 2:
			h.chart("r", randomChartOf(r).template())
		}
		between = h.configs()
	}, "upgrade", "r", "r", "--policy", "policy.yaml", "--yes")
	after := h.configs()
	if status != 0 {
		require.Equal(t, 3, status, out)
		require.Equal(t, between, after, out)
		last, err := h.actions().Releases.Last("r")
		require.NoError(t, err)
		require.Equal(t, 1, last.(*release.Release).Version)
		return false
	}
	h.requirePlanned(before, after, next, out)
	return true
}

// requirePlanned checks that objects changed exactly as planned.
func (h helmRelease) requirePlanned(before, after map[string]*corev1.ConfigMap, chart randomObjects, out string) {
	t := h.t
	planned := map[string]map[string]string{}
	for name, object := range before {
		planned[name] = maps.Clone(object.Data)
	}
	name := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n ")
		if title, is, ok := strings.Cut(line, " in "+h.namespace+": "); ok {
			name = strings.TrimPrefix(title, "configmap/")
			switch {
			case is == "created":
				planned[name] = after[name].Data // its values come from the chart
				for key, value := range chart[name] {
					if !strings.HasPrefix(value, "{{") {
						require.Equal(t, value, after[name].Data[key], out)
					}
				}
				require.Len(t, after[name].Data, len(chart[name]), out)
			case strings.HasPrefix(is, "pruned"):
				delete(planned, name)
			}
		}
		if found := changedField.FindStringSubmatch(line); found != nil {
			if planned[name] == nil {
				planned[name] = map[string]string{}
			}
			values := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(found[3], -1)
			require.NotEmpty(t, values, line)
			if planned[name][found[2]] = values[len(values)-1][1]; found[1] == "removed" {
				delete(planned[name], found[2])
			}
		}
	}
	found := map[string]map[string]string{}
	for name, object := range after {
		found[name] = object.Data
	}
	require.Equal(t, planned, found, out)
}

// configs returns the ConfigMaps of the namespace, except the one that each cluster adds.
func (h helmRelease) configs() map[string]*corev1.ConfigMap {
	list, err := h.client.CoreV1().ConfigMaps(h.namespace).List(h.t.Context(), metav1.ListOptions{})
	require.NoError(h.t, err)
	out := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		if configMap := &list.Items[i]; configMap.Name != "kube-root-ca.crt" {
			out[configMap.Name] = configMap
		}
	}
	return out
}
