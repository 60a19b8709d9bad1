package apiserver

import (
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Options configure a server. The zero Options keep objects in memory and allow everything to
// clients that have the token.
type Options struct {
	// Store is the storage; the default is storage/memory. The server closes the store only if
	// it created it.
	Store storage.Store

	// Hooks are admission hooks. They come before the webhooks and policies of the same phase.
	Hooks admission.Hooks

	// Definitions are CustomResourceDefinitions, and Objects are objects of any kind, to begin
	// with: they are stored before the server accepts requests, unless they exist. Their
	// defaults are set and they are validated, but no admission hook is called. What a client
	// can't set is stored as it is given, such as status, uid, creationTimestamp, generation,
	// managedFields, and a deletionTimestamp with finalizers. A resourceVersion is ignored.
	// Objects may be Go structs or unstructured; they are not changed.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	Objects     []runtime.Object
	// Scheme has the kinds of Go structs in Objects that have no TypeMeta. Built-in kinds are
	// known without it.
	Scheme *runtime.Scheme
	// Bootstrap says which of the objects that kube-apiserver creates itself the server creates.
	Bootstrap Bootstrap

	// ServiceClusterIPRange is the range of the cluster IPs of Services, of at least 8 addresses; the default is
	// 10.96.0.0/12. The Service "kubernetes" has its first address.
	ServiceClusterIPRange netip.Prefix
	// AdvertiseAddress is the address of the server in the Endpoints and the EndpointSlice "kubernetes" of Bootstrap; the
	// default is the address of the first listener. They are not created for an address that endpoints can't have, such as
	// one of loopback, as kube-apiserver does not.
	AdvertiseAddress netip.Addr

	// Version is the gitVersion that /version responds with; the default is the Kubernetes version that the server
	// implements.
	Version string

	// Audit records requests.
	Audit Audit

	// Token is the bearer token of the administrator, which Config contains; the default is
	// random. Its user is "system:admin" in group "system:masters".
	Token string
	// Authenticator authenticates other requests; nil rejects them. Those of k8s.io/apiserver
	// for bearer tokens, such as tokenfile.New, become one by bearertoken.New.
	Authenticator authenticator.Request
	// Users are users with tokens. WriteKubeconfig adds a context for each of them, such as
	// "ann@tenure".
	Users []User
	// ServiceAccounts says how tokens of ServiceAccounts are signed.
	ServiceAccounts ServiceAccounts
	// ClientCAs are the CAs of client certificates: the common name is the user, organizations
	// are the groups. Callers of New with their own http.Server set ClientAuth of its TLS
	// configuration to tls.RequestClientCert. See Running.AddUser too.
	ClientCAs *x509.CertPool
	// Anonymous allows anonymous requests, as user "system:anonymous" in group "system:unauthenticated". Without an
	// Authorizer they may read health and version, and nothing else.
	Anonymous bool
	// Authorizer authorizes requests before their body is read; nil allows all of them. An
	// apply that creates an object is authorized a second time, for "create". If it is an
	// authorizer.RuleResolver, the server answers SelfSubjectRulesReviews; see
	// Observer too. Package auth/rbac implements RBAC.
	Authorizer authorizer.Authorizer

	// DisableNamespaceLifecycle lets objects be created in namespaces that do not exist. The
	// server then creates no namespaces by itself, and deleting one deletes nothing in it.
	DisableNamespaceLifecycle bool
	// Controllers says that a controller manager runs beside the server, or that nobody does its work, as beside envtest's
	// kube-apiserver. Then deletions with the propagation policies Orphan and Foreground set their finalizer,
	// PersistentVolumeClaims and PersistentVolumes get their protection finalizer, and a deleted Namespace stays:
	// controllers remove the finalizers, and delete the content of the Namespace.
	Controllers bool

	// DisableDynamicAdmission lets webhook configurations and admission policies be stored
	// without effect.
	DisableDynamicAdmission bool

	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// NewUID returns the UID of a new object; the default is random.
	NewUID func() types.UID
	// Suffix returns the suffix for generateName; the default is five random letters and
	// digits.
	Suffix func() string

	// Listen is the address for Start; the default is a free port of 127.0.0.1. Without Hosts, it
	// must be a loopback address.
	Listen string
	// Listeners are the listeners for Start, in the place of Listen, on addresses of the caller's choice. The server
	// closes them. Config uses the first of them.
	Listeners []net.Listener
	// Certificate is the serving certificate for Start; the default is one for loopback, of a
	// CA of the server's own. Config trusts its chain.
	Certificate *tls.Certificate
	// Hosts are the names and IP addresses by which clients beyond this computer reach the
	// server: they are in its certificate, and the kubeconfig has the first of them. With Hosts,
	// Listen may be any address. Every request needs a token all the same, and every connection
	// TLS.
	Hosts []string
	// Kubeconfig, if not empty, is the kubeconfig to which Start adds a context; see
	// WriteKubeconfig.
	Kubeconfig string

	Limits Limits

	// DisabledAdmissionPlugins are the names of plugins that are compiled into kube-apiserver and not called, such as
	// PodSecurity.
	DisabledAdmissionPlugins []string

	// Log is the logger for internal errors; the default is slog.Default().
	Log *slog.Logger

	ownClock bool // Now is not time.Now
}

// A User is a user with a bearer token.
type User struct {
	Name   string
	Groups []string
	Token  string // the default is random
}

// ServiceAccounts says how tokens of ServiceAccounts are signed. The zero value signs with a
// random key: tokens end with the server.
type ServiceAccounts struct {
	// Issuer is the issuer of tokens, and their default audience; the default is
	// "https://kubernetes.default.svc".
	Issuer string
	// Key signs tokens; it must be RSA, or ECDSA over P-256, P-384 or P-521.
	Key crypto.Signer
	// PublicKeys are keys whose tokens are accepted besides: *rsa.PublicKey or
	// *ecdsa.PublicKey.
	PublicKeys []crypto.PublicKey
}

// Bootstrap selects which of the objects that kube-apiserver creates at its start a server creates,
// unless they exist. They were recorded from kube-apiserver.
type Bootstrap struct {
	// Service is the Service "kubernetes" in namespace default with its Endpoints and EndpointSlice, which have
	// Options.AdvertiseAddress and the port of the first listener of Start.
	Service bool
	// RBAC are the default ClusterRoles, Roles and bindings. Package auth/rbac creates them
	// too.
	RBAC bool
	// PriorityClasses are system-cluster-critical and system-node-critical.
	PriorityClasses bool
	// FlowSchemas are the FlowSchemas and PriorityLevelConfigurations. They have no effect.
	FlowSchemas bool
}

// BootstrapAll is all that kube-apiserver creates.
func BootstrapAll() Bootstrap {
	return Bootstrap{Service: true, RBAC: true, PriorityClasses: true, FlowSchemas: true}
}

// An Observer is an Authorizer that is notified of every write and deletion of an RBAC object by this server, after it
// is stored and before the response. The namespace of a cluster-scoped object is empty.
type Observer interface {
	Written(ctx context.Context, resource schema.GroupResource, namespace, name string)
}

// Limits limit the cost of requests. Zero fields mean the defaults.
//
// A user, or the ServiceAccounts of a namespace together, may take a quarter of Bodies, Requests and Watches. Users of
// system:masters and health checks always have room.
//
// A body is also limited by the memory that it becomes, in proportion to its size (spec rule 12.9): by the Go structs,
// by the values in YAML, and by what YAML aliases add, which is at most Body. A request that exceeds this is a 413.
//
// Header, Connections, Read and Idle configure the http.Server of Start. Callers with their
// own http.Server set them there.
type Limits struct {
	Body        int64 // of a request, in bytes; 3 MiB
	Bodies      int64 // of all requests in flight, in bytes; 128 MiB
	Nesting     int   // maximum depth of lists and maps in a body; 1,000
	Object      int64 // in storage, and what defaults and conversions add, in bytes; 1.5 MiB
	Header      int   // of a request, in bytes; 64 KiB
	Connections int   // at the same time; 16,384
	Requests    int   // in flight, except for watches; 400
	Watches     int   // at the same time; 10,000
	// Unread and UnreadPerUser bound the bytes that wait for clients: events of watches, and items of lists. What waits
	// for several clients counts once. If a limit is exceeded, the response ends whose client has not read for the
	// longest time; see unread.go. The defaults are 64 MiB, and 16 MiB for each user.
	Unread, UnreadPerUser int64
	Read                  time.Duration // to read a request; 30 s
	Write                 time.Duration // to write a response or a watch event; 30 s
	Request               time.Duration // to process a request that is not a watch; 60 s
	Watch                 time.Duration // default timeout of a watch; 30 min
	Idle                  time.Duration // timeout of idle connections; 2 min
	Shutdown              time.Duration // to wait for requests in flight when the server stops; 5 s
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Body:          cmp.Or(l.Body, 3<<20),
		Bodies:        cmp.Or(l.Bodies, 128<<20),
		Nesting:       cmp.Or(l.Nesting, 1000),
		Object:        cmp.Or(l.Object, resources.MaxObject),
		Header:        cmp.Or(l.Header, 64<<10),
		Connections:   cmp.Or(l.Connections, 16_384),
		Requests:      cmp.Or(l.Requests, 400),
		Watches:       cmp.Or(l.Watches, 10_000),
		Unread:        cmp.Or(l.Unread, 64<<20),
		UnreadPerUser: cmp.Or(l.UnreadPerUser, 16<<20),
		Read:          cmp.Or(l.Read, 30*time.Second),
		Write:         cmp.Or(l.Write, 30*time.Second),
		Request:       cmp.Or(l.Request, time.Minute),
		Watch:         cmp.Or(l.Watch, 30*time.Minute),
		Idle:          cmp.Or(l.Idle, 2*time.Minute),
		Shutdown:      cmp.Or(l.Shutdown, 5*time.Second),
	}
}

func (o Options) withDefaults() Options {
	if o.ownClock = o.ownClock || o.Now != nil; o.Now == nil {
		o.Now = time.Now
	}
	if o.Authorizer == nil && o.Anonymous {
		o.Authorizer = authorizer.AuthorizerFunc(onlyAuthenticated)
	} else if o.Authorizer == nil {
		o.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	}
	if o.Token == "" {
		o.Token = uuid.NewString()
	}
	o.Users = slices.Clone(o.Users)
	for i := range o.Users {
		o.Users[i].Token = cmp.Or(o.Users[i].Token, uuid.NewString())
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Version = cmp.Or(o.Version, kubernetesVersion)
	if !o.ServiceClusterIPRange.IsValid() {
		o.ServiceClusterIPRange = builtin.DefaultServiceClusterIPRange
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// AllowPrivileged says whether Pods may have privileged containers, as kube-apiserver's flag --allow-privileged does.
// They may by default. It holds for the whole process; only the first call before the first server has an effect, as
// Kubernetes has one global variable for it.
func AllowPrivileged(allow bool) { capabilities.Setup(allow, 0) }

// endpoint returns the address that the server advertises and the port of the first listener. The port is 0 without a
// listener.
func (o Options) endpoint() netip.AddrPort {
	var listener netip.AddrPort
	if len(o.Listeners) > 0 {
		if address, ok := o.Listeners[0].Addr().(*net.TCPAddr); ok {
			listener = address.AddrPort()
		}
	}
	address := listener.Addr()
	if o.AdvertiseAddress.IsValid() {
		address = o.AdvertiseAddress
	}
	return netip.AddrPortFrom(address.Unmap(), listener.Port())
}

// minServiceIPs is how many addresses a range of cluster IPs must have.
const minServiceIPs = 8

// checkNetwork returns an error if the range of cluster IPs is too small, or of another family than the address that
// the server advertises.
func (o Options) checkNetwork() error {
	network := o.ServiceClusterIPRange
	if bits := network.Addr().BitLen() - network.Bits(); 1<<min(bits, 8) < minServiceIPs {
		return fmt.Errorf("ServiceClusterIPRange: expected at least %d addresses, got %s", minServiceIPs, network)
	}
	if a := o.AdvertiseAddress; a.IsValid() && a.Unmap().Is4() != network.Addr().Is4() {
		return fmt.Errorf("AdvertiseAddress: expected the family of ServiceClusterIPRange %s, got %s", network, a)
	}
	return nil
}
