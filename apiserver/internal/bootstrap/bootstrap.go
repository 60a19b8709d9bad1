// Package bootstrap has the objects that kube-apiserver creates by itself, as hosts/record
// recorded them: a line for each object, with its storage key, a tab, and its stored form.
package bootstrap

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

//go:embed *.jsonl
var files embed.FS

// The sets of objects, each of them a file.
const (
	// RBAC are ClusterRoles, Roles and their bindings.
	RBAC = "rbac"
	// PriorityClasses are the two PriorityClasses for what a cluster is made of.
	PriorityClasses = "priorityclasses"
	// FlowControl are FlowSchemas and PriorityLevelConfigurations.
	FlowControl = "flowcontrol"
	// Service are the Service, the Endpoints and the EndpointSlice of the server.
	Service = "service"
)

// Placeholders in the recorded files, for values that each server has of its own.
const (
	anyUID     = "00000000-0000-0000-0000-000000000000"
	anyTime    = "1970-01-01T00:00:00Z"
	anyAddress = `"192.0.2.1"`
	anyPort    = `ort":6443` // of port and targetPort
	anyService = `"10.0.0.1"`
)

// A Record is an object of a set.
type Record struct {
	Key   string // in storage
	Value []byte
}

// Records returns the objects of a set, with what differs from server to server as it is in
// the file.
func Records(set string) ([]Record, error) {
	data, err := files.ReadFile(set + ".jsonl")
	if err != nil {
		return nil, err
	}
	var out []Record
	for line := range bytes.Lines(data) {
		key, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if !ok {
			return nil, fmt.Errorf("%s.jsonl: expected a key, a tab and an object, got %.40q", set, line)
		}
		out = append(out, Record{string(key), value})
	}
	return out, nil
}

// A Creator creates the objects of sets in a store.
type Creator struct {
	Store  storage.Store
	Now    func() time.Time
	NewUID func() types.UID
	// Endpoint is the address of the server, for the set Service. If endpoints can't have it, they are not created. The
	// port may be 0, for that of the recorded objects.
	Endpoint netip.AddrPort
	// ClusterIP is the cluster IP of the Service.
	ClusterIP netip.Addr
}

// Create creates the objects of a set that do not exist. It reports whether it created any.
func (c Creator) Create(ctx context.Context, set string) (created bool, err error) {
	records, err := Records(set)
	if err != nil {
		return false, err
	}
	for _, r := range records {
		if isEndpoint(r.Key) && !c.hasEndpoint() {
			continue
		}
		live, _, err := c.Store.Get(ctx, r.Key, 0)
		if err != nil {
			return created, err
		}
		if live != nil && !isEndpoint(r.Key) {
			continue
		}
		value, revision := c.fill(r), int64(0)
		if live != nil {
			if value, err = moved(value, live.Value); value == nil || err != nil {
				return created, err
			}
			revision = live.Revision
		}
		_, err = c.Store.Put(ctx, r.Key, value, revision)
		var conflict *storage.ConflictError
		if err != nil && !errors.As(err, &conflict) { // another server of this store may have created it
			return created, err
		}
		created = true
	}
	return created, nil
}

// fill returns the stored form of a record of this server.
func (c Creator) fill(r Record) []byte {
	text := string(r.Value)
	text = strings.Replace(text, anyUID, string(c.NewUID()), 1)
	text = strings.ReplaceAll(text, anyTime, c.Now().UTC().Format(time.RFC3339))
	text = strings.ReplaceAll(text, anyService, fmt.Sprintf("%q", c.ClusterIP))
	text = strings.ReplaceAll(text, anyAddress, fmt.Sprintf("%q", c.Endpoint.Addr()))
	if port := c.Endpoint.Port(); port != 0 {
		text = strings.ReplaceAll(text, anyPort, fmt.Sprintf(`ort":%d`, port))
	}
	if c.ClusterIP.Is6() {
		text = strings.Replace(text, `"addressType":"IPv4"`, `"addressType":"IPv6"`, 1)
		text = strings.Replace(text, `"ipFamilies":["IPv4"]`, `"ipFamilies":["IPv6"]`, 1)
	}
	return []byte(text)
}

// hasEndpoint reports whether endpoints can have the address of the server, which validation requires, and which must
// be of the Service's family.
func (c Creator) hasEndpoint() bool {
	a := c.Endpoint.Addr()
	return a.IsValid() && a.Is4() == c.ClusterIP.Is4() && !a.IsUnspecified() && !a.IsLoopback() &&
		!a.IsLinkLocalUnicast() && !a.IsLinkLocalMulticast()
}

// isEndpoint reports whether an object has the address of the server, which changes.
func isEndpoint(key string) bool {
	return strings.HasPrefix(key, "/core/endpoints/") || strings.HasPrefix(key, "/discovery.k8s.io/endpointslices/")
}

// moved returns the stored form of an endpoint that another server left, with the address of
// this one and the metadata of live; nil if live has that address.
func moved(value, live []byte) ([]byte, error) {
	var ours, theirs map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(value, &ours), json.Unmarshal(live, &theirs)); err != nil {
		return nil, err
	}
	same := true
	for _, name := range []string{"subsets", "addressType", "endpoints", "ports"} {
		same = same && bytes.Equal(ours[name], theirs[name])
	}
	if same {
		return nil, nil
	}
	return bytes.Replace(value, ours["metadata"], theirs["metadata"], 1), nil
}
