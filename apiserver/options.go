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

// Options configure a server. With the zero Options, a server keeps objects in memory and allows every request with a
// valid token.
type Options struct {
	// Store is the storage; the default is a new store of package storage/memory. The server closes only this default
	// store.
	Store storage.Store

	// Hooks are admission hooks. They run before the webhooks and policies of the same phase.
	Hooks admission.Hooks

	// Definitions are initial CustomResourceDefinitions, and Objects are initial objects of any kind. Before the server
	// accepts requests, it stores these objects, unless they exist. It sets their defaults and validates them, but calls
	// no admission. It also stores fields that clients can't set, such as status, uid, creationTimestamp, generation,
	// managedFields, and a deletionTimestamp with finalizers. It ignores the resourceVersion of an object. Objects may be
	// Go structs or unstructured; the server does not change the caller's objects.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	Objects     []runtime.Object
	// Scheme has the types of Go structs in Objects. It is needed only for structs with an empty TypeMeta, and not for
	// built-in kinds.
	Scheme *runtime.Scheme
	// Bootstrap selects which of kube-apiserver's own objects the server creates.
	Bootstrap Bootstrap

	// ServiceClusterIPRange is the range of the cluster IPs of Services, with at least 8 addresses; the default is
	// 10.96.0.0/12. The Service "kubernetes" gets the first address of the range.
	ServiceClusterIPRange netip.Prefix
	// AdvertiseAddress is the server's address in the Endpoints and the EndpointSlice "kubernetes" that Bootstrap.Service
	// selects; the default is the address of the first listener. Like kube-apiserver, the server does not create these two
	// objects if the address is not allowed in endpoints, for example if it is a loopback address.
	AdvertiseAddress netip.Addr

	// Version is the gitVersion that /version responds with; the default is the Kubernetes version that the server
	// implements.
	Version string

	// Audit records requests.
	Audit Audit

	// Token is the bearer token of the administrator; the default is random. Config contains this token. The administrator
	// is user "system:admin" in group "system:masters".
	Token string
	// Authenticator authenticates requests whose credentials the server itself does not know. If it is nil, the server
	// rejects these requests. To use a token authenticator of k8s.io/apiserver, such as tokenfile.New, pass it to
	// bearertoken.New.
	Authenticator authenticator.Request
	// Users are users with tokens. WriteKubeconfig adds a context for each of them, such as
	// "ann@tenure".
	Users []User
	// ServiceAccounts configure how tokens of ServiceAccounts are signed.
	ServiceAccounts ServiceAccounts
	// ClientCAs are the CAs of client certificates. The common name of a certificate is the name of the user, and its
	// organizations are the user's groups. Callers of New with their own http.Server must set ClientAuth of its TLS
	// configuration to tls.RequestClientCert. See also Running.AddUser.
	ClientCAs *x509.CertPool
	// Anonymous allows anonymous requests, as user "system:anonymous" in group "system:unauthenticated". Without an
	// Authorizer, they may only read health and version.
	Anonymous bool
	// Authorizer authorizes requests before their body is read; nil allows all authenticated requests. An apply that
	// creates an object is authorized a second time, for "create". If the Authorizer is an authorizer.RuleResolver, the
	// server serves SelfSubjectRulesReviews. If the Authorizer is an Observer, the server notifies it of writes of RBAC
	// objects. Package auth/rbac implements RBAC.
	Authorizer authorizer.Authorizer

	// DisableNamespaceLifecycle allows objects in namespaces that do not exist. The server then does not create the
	// default namespaces, and deleting a Namespace does not delete its contents.
	DisableNamespaceLifecycle bool
	// If Controllers is true, the server does not do the work of controllers. Run a controller manager beside the server,
	// or do without this work, as with envtest's kube-apiserver. In this mode, a deletion with the propagation policy
	// Orphan or Foreground sets the finalizer of this policy, PersistentVolumeClaims and PersistentVolumes get their
	// protection finalizer, and a deleted Namespace stays until controllers delete its contents and remove the finalizers.
	Controllers bool

	// If DisableDynamicAdmission is true, webhook configurations and admission policies are stored but have no effect.
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
	// Listeners are the listeners that Start uses in place of Listen. They may have any addresses. The server closes them.
	// Config uses the first of them.
	Listeners []net.Listener
	// Certificate is the serving certificate for Start. The default is a certificate for loopback, signed by the server's
	// own CA. Config trusts the chain of the certificate.
	Certificate *tls.Certificate
	// Hosts are the names and IP addresses that clients on other machines use for the server. The server's certificate
	// contains them, and the kubeconfig uses the first of them. With Hosts, Listen may be any address. Connections still
	// need TLS, and requests still need credentials.
	Hosts []string
	// Kubeconfig, if not empty, is the kubeconfig to which Start adds a context; see
	// WriteKubeconfig.
	Kubeconfig string

	Limits Limits

	// DisabledAdmissionPlugins are the names of kube-apiserver's built-in admission plugins that are not called, such as
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

// ServiceAccounts configure how tokens of ServiceAccounts are signed. The zero value signs with a random key: tokens
// are valid until the server ends.
type ServiceAccounts struct {
	// Issuer is the issuer of tokens, and their default audience; the default is
	// "https://kubernetes.default.svc".
	Issuer string
	// Key signs tokens; it must be RSA, or ECDSA over P-256, P-384 or P-521.
	Key crypto.Signer
	// PublicKeys are further keys whose tokens are accepted: *rsa.PublicKey or *ecdsa.PublicKey.
	PublicKeys []crypto.PublicKey
}

// Bootstrap selects some of the objects that kube-apiserver creates at its start. This server creates the selected
// objects, unless they exist. The objects were recorded from kube-apiserver.
type Bootstrap struct {
	// Service is the Service "kubernetes" in namespace default with its Endpoints and EndpointSlice, which contain
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

// BootstrapAll selects all objects that kube-apiserver creates.
func BootstrapAll() Bootstrap {
	return Bootstrap{Service: true, RBAC: true, PriorityClasses: true, FlowSchemas: true}
}

// An Observer is an Authorizer that is notified of each write and deletion of an RBAC object by this server, after the
// write is stored and before the response. The namespace of a cluster-scoped object is empty.
type Observer interface {
	Written(ctx context.Context, resource schema.GroupResource, namespace, name string)
}

// Limits limit the cost of requests. A field that is zero has its default.
//
// A user may use a quarter of Bodies, Requests and Watches. All ServiceAccounts of a namespace are treated as one user.
// A single request may exceed the quarter. Health checks and group system:masters are exempt from these three limits.
//
// The memory that a body needs when it is decoded is limited too (spec rule 12.9). The memory of its Go structs, and of
// the values in its YAML, is limited in proportion to the size of the body. Copies of YAML aliases may add at most Body
// bytes. A request that exceeds one of these limits gets a 413.
//
// Header, Connections, Read and Idle configure the http.Server of Start. Callers with their own http.Server
// configure it themselves.
type Limits struct {
	Body        int64 // size of a request's body, in bytes; 3 MiB
	Bodies      int64 // size of the bodies of all requests in flight, in bytes; 128 MiB
	Nesting     int   // maximum depth of lists and maps in a body; 1,000
	Object      int64 // size in storage, and size that defaults and conversions add, in bytes; 1.5 MiB
	Header      int   // size of a request's header, in bytes; 64 KiB
	Connections int   // number at the same time; 16,384
	Requests    int   // number in flight, except watches; 400
	Watches     int   // number at the same time; 10,000
	// Unread and UnreadPerUser limit the bytes that wait for clients: events of watches, and items of lists. Bytes that
	// wait for several clients are counted once. If a limit is exceeded, the server ends the response whose client has not
	// read for the longest time; see unread.go. The defaults are 64 MiB, and 16 MiB for each user.
	Unread, UnreadPerUser int64
	Read                  time.Duration // time to read a request; 30 s
	Write                 time.Duration // time to write a response or a watch event; 30 s
	Request               time.Duration // time to process a request that is not a watch; 60 s
	Watch                 time.Duration // default timeout of a watch; 30 min
	Idle                  time.Duration // timeout of idle connections; 2 min
	Shutdown              time.Duration // time to wait for requests in flight when the server stops; 5 s
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

// AllowPrivileged sets whether Pods may have privileged containers, like kube-apiserver's flag --allow-privileged. By
// default they may. The setting applies to the whole process, because Kubernetes has one global variable for it. Only
// the first call before the first server has an effect.
func AllowPrivileged(allow bool) { capabilities.Setup(allow, 0) }

// endpoint returns the address that the server advertises, with the port of the first listener. Without a listener, the
// port is 0.
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

// minServiceIPs is the minimum number of addresses in a range of cluster IPs.
const minServiceIPs = 8

// checkNetwork returns an error if the range of cluster IPs is too small, or if its IP family is not the family of the
// advertised address.
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
