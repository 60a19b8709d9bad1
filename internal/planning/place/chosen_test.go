package place

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// TestWithoutChosen: which values in the response to a dry run are the server's choice.
func TestWithoutChosen(t *testing.T) {
	for _, row := range []struct{ name, kind, live, intent, served, want string }{
		{"a new object", "ConfigMap", ``, `data: {a: u1}`,
			`{metadata: {uid: u1, creationTimestamp: "2026"}, data: {a: x, b: "for u1"}}`,
			`{metadata: {uid: (set by the server), creationTimestamp: (set by the server)},
				data: {a: x, b: for (set by the server)}}`},
		{"an old object", "ConfigMap", `{}`, `{}`, `metadata: {uid: u1}`, `metadata: {uid: u1}`},
		{"a Pod", "Pod", ``, `spec: {volumes: [{name: kube-api-access-mine}]}`,
			`spec: {volumes: [{name: kube-api-access-mine}, {name: kube-api-access-x7z},
				{name: v}], containers: [{volumeMounts: [{name: kube-api-access-x7z}]}]}`,
			`spec: {volumes: [{name: kube-api-access-mine}, {name: kube-api-access-(set by the server)},
				{name: v}], containers: [{volumeMounts: [{name: kube-api-access-(set by the server)}]}]}`},
		{"a Service", "Service", `spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{nodePort: 1}]}`,
			`spec: {ports: [{nodePort: 2}]}`,
			`spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, "fd::1"], healthCheckNodePort: 4,
				ports: [{nodePort: 1}, {nodePort: 2}, {nodePort: 3}, {nodePort: 0}]}`,
			`spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, (set by the server)],
				healthCheckNodePort: (set by the server),
				ports: [{nodePort: 1}, {nodePort: 2}, {nodePort: (set by the server)}, {nodePort: 0}]}`},
		{"a headless Service", "Service", `{}`, `{}`, `spec: {clusterIP: None, clusterIPs: [None]}`,
			`spec: {clusterIP: None, clusterIPs: [None]}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			parse := func(text string) (tree map[string]any) {
				require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), &tree))
				return tree
			}
			w := &Desired{Tree: parse(row.intent), Target: &Target{
				Object: parse(row.live), Kind: &Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: row.kind}},
			}}
			require.Equal(t, parse(row.want), w.WithoutChosen(parse(row.served)))
		})
	}
}
