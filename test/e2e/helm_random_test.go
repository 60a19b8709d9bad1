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
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testHelmAtRandom upgrades random charts. Others edit their objects before the plan, and objects or charts after it. In
// the end, either the objects are those of the plan, or nothing has changed. E2E_CHARTS is how many charts there are:
//
//	E2E_CHARTS=300 go test ./test/e2e -timeout 2h -run 'TestHelm$/random-charts'
func testHelmAtRandom(t *testing.T, h helmRelease) {
	charts, err := strconv.Atoi("0" + os.Getenv("E2E_CHARTS"))
	require.NoError(t, err)
	applied, refused := 0, 0
	for i := range max(charts, 20) {
		h := h
		h.t, h.namespace = t, fmt.Sprintf("random-%d", i)
		h.folder = filepath.Join(h.folder, h.namespace)
		h.ensureNamespace(h.namespace)
		t.Cleanup(func() { h.helm(0, "uninstall", "r", "--ignore-not-found") })
		r := rand.New(rand.NewPCG(seedOf(t), uint64(i)))
		if h.upgradeAtRandom(r) {
			applied++
		} else {
			refused++
		}
	}
	t.Logf("%d upgrades applied, %d refused", applied, refused)
	require.Positive(t, applied)
	require.Positive(t, refused)
}

// randomObjects are the keys and values of ConfigMaps, by name: a value that begins with {{ is a template.
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

// changedField is a row of a plan: that of a field which changes.
var changedField = regexp.MustCompile(`^  (added|removed|modified) +\.data\.(\S+) +(.*)$`)

// upgradeAtRandom reports whether the upgrade was applied.
func (h helmRelease) upgradeAtRandom(r *rand.Rand) bool {
	t := h.t
	old, next := randomChartOf(r), randomChartOf(r)
	h.write("policy.yaml", "apiVersion: tenure-ssa.github.io/v1alpha1\nkind: ConflictPolicy\nrules:\n"+
		"- {managers: [forced], decision: force, reason: r}\n- {decision: give-up, reason: r}\n")
	h.chart("r", old.template())
	h.helm(0, "install", "r", "r", "--server-side=true")
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
		require.Len(t, h.history("r"), 1)
		return false
	}
	h.requirePlanned(before, after, next, out)
	return true
}

// requirePlanned checks that objects changed as a plan says, and not otherwise.
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
				planned[name] = after[name].Data // its values are those of the chart
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

// configs are the ConfigMaps of the namespace, but for the one that a cluster adds.
func (h helmRelease) configs() map[string]*corev1.ConfigMap {
	list, err := h.client.CoreV1().ConfigMaps(h.namespace).List(h.t.Context(), metav1.ListOptions{})
	require.NoError(h.t, err)
	out := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		if one := &list.Items[i]; one.Name != "kube-root-ca.crt" {
			out[one.Name] = one
		}
	}
	return out
}
