package envtest

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// serverFlags are the supported flags of kube-apiserver.
type serverFlags struct {
	address, port              string
	advertise, serviceRange    string
	certDir, certFile, keyFile string
	clientCA, tokens           string
	anonymous, privileged      bool
	etcdPrefix                 string
	etcdServers                []string
	modes                      []string
	issuers, accountKeys       []string
	signingKey                 string
	enabledPlugins             []string
	disabledPlugins            []string
	featureGates               []string
	audit                      *genericoptions.AuditOptions
	requests                   int
	timeout                    time.Duration
	version                    string
}

func (f *serverFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.address, "bind-address", "127.0.0.1", "loopback address to listen on")
	set.StringVar(&f.advertise, "advertise-address", "",
		"address in the Endpoints \"kubernetes\", not a loopback address (default: as in kube-apiserver)")
	set.StringVar(&f.serviceRange, "service-cluster-ip-range", "10.0.0.0/24", "range of the cluster IPs of Services")
	set.StringVar(&f.port, "secure-port", "6443", "port to listen on; 0 selects any free port")
	set.StringVar(&f.certDir, "cert-dir", "",
		"folder with apiserver.crt and apiserver.key, which are created unless both exist")
	set.StringVar(&f.certFile, "tls-cert-file", "", "serving certificate")
	set.StringVar(&f.keyFile, "tls-private-key-file", "", "private key of the serving certificate")
	set.StringVar(&f.clientCA, "client-ca-file", "", "CAs of client certificates")
	set.StringVar(&f.tokens, "token-auth-file", "", "CSV file with token, user, uid and groups")
	set.BoolVar(&f.anonymous, "anonymous-auth", true, "allow requests without credentials, as user system:anonymous")
	set.BoolVar(&f.privileged, "allow-privileged", false, "allow privileged containers")
	set.StringSliceVar(&f.etcdServers, "etcd-servers", nil, "URLs of etcd, or of its placeholder")
	set.StringVar(&f.etcdPrefix, "etcd-prefix", "/registry", "prefix of keys in etcd")
	set.StringSliceVar(&f.modes, "authorization-mode", []string{"AlwaysAllow"}, "RBAC or AlwaysAllow")
	set.StringArrayVar(&f.issuers, "service-account-issuer", nil, "issuer of ServiceAccount tokens")
	set.StringArrayVar(&f.accountKeys, "service-account-key-file", nil, "public keys of ServiceAccount tokens")
	set.StringVar(&f.signingKey, "service-account-signing-key-file", "", "private key of ServiceAccount tokens")
	set.StringSliceVar(&f.enabledPlugins, "enable-admission-plugins", nil, "accepted, without effect")
	set.StringSliceVar(&f.disabledPlugins, "disable-admission-plugins", nil, "admission plugins that are not called")
	set.StringSliceVar(&f.featureGates, "feature-gates", nil, "features of Kubernetes, such as WatchList=false")
	f.audit = genericoptions.NewAuditOptions()
	f.audit.AddFlags(set)
	set.IntVar(&f.requests, "max-requests-inflight", 0, "limit of requests in flight; 0 means 400")
	set.DurationVar(&f.timeout, "request-timeout", time.Minute, "maximum time to process a request")
	set.StringVar(&f.version, "version", "false",
		"print the version of Kubernetes, or set the version to report, such as "+openapi.KubernetesVersion+"-custom")
	set.Lookup("version").NoOptDefVal = "true"
}

// RunAPIServer runs an API server in place of kube-apiserver until it is interrupted, and returns the exit status.
func RunAPIServer(env *process.Env, args []string) int {
	var f serverFlags
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	f.register(set)
	return runProgram(env, set, args, true, serverHelp, func(ctx context.Context) error {
		if printed, err := f.printVersion(env.Stdout); printed || err != nil {
			return err
		}
		if env.AllowPrivileged != nil {
			env.AllowPrivileged(f.privileged)
		}
		return f.serve(ctx, env)
	})
}

// printVersion prints the version if --version requests it. A version given with the flag must begin with this
// server's version.
func (f *serverFlags) printVersion(out io.Writer) (printed bool, err error) {
	rest, ok := strings.CutPrefix(f.version, openapi.KubernetesVersion)
	if ok && (rest == "" || strings.ContainsAny(rest[:1], "-+")) {
		return false, nil
	}
	switch f.version {
	case "false":
		f.version = ""
		return false, nil
	case "true", "raw":
		_, err := fmt.Fprintln(out, "Kubernetes "+openapi.KubernetesVersion)
		return true, err
	}
	return false, fmt.Errorf("--version: expected %s or one such as %s-custom, got %q",
		openapi.KubernetesVersion, openapi.KubernetesVersion, f.version)
}

const serverHelp = `kube-apiserver of Tenure serves the Kubernetes API to tests. Flags of
kube-apiserver that are not listed here are accepted, with a warning, and have no
effect.

`

func (f *serverFlags) serve(ctx context.Context, env *process.Env) error {
	if err := utilfeature.DefaultMutableFeatureGate.Set(strings.Join(f.featureGates, ",")); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	if err := f.checkPlugins(env.Stderr); err != nil {
		return err
	}
	options, err := f.options(env)
	if err != nil {
		return err
	}
	stopAudit, err := f.auditTo(&options.Audit)
	if err != nil {
		return err
	}
	defer stopAudit()
	if options.Store, err = openStore(ctx, f.etcdServers, f.etcdPrefix); err != nil {
		return err
	}
	defer options.Store.Close()
	if err := f.authorize(ctx, env.Stderr, &options); err != nil {
		return err
	}
	listener, err := f.listen(ctx, env.Stderr)
	if err != nil {
		return err
	}
	options.Listeners = []net.Listener{listener}
	server, err := apiserver.Start(context.WithoutCancel(ctx), options)
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintln(env.Stderr, "kube-apiserver: serving at", server.URL())
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return fmt.Errorf("the server stopped unexpectedly")
	}
}

// admissionPlugins are the names of kube-apiserver's admission plugins, in its order.
var admissionPlugins = []string{
	"AlwaysAdmit", "NamespaceAutoProvision", "NamespaceLifecycle", "NamespaceExists",
	"LimitPodHardAntiAffinityTopology", "LimitRanger", "ServiceAccount", "NodeRestriction", "TaintNodesByCondition",
	"AlwaysPullImages", "ImagePolicyWebhook", "PodSecurity", "PodNodeSelector", "Priority",
	"DefaultTolerationSeconds", "PodTolerationRestriction", "EventRateLimit", "ExtendedResourceToleration",
	"DefaultStorageClass", "StorageObjectInUseProtection", "PodGroupProtection",
	"OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval",
	"CertificateSigning", "ClusterTrustBundleAttest", "CertificateSubjectRestriction", "DefaultIngressClass",
	"DenyServiceExternalIPs", "PodTopologyLabels", "NodeDeclaredFeatureValidator", "PodResizeValidator",
	"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
	"ResourceQuota", "AlwaysDeny",
}

// checkPlugins rejects unknown admission plugins, with kube-apiserver's errors.
func (f *serverFlags) checkPlugins(warnings io.Writer) error {
	known := admission.NewPlugins()
	for _, name := range admissionPlugins {
		known.Register(name, nil)
	}
	flags := genericoptions.AdmissionOptions{
		Plugins: known, RecommendedPluginOrder: admissionPlugins,
		EnablePlugins: f.enabledPlugins, DisablePlugins: f.disabledPlugins,
	}
	if len(f.enabledPlugins) > 0 {
		warn(warnings, "kube-apiserver", "flag enable-admission-plugins has no effect")
	}
	return errors.Join(flags.Validate()...)
}

// auditTo sets the audit policy and backend from the flags, and returns a function that stops the backend. Without a
// policy, no events are recorded.
func (f *serverFlags) auditTo(o *apiserver.Audit) (stop func(), err error) {
	if err := errors.Join(f.audit.Validate()...); err != nil {
		return nil, err
	}
	var config genericserver.Config
	if err := f.audit.ApplyTo(&config); err != nil {
		return nil, err
	}
	if config.AuditBackend == nil {
		return func() {}, nil
	}
	o.Policy, o.Sink = config.AuditPolicyRuleEvaluator, config.AuditBackend
	stopped := make(chan struct{})
	if err := config.AuditBackend.Run(stopped); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return func() {
		close(stopped)
		config.AuditBackend.Shutdown()
	}, nil
}

// options returns the options that do not depend on a store.
func (f *serverFlags) options(env *process.Env) (o apiserver.Options, err error) {
	o = apiserver.Options{
		Bootstrap: apiserver.BootstrapAll(), Anonymous: f.anonymous, Now: env.Now,
		Version:                   f.version,
		Controllers:               true, // leave controllers' work to them, as kube-apiserver does
		DisableNamespaceLifecycle: slices.Contains(f.disabledPlugins, "NamespaceLifecycle"),
		DisabledAdmissionPlugins:  f.disabledPlugins,
		Limits:                    apiserver.Limits{Requests: f.requests, Request: f.timeout},
		Log:                       slog.New(slog.NewTextHandler(env.Stderr, nil)),
	}
	if err := f.network(&o); err != nil {
		return o, err
	}
	if o.Certificate, err = f.certificate(); err != nil {
		return o, err
	}
	if o.Hooks.Validate, err = judgeByPolicy(os.Args[0]); err != nil {
		return o, err
	}
	if f.clientCA != "" {
		data, err := os.ReadFile(f.clientCA)
		if err != nil {
			return o, fmt.Errorf("--client-ca-file: %w", err)
		}
		o.ClientCAs = x509.NewCertPool()
		if !o.ClientCAs.AppendCertsFromPEM(data) {
			return o, fmt.Errorf("--client-ca-file %s: expected certificates in PEM", f.clientCA)
		}
	}
	if f.tokens != "" {
		tokens, err := tokenfile.NewCSV(f.tokens)
		if err != nil {
			return o, fmt.Errorf("--token-auth-file: %w", err)
		}
		o.Authenticator = bearertoken.New(tokens)
	}
	return o, f.readAccountKeys(&o.ServiceAccounts)
}

// network sets the options for the network. If --service-cluster-ip-range has two ranges, one of each IP family,
// Services get addresses from the first.
func (f *serverFlags) network(o *apiserver.Options) (err error) {
	first, _, _ := strings.Cut(f.serviceRange, ",")
	if o.ServiceClusterIPRange, err = netip.ParsePrefix(first); err != nil {
		return fmt.Errorf("--service-cluster-ip-range: %w", err)
	}
	if f.advertise != "" {
		if o.AdvertiseAddress, err = netip.ParseAddr(f.advertise); err != nil {
			return fmt.Errorf("--advertise-address: %w", err)
		}
	}
	if f.advertise == "" || o.AdvertiseAddress.IsUnspecified() {
		o.AdvertiseAddress = netip.Addr{}
		// On a machine without a network, no address is found, and the server then has no endpoint.
		if ip, err := utilnet.ResolveBindAddress(net.ParseIP(f.address)); err == nil {
			found, _ := netip.AddrFromSlice(ip)
			o.AdvertiseAddress = found.Unmap()
		}
	}
	return nil
}

func (f *serverFlags) readAccountKeys(o *apiserver.ServiceAccounts) error {
	if len(f.issuers) > 0 {
		o.Issuer = f.issuers[0] // issues tokens; tokens of the other issuers are accepted
	}
	if f.signingKey != "" {
		key, err := keyutil.PrivateKeyFromFile(f.signingKey)
		if err != nil {
			return fmt.Errorf("--service-account-signing-key-file: %w", err)
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return fmt.Errorf("--service-account-signing-key-file %s: expected a private key, got a %T", f.signingKey, key)
		}
		o.Key = signer
	}
	for _, path := range f.accountKeys {
		keys, err := keyutil.PublicKeysFromFile(path)
		if err != nil {
			return fmt.Errorf("--service-account-key-file: %w", err)
		}
		for _, key := range keys {
			o.PublicKeys = append(o.PublicKeys, key)
		}
	}
	return nil
}

// certificate returns the serving certificate of the flags; nil if there is none.
func (f *serverFlags) certificate() (*tls.Certificate, error) {
	certFile, keyFile := f.certFile, f.keyFile
	if certFile == "" && f.certDir != "" {
		certFile, keyFile = filepath.Join(f.certDir, "apiserver.crt"), filepath.Join(f.certDir, "apiserver.key")
		if err := writeCertificate(certFile, keyFile); err != nil {
			return nil, fmt.Errorf("--cert-dir: %w", err)
		}
	}
	if certFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return &certificate, nil
}

// writeCertificate writes a self-signed certificate and its key, unless both exist, as kube-apiserver does.
func writeCertificate(certFile, keyFile string) error {
	if ok, err := cert.CanReadCertAndKey(certFile, keyFile); ok || err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv6loopback},
		[]string{"localhost", "kubernetes.default.svc", "kubernetes.default", "kubernetes"})
	if err != nil {
		return err
	}
	return errors.Join(cert.WriteCert(certFile, certificate), keyutil.WriteKey(keyFile, key))
}

// authorize sets the authorizer that the flags select.
func (f *serverFlags) authorize(ctx context.Context, warnings io.Writer, o *apiserver.Options) (err error) {
	o.Authorizer, err = f.authorizer(ctx, warnings, o.Store)
	if err == nil && o.Authorizer == nil && o.Anonymous {
		warn(warnings, "kube-apiserver", "--anonymous-auth has no effect with --authorization-mode=AlwaysAllow")
		o.Anonymous = false // otherwise everybody would be an administrator
	}
	return err
}

// authorizer returns the authorizer for --authorization-mode; nil allows all requests.
func (f *serverFlags) authorizer(
	ctx context.Context, warnings io.Writer, store storage.Store,
) (authorizer.Authorizer, error) {
	withRBAC := false
	for _, mode := range f.modes {
		switch mode {
		case "AlwaysAllow":
			return nil, nil
		case "RBAC":
			withRBAC = true
		case "Node": // no kubelets run
		default:
			warn(warnings, "kube-apiserver", "--authorization-mode=%s has no effect", mode)
		}
	}
	if !withRBAC {
		return nil, fmt.Errorf("--authorization-mode: expected RBAC or AlwaysAllow, got %v", f.modes)
	}
	return rbac.New(ctx, store)
}

// listen listens on the address of the flags if it is a loopback address, otherwise on 127.0.0.1.
func (f *serverFlags) listen(ctx context.Context, warnings io.Writer) (net.Listener, error) {
	host := f.address
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		warn(warnings, "kube-apiserver", "--bind-address=%s: listening on 127.0.0.1 only", host)
		host = "127.0.0.1"
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, f.port))
}
