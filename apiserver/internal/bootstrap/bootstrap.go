// Package bootstrap has the objects that kube-apiserver itself creates, as hosts/record recorded them. Each line of the
// embedded files has an object's storage key, a tab, and the object's stored form.
package bootstrap

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed *.jsonl
var files embed.FS

// The sets of objects. Each set is a file.
const (
	// RBAC are ClusterRoles, Roles and their bindings.
	RBAC = "rbac"
	// PriorityClasses are the two PriorityClasses for components of a cluster.
	PriorityClasses = "priorityclasses"
	// FlowControl are FlowSchemas and PriorityLevelConfigurations.
	FlowControl = "flowcontrol"
	// Service are the Service, the Endpoints and the EndpointSlice of the server.
	Service = "service"
)

// Placeholders in the recorded files, for values that differ between servers.
const (
	anyAddress = `"192.0.2.1"`
	anyPort    = `ort":6443` // matches port and targetPort
	anyService = `"10.0.0.1"`
)

// Own has the values that differ between servers.
type Own struct {
	// Endpoint is the address of the server, for the set Service. If this address is not allowed in endpoints (see
	// hasEndpoint), the set has no endpoints. If the port is 0, the set has the recorded port.
	Endpoint netip.AddrPort
	// ClusterIP is the cluster IP of the Service.
	ClusterIP netip.Addr
}

// Objects returns the objects of a set, without UIDs and times.
func (o Own) Objects(set string) ([]*unstructured.Unstructured, error) {
	data, err := files.ReadFile(set + ".jsonl")
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for line := range bytes.Lines(data) {
		_, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if !ok {
			return nil, fmt.Errorf("%s.jsonl: expected a key, a tab and an object, got %.40q", set, line)
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(o.fill(value), &obj.Object); err != nil {
			return nil, fmt.Errorf("%s.jsonl: %w", set, err)
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", "uid")
		unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
		if HasEndpoint(obj) && !o.hasEndpoint() {
			continue
		}
		out = append(out, obj)
	}
	return out, nil
}

// fill returns the stored form of a recorded object, with the values of this server.
func (o Own) fill(value []byte) []byte {
	text := string(value)
	text = strings.ReplaceAll(text, anyService, fmt.Sprintf("%q", o.ClusterIP))
	text = strings.ReplaceAll(text, anyAddress, fmt.Sprintf("%q", o.Endpoint.Addr()))
	if port := o.Endpoint.Port(); port != 0 {
		text = strings.ReplaceAll(text, anyPort, fmt.Sprintf(`ort":%d`, port))
	}
	if o.ClusterIP.Is6() {
		text = strings.Replace(text, `"addressType":"IPv4"`, `"addressType":"IPv6"`, 1)
		text = strings.Replace(text, `"ipFamilies":["IPv4"]`, `"ipFamilies":["IPv6"]`, 1)
	}
	return []byte(text)
}

// hasEndpoint reports whether endpoints may contain the address of the server. Validation rejects some addresses, and
// the address must have the IP family of the Service.
func (o Own) hasEndpoint() bool {
	a := o.Endpoint.Addr()
	return a.IsValid() && a.Is4() == o.ClusterIP.Is4() && !a.IsUnspecified() && !a.IsLoopback() &&
		!a.IsLinkLocalUnicast() && !a.IsLinkLocalMulticast()
}

// HasEndpoint reports whether an object contains the address of the server.
func HasEndpoint(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Endpoints" || obj.GetKind() == "EndpointSlice"
}
