package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
)

const (
	applyPatch = "application/apply-patch+yaml"
	plainJSON  = "application/json"
)

// workload is one kind of request.
type workload struct {
	name  string
	setup func(t *target) error
	// request returns the nth request of a client.
	request func(t *target, client, n int) request
	// after removes what the requests of a run made. Two servers that are as fast as they can be would hold different
	// amounts of it otherwise, and spend CPU on it in what is measured next. It may be nil.
	after func(t *target) error
}

// serial tells requests apart.
var serial atomic.Int64

func container(name string) string {
	return fmt.Sprintf(`{"name":%q,"image":"registry.example/app:1.2.3","command":["/app","--flag=1","--other"],`+
		`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],`+
		`"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],`+
		`"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},`+
		`"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"config","mountPath":"/etc/app"}],`+
		`"livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":10},`+
		`"readinessProbe":{"httpGet":{"path":"/ready","port":8080}}}`, name)
}

func podSpec() string {
	return fmt.Sprintf(`{"containers":[%s,%s],"terminationGracePeriodSeconds":30,`+
		`"securityContext":{"runAsNonRoot":true,"runAsUser":1000},`+
		`"tolerations":[{"key":"dedicated","operator":"Exists","effect":"NoSchedule"}],`+
		`"volumes":[{"name":"data","emptyDir":{}},{"name":"config","configMap":{"name":"app"}}]}`,
		container("app"), container("sidecar"))
}

func deployment(name, label string) []byte {
	return fmt.Appendf(
		nil,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"labels":{"app":"web","rev":%q},`+
			`"annotations":{"example.com/a":"1","example.com/b":"2"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},`+
			`"template":{"metadata":{"labels":{"app":"web"}},"spec":%s}}}`,
		name,
		label,
		podSpec(),
	)
}

func pod(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"web","tier":"front"},`+
		`"annotations":{"example.com/a":"1"}},"spec":%s}`, name, podSpec())
}

// items is how many items the list of a Widget has.
const items = 1000

func widget(name string, changed int64) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":"bench.example/v1","kind":"Widget","metadata":{"name":%q},"spec":{"items":[`, name)
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		var v int64
		if i == items/2 {
			v = changed
		}
		fmt.Fprintf(&b, `{"name":"item-%04d","value":%d,"text":"some text"}`, i, v)
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"widgets.bench.example"},"spec":{"group":"bench.example","scope":"Namespaced",
"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"integer"},"text":{"type":"string"}}}}}}}}}}]}}`

const (
	deployments   = "/apis/apps/v1/namespaces/bench/deployments/"
	pods          = "/api/v1/namespaces/bench/pods"
	widgetObjects = "/apis/bench.example/v1/namespaces/bench/widgets/"
)

func forced(manager string) string { return "?fieldManager=" + manager + "&force=true" }

func applyTo(path string, body []byte) request {
	return request{"PATCH", path + forced("m"), applyPatch, body}
}

func (t *target) setUp(r request) error {
	_, err := t.must(r.method, r.path, r.contentType, r.body)
	return err
}

// each calls f for ten objects of each client.
func each(prefix string, f func(name string) error) error {
	for c := range clients {
		for i := range 10 {
			if err := f(objectName(prefix, c, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func objectName(prefix string, client, n int) string {
	return fmt.Sprintf("%s-%d-%d", prefix, client, n%10)
}

var workloads = []workload{
	{
		"no-op apply of a Deployment",
		func(t *target) error { return t.setUp(applyTo(deployments+"noop", deployment("noop", "x"))) },
		func(*target, int, int) request { return applyTo(deployments+"noop", deployment("noop", "x")) },
		nil,
	},
	{
		"apply that changes a label",
		func(t *target) error {
			return each("d", func(name string) error { return t.setUp(applyTo(deployments+name, deployment(name, "x"))) })
		},
		func(_ *target, c, n int) request {
			name := objectName("d", c, n)
			return applyTo(deployments+name, deployment(name, fmt.Sprint("r", serial.Add(1))))
		},
		nil,
	},
	{"PUT of a Pod's status, 3 managers", setUpStatuses, putStatus, nil},
	{
		"create of a Pod",
		func(*target) error { return nil },
		func(_ *target, c, _ int) request {
			return request{"POST", pods + "?fieldManager=m", plainJSON, pod(fmt.Sprintf("c-%d-%d", c, serial.Add(1)))}
		},
		func(t *target) error {
			return t.setUp(request{"DELETE", pods + "?gracePeriodSeconds=0", plainJSON, nil})
		},
	},
	{
		"apply, 1 of 1,000 items of a custom resource",
		func(t *target) error {
			for c := range clients {
				name := objectName("w", c, 0)
				if err := t.setUp(applyTo(widgetObjects+name, widget(name, 0))); err != nil {
					return err
				}
			}
			return nil
		},
		func(_ *target, c, _ int) request {
			name := objectName("w", c, 0)
			return applyTo(widgetObjects+name, widget(name, serial.Add(1)))
		},
		nil,
	},
}

// message is what a request replaces in a stored body.
const message = "@@@@"

func setUpStatuses(t *target) error {
	return each("p", func(name string) error {
		path := pods + "/" + name
		labels := fmt.Appendf(
			nil,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"extra":"1","more":"2"}}}`,
			name,
		)
		for _, r := range []request{
			{"PATCH", path + forced("creator"), applyPatch, pod(name)},
			{"PATCH", path + forced("labeller"), applyPatch, labels},
		} {
			if err := t.setUp(r); err != nil {
				return err
			}
		}
		stored, err := t.must("GET", path, "", nil)
		if err != nil {
			return err
		}
		body, err := withStatus(stored, "0")
		if err != nil {
			return err
		}
		if stored, err = t.must("PUT", path+"/status?fieldManager=kubelet", plainJSON, body); err != nil {
			return err
		}
		body, err = withStatus(stored, message)
		t.bodies.Store(name, body)
		return err
	})
}

func putStatus(t *target, c, n int) request {
	name := objectName("p", c, n)
	body, _ := t.bodies.Load(name)
	changed := bytes.Replace(body.([]byte), []byte(message), fmt.Append(nil, "m", serial.Add(1)), 1)
	return request{"PUT", pods + "/" + name + "/status?fieldManager=kubelet", plainJSON, changed}
}

// withStatus returns the body of an update of a Pod's status: the Pod as it is stored, but for
// a condition's message.
func withStatus(stored []byte, message string) ([]byte, error) {
	var p map[string]any
	if err := json.Unmarshal(stored, &p); err != nil {
		return nil, err
	}
	metadata, _ := p["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	delete(metadata, "managedFields")
	var status map[string]any
	text := strings.ReplaceAll(podStatus, "MESSAGE", message)
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return nil, err
	}
	p["status"] = status
	return json.Marshal(p)
}

const podStatus = `{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"hostIP":"10.1.0.1","startTime":"2026-01-01T00:00:00Z",
"conditions":[{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},
{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","message":"MESSAGE"},
{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},
{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],
"containerStatuses":[
{"name":"app","image":"registry.example/app:1.2.3","imageID":"x","ready":true,"restartCount":0,"started":true,"containerID":"c://1","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}},
{"name":"sidecar","image":"registry.example/app:1.2.3","imageID":"x","ready":true,"restartCount":0,"started":true,"containerID":"c://2","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}`

// prepare makes what all workloads need.
func (t *target) prepare() error {
	for _, r := range []request{
		{
			"POST", "/api/v1/namespaces", plainJSON,
			[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bench"}}`),
		},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", plainJSON, []byte(widgets)},
	} {
		if err := t.setUp(r); err != nil {
			return err
		}
	}
	return nil
}
