// Command record records the objects that kube-apiserver creates when it starts.
//
//	go run ./hosts/kube-apiserver build --only stock   # prints the path of the server
//	go run ./hosts/record --server PATH apiserver/internal/bootstrap
//	go run ./hosts/record --server PATH --story apiserver/testdata/rest/connect.json
//	go run ./hosts/record --server PATH --story apiserver/testdata/rest/log.json
//
// The command starts etcd and the server, and waits for the duration of --settle, in which the server creates its
// objects. With --story, it then sends the requests in a file of exchanges, and writes the responses into the same
// file.
//
// Without --story, it writes a file for each set of resources. The file has a line for each object: the key under which
// Tenure stores the object, a tab, and the object as the server encodes it. Values that differ between servers are
// replaced: UIDs with zeros, times with the start of 1970, the port with 6443. ResourceVersions are removed. The
// endpoint has the address 192.0.2.1.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/internal/controlplane"
)

// sets are the resources in each file.
var sets = map[string][]resource{
	"rbac": {
		{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole"},
		{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"},
		{"rbac.authorization.k8s.io", "v1", "roles", "Role"},
		{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"},
	},
	"priorityclasses": {{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"}},
	"flowcontrol": {
		{"flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema"},
		{"flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration"},
	},
	"service": {
		{"", "v1", "services", "Service"},
		{"", "v1", "endpoints", "Endpoints"},
		{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"},
	},
}

type resource struct{ group, version, plural, kind string }

func (r resource) path() string {
	if r.group == "" {
		return "/api/" + r.version + "/" + r.plural
	}
	return "/apis/" + r.group + "/" + r.version + "/" + r.plural
}

// key returns the key under which Tenure stores an object.
func (r resource) key(namespace, name string) string {
	group := r.group
	if group == "" {
		group = "core"
	}
	if namespace != "" {
		namespace += "/"
	}
	return "/" + group + "/" + r.plural + "/" + namespace + name
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := flag.String("server", "", "`path` of kube-apiserver")
	tale := flag.String("story", "", "`file` of exchanges whose responses to record")
	settle := flag.Duration("settle", 15*time.Second, "how long to wait for the server to create its own objects")
	flag.Parse()
	if *server == "" || (flag.NArg() == 1) == (*tale != "") {
		fmt.Fprintln(os.Stderr, "expected --server PATH and a folder to write to, or --story FILE")
		os.Exit(1)
	}
	if err := record(ctx, *server, flag.Arg(0), *tale, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, binary, to, tale string, settle time.Duration) error {
	dir, err := os.MkdirTemp("", "tenure-record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// kube-apiserver uses the name of its binary as the name of its field manager.
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	program := filepath.Join(dir, "kube-apiserver")
	if err := os.Symlink(binary, program); err != nil {
		return err
	}
	server, err := controlplane.StartAlone(ctx, program, dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	time.Sleep(settle)
	client := controlplane.Client()
	if tale != "" {
		return recordStory(ctx, server, openapi.KubernetesVersion, tale)
	}
	port := `ort":` + server.URL[strings.LastIndexByte(server.URL, ':')+1:] // matches port and targetPort
	for name, resources := range sets {
		var out bytes.Buffer
		for _, r := range resources {
			lines, err := list(ctx, client, server.URL, r)
			if err != nil {
				return err
			}
			for _, line := range lines {
				fmt.Fprintln(&out, strings.ReplaceAll(line, port, defaultPort))
			}
		}
		if err := os.WriteFile(filepath.Join(to, name+".jsonl"), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// defaultPort is the default of --secure-port. It replaces the free port that was used.
const defaultPort = `ort":6443`

// list returns the sorted lines for the objects of a resource.
func list(ctx context.Context, client *http.Client, url string, r resource) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+r.path(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+controlplane.Token)
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var page struct{ Items []json.RawMessage }
	if err := json.Unmarshal(data, &page); err != nil || res.StatusCode != http.StatusOK || len(page.Items) == 0 {
		return nil, fmt.Errorf("%s: expected objects, got %s: %.200s", r.path(), res.Status, data)
	}
	var lines []string
	for _, item := range page.Items {
		line, err := r.line(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.path(), err)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines, nil
}

var (
	ofServer = regexp.MustCompile(`"resourceVersion":"[0-9]+",`)
	uids     = regexp.MustCompile(`"uid":"[0-9a-f-]{36}"`)
	times    = regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.[0-9]+)?Z"`)
)

// line returns the line for an object.
func (r resource) line(item []byte) (string, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, item); err != nil {
		return "", err
	}
	var o struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(item, &o); err != nil {
		return "", err
	}
	text := compact.Bytes()
	text = ofServer.ReplaceAll(text, nil)
	text = uids.ReplaceAll(text, []byte(`"uid":"00000000-0000-0000-0000-000000000000"`))
	text = times.ReplaceAll(text, []byte(`"1970-01-01T00:00:00Z"`))
	version := r.version
	if r.group != "" {
		version = r.group + "/" + version
	}
	key := r.key(o.Metadata.Namespace, o.Metadata.Name)
	return fmt.Sprintf("%s\t{\"kind\":%q,\"apiVersion\":%q,%s", key, r.kind, version, text[1:]), nil
}
