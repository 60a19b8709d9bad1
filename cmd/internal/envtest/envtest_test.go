package envtest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestMain runs the test binary as one of the programs if it is called by its name.
func TestMain(m *testing.M) {
	if program := Program(os.Args[0]); program != nil {
		env := process.Env{Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Context: context.Background()}
		env.AllowPrivileged = func(allow bool) {
			if allow {
				fmt.Fprintln(env.Stderr, "privileged containers are allowed")
			}
		}
		os.Exit(program(&env, os.Args[1:]))
	}
	os.Exit(m.Run())
}

const (
	wait = 30 * time.Second
	tick = 20 * time.Millisecond
)

// assets creates a folder with links to the test binary.
func assets(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	binary, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, MakeFolder(folder, binary, "", ""))
	return folder
}

// freePort returns an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// start starts a program, which runs until the test ends. stop stops it and returns its output.
func start(t *testing.T, path string, args ...string) (stop func() string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	stopped := false
	stop = func() string {
		if !stopped {
			stopped = true
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			if err := cmd.Wait(); Program(path) != nil {
				require.NoError(t, err, "it ends well")
			}
		}
		return out.String()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// insecure sends requests as envtest does for health checks: without credentials, and without verifying the
// certificate.
var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

func awaitHealth(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		res, err := insecure.Get(url)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode == http.StatusOK
	}, wait, tick, url)
}

// authority is a CA that signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue returns a certificate and its key as PEM.
func (a *authority) issue(t *testing.T, name string, groups ...string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// plane is an etcd and a kube-apiserver, started with envtest's flags.
type plane struct {
	url              string
	serving, clients *authority
	stop             func() string
}

func startPlane(t *testing.T, folder string, more ...string) *plane {
	t.Helper()
	etcd := "http://127.0.0.1:" + freePort(t)
	start(t, filepath.Join(folder, "etcd"), "--advertise-client-urls="+etcd, "--data-dir="+t.TempDir(),
		"--listen-client-urls="+etcd, "--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync=true")
	awaitHealth(t, etcd+"/health")
	return startServer(t, folder, etcd, more...)
}

func startServer(t *testing.T, folder, etcd string, more ...string) *plane {
	t.Helper()
	p := &plane{serving: newAuthority(t), clients: newAuthority(t)}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	certificate, key := p.serving.issue(t, "apiserver")
	write("apiserver.crt", certificate)
	write("apiserver.key", key)
	accounts, accountsKey := newAuthority(t).issue(t, "accounts")
	port := freePort(t)
	p.url = "https://127.0.0.1:" + port
	p.stop = start(t, filepath.Join(folder, "kube-apiserver"), append([]string{
		"--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--cert-dir=" + dir,
		"--client-ca-file=" + write("ca.crt", p.clients.pem()), "--disable-admission-plugins=ServiceAccount",
		"--etcd-servers=" + etcd, "--secure-port=" + port, "--service-account-issuer=" + p.url + "/",
		"--service-account-key-file=" + write("sa.crt", accounts),
		"--service-account-signing-key-file=" + write("sa.key", accountsKey), "--service-cluster-ip-range=10.0.0.0/24",
	}, more...)...)
	awaitHealth(t, p.url+"/healthz")
	return p
}

// client returns a client that authenticates with a certificate.
func (p *plane) client(t *testing.T, name string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	config := &rest.Config{Host: p.url, TLSClientConfig: rest.TLSClientConfig{CAData: p.serving.pem()}}
	config.CertData, config.KeyData = p.clients.issue(t, name, groups...)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// Two control planes run concurrently, with envtest's flags, and share no state.
func TestControlPlanes(t *testing.T) {
	folder := assets(t)
	for i := range 2 {
		p := startPlane(t, folder)
		admin := p.client(t, "admin", "system:masters")
		_, err := admin.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
		require.NoError(t, err, "control plane %d", i)
		_, err = admin.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = p.client(t, "eve").CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)

		_, err = admin.CoreV1().ServiceAccounts("shop").Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		token, err := admin.CoreV1().ServiceAccounts("shop").CreateToken(t.Context(), "robot",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{p.url + "/"}, token.Spec.Audiences)
		review, err := admin.AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}},
			metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, "system:serviceaccount:shop:robot", review.Status.User.Username)
	}
}

// TestPolicy: writes are checked against the policy in the folder.
func TestPolicy(t *testing.T) {
	folder := assets(t)
	file, report := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(folder, reportName)
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: "+policy.APIVersion+`
kind: ConflictPolicy
permissions: [{managers: [operator], fields: [.metadata.labels]}]
`), 0o600))
	binary, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, MakeFolder(folder, binary, "", file))
	require.NoError(t, os.WriteFile(report, []byte("of an earlier suite"), 0o600))
	require.NoError(t, MakeFolder(folder, binary, "", file))
	require.NoFileExists(t, report)
	p := startPlane(t, folder)
	maps := p.client(t, "admin", "system:masters").CoreV1().ConfigMaps("default")
	live, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"every": "60s"},
	}, metav1.CreateOptions{FieldManager: "user"})
	require.NoError(t, err)
	live.Labels = map[string]string{"seen": "true"}
	live, err = maps.Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "operator"})
	require.NoError(t, err)
	require.NoFileExists(t, report, "the operator may own labels")
	live.Data["every"] = "1m0s"
	_, err = maps.Update(t.Context(), live, metav1.UpdateOptions{
		FieldManager: "operator", DryRun: []string{metav1.DryRunAll},
	})
	require.NoError(t, err)
	require.NoFileExists(t, report, "a dry run stores nothing")
	_, err = maps.Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "operator"})
	require.NoError(t, err)
	lines, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Regexp(t, `^configmap/a in default: \.data\.every: operator \(Update\) owns it since .*; `+
		`before, it was "60s" of user \(Update\)\n$`, string(lines))
	require.NoError(t, MakeFolder(folder, binary, "", ""))
	hook, err := judgeByPolicy(filepath.Join(folder, "kube-apiserver"))
	require.NoError(t, err)
	require.Nil(t, hook)
	require.NoError(t, os.WriteFile(file, []byte("kind: Other"), 0o600))
	require.ErrorContains(t, MakeFolder(folder, binary, "", file), file)
}

func TestFlags(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte(`secret,ann,1,"system:masters,others"`+"\n"), 0o600))
	audited, log := filepath.Join(t.TempDir(), "audit.yaml"), filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(audited,
		[]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600))
	p := startPlane(t, assets(t), "--token-auth-file", tokens, "--authorization-mode=Node,RBAC", "--bind-address=0.0.0.0",
		"--feature-gates=WatchList=false", "--audit-policy-file", audited, "--audit-log-path", log,
		"--runtime-config=api/all=true", "--enable-admission-plugins=AlwaysPullImages",
		"--disable-admission-plugins=PodSecurity,ServiceAccount", "-v", "5",
		"--version="+openapi.KubernetesVersion+"-custom", "--advertise-address=192.0.2.7",
		"--service-cluster-ip-range=10.7.0.0/24,fd00::/112")
	config := &rest.Config{Host: p.url, BearerToken: "secret"}
	config.CAData = p.serving.pem()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "192.0.2.7", endpoints.Subsets[0].Addresses[0].IP)
	require.Equal(t, p.url[strings.LastIndex(p.url, ":")+1:], strconv.Itoa(int(endpoints.Subsets[0].Ports[0].Port)))
	service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "10.7.0.1", service.Spec.ClusterIP)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, openapi.KubernetesVersion+"-custom", version.GitVersion)
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), restricted, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	_, err = client.CoreV1().Pods("restricted").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err, "PodSecurity is disabled")
	printed := p.stop()
	events, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(events), `"requestURI":"/api/v1/namespaces/default/services/kubernetes"`)
	for _, warning := range []string{
		"flag runtime-config has no effect", "flag enable-admission-plugins has no effect",
		"--bind-address=0.0.0.0: listening on 127.0.0.1",
	} {
		require.Contains(t, printed, "kube-apiserver: warning: "+warning)
	}
	require.Contains(t, printed, "privileged containers are allowed")
	require.NotContains(t, printed, "allow-privileged")
}

// TestAlwaysAllow: as in kube-apiserver, AlwaysAllow does not allow requests without credentials.
func TestAlwaysAllow(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte("secret,ann,1\n"), 0o600))
	var f serverFlags
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	f.register(set)
	require.NoError(t, set.Parse([]string{"--authorization-mode=RBAC,AlwaysAllow", "--token-auth-file=" + tokens}))
	o, err := f.options(&process.Env{Stderr: io.Discard})
	require.NoError(t, err)
	require.NoError(t, f.authorize(t.Context(), io.Discard, &o))
	server, err := apiserver.New(t.Context(), o)
	require.NoError(t, err)
	defer server.Close()
	for authorization, want := range map[string]int{
		"": http.StatusUnauthorized, "Basic YmFkOndyb25n": http.StatusUnauthorized, "Bearer secret": http.StatusOK,
	} {
		q := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/kube-system", nil)
		q.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, q)
		require.Equal(t, want, w.Code, "%s: %s", authorization, w.Body)
	}
}

// envtest calls the programs with --help to find out their flags, and stops if that fails.
func TestHelpOfPrograms(t *testing.T) {
	folder := assets(t)
	for _, name := range []string{"kube-apiserver", "etcd"} {
		out, err := exec.Command(filepath.Join(folder, name), "--help").CombinedOutput()
		require.NoError(t, err)
		require.NotRegexp(t, regexp.MustCompile(`(?m)^\s*--insecure-port\b`), string(out))
		require.Contains(t, string(out), "Flags:")
	}
	out, err := exec.Command(filepath.Join(folder, "kube-apiserver"), "--version").Output()
	require.NoError(t, err)
	require.Regexp(t, `^Kubernetes v1\.\d+\.\d+\n$`, string(out))
	for _, flag := range []string{"--version", "-version", "--version=true"} {
		out, err = exec.Command(filepath.Join(folder, "etcd"), flag).Output()
		require.NoError(t, err)
		require.Regexp(t, `^etcd of Tenure, a placeholder for etcd, for Kubernetes v1\.\d+\.\d+\n$`, string(out))
	}
	out, err = exec.Command(filepath.Join(folder, "kubectl"), "version").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "PATH")
}

// TestCertificateOfItsOwn: in a folder without a certificate, the server creates one. Later servers use the same one.
func TestCertificateOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	f := serverFlags{certDir: dir}
	first, err := f.certificate()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(data))
	leaf, err := x509.ParseCertificate(first.Certificate[0])
	require.NoError(t, err)
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: "127.0.0.1", Roots: roots})
	require.NoError(t, err)
	again, err := f.certificate()
	require.NoError(t, err)
	require.Equal(t, first.Certificate, again.Certificate)
	_, err = (&serverFlags{certDir: "/dev/null/certs"}).certificate()
	require.ErrorContains(t, err, "--cert-dir: ")
}

func TestRefusedFlags(t *testing.T) {
	folder := assets(t)
	for _, row := range []struct {
		name, why string
		args      []string
		message   string
	}{
		{"no etcd", "kube-apiserver has the same demand", nil, "--etcd-servers"},
		{"no such CA", "nobody could log in", []string{"--client-ca-file=missing"}, "--client-ca-file"},
		{"CA without certificates", "nobody could log in", []string{"--client-ca-file=/dev/null"},
			"expected certificates in PEM"},
		{"no such tokens", "nobody could log in", []string{"--token-auth-file=missing"}, "--token-auth-file"},
		{"no such key", "no token could be issued", []string{"--service-account-signing-key-file=missing"},
			"signing-key-file"},
		{"another version", "the API is that of one version", []string{"--version=v1.30.0"}, "--version: expected v1."},
		{"no range", "there would be no cluster IPs", []string{"--service-cluster-ip-range=10.0.0.0"},
			"--service-cluster-ip-range"},
		{"no address", "nobody could reach it", []string{"--advertise-address=here"}, "--advertise-address"},
		{"no such feature", "as kube-apiserver", []string{"--feature-gates=Some=true"}, "unrecognized feature gate: Some"},
		{"no such plugin", "as kube-apiserver", []string{"--disable-admission-plugins=PodSecurtiy"},
			`disable-admission-plugins plugin "PodSecurtiy" is unknown`},
		{"no such plugin to enable", "as kube-apiserver", []string{"--enable-admission-plugins=AlwaysDeny,None"},
			`enable-admission-plugins plugin "None" is unknown`},
		{"a plugin both ways", "as kube-apiserver",
			[]string{"--enable-admission-plugins=Priority", "--disable-admission-plugins=Priority"}, "overlapped"},
		{"no such policy", "nothing would be recorded", []string{"--audit-policy-file=missing"}, "missing"},
		{"a number that is none", "it means nothing", []string{"--max-requests-inflight=many"}, "max-requests-inflight"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := exec.Command(filepath.Join(folder, "kube-apiserver"), row.args...).CombinedOutput()
			require.Error(t, err, row.why)
			require.Contains(t, string(out), row.message)
			require.True(t, strings.HasPrefix(string(out), "kube-apiserver: "), "%s", out)
		})
	}
	out, err := exec.Command(filepath.Join(folder, "etcd"), "--listen-client-urls=http://192.0.2.1:0").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "expected a loopback address")
}

// TestKubeAPITest starts the programs with the arguments of kube-api-test, an envtest in Fabric8's Kubernetes client
// for Java.
func TestKubeAPITest(t *testing.T) {
	folder := assets(t)
	etcd := "http://0.0.0.0:" + freePort(t)
	start(t, filepath.Join(folder, "etcd"), "-data-dir", t.TempDir(), "-wal-dir", t.TempDir(),
		"-listen-client-urls", etcd, "-advertise-client-urls", etcd, "--listen-peer-urls", "http://localhost:0")
	awaitHealth(t, etcd+"/health")
	p := startServer(t, folder, etcd, "--service-account-issuer", "https://localhost", "--allow-privileged")
	awaitHealth(t, p.url+"/readyz")
	_, err := p.client(t, "kubeapitest", "system:masters").CoreV1().Namespaces().Get(t.Context(), "default",
		metav1.GetOptions{})
	require.NoError(t, err)
}

// TestAdmissionPlugins compares the known admission plugins with kube-apiserver's source.
func TestAdmissionPlugins(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "pkg/kubeapiserver/options/plugins.go"))
	if err != nil {
		t.Skip("the source of k8s.io/kubernetes is not there")
	}
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^\t\w+\.PluginName, +// (\w+)$`).FindAllSubmatch(source, -1) {
		names = append(names, string(found[1]))
	}
	require.Equal(t, names, admissionPlugins)
}

// If a real etcd runs, objects are stored in it.
func TestRealEtcd(t *testing.T) {
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("etcd is not installed")
	}
	folder := assets(t)
	url, peers := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t)
	path := filepath.Join(t.TempDir(), "real-etcd") // not a name of our programs
	require.NoError(t, os.Symlink(etcd, path))
	start(t, path, "--data-dir="+t.TempDir(), "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	awaitHealth(t, url+"/health")
	for i := range 2 {
		p := startServer(t, folder, url)
		_, err := p.client(t, "admin", "system:masters").CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
		require.Equal(t, i == 1, apierrors.IsAlreadyExists(err), "%v", err)
		p.stop()
	}
}

// The folder can be created again, also by several processes concurrently.
func TestMakeFolder(t *testing.T) {
	folder, tools := t.TempDir(), t.TempDir()
	kubectl := filepath.Join(tools, exe("kubectl"))
	require.NoError(t, os.WriteFile(kubectl, []byte("#!/bin/sh\n"), 0o755))
	built := filepath.Join(tools, "go-build1", "tenure")
	require.NoError(t, os.Mkdir(filepath.Dir(built), 0o755))
	require.NoError(t, os.WriteFile(built, []byte("program"), 0o755))
	also := filepath.Join(t.TempDir(), "also")
	require.NoError(t, os.Symlink(folder, also))
	path := strings.Join([]string{also, folder, tools}, string(filepath.ListSeparator))
	done := make(chan error)
	for range 4 {
		go func() { done <- MakeFolder(folder, built, path, "") }()
	}
	for range 4 {
		require.NoError(t, <-done)
	}
	linkTarget, err := os.Readlink(filepath.Join(folder, exe("kubectl")))
	require.NoError(t, err)
	require.Equal(t, kubectl, linkTarget)
	require.NoError(t, os.RemoveAll(filepath.Dir(built)), "as go run does")
	data, err := os.ReadFile(filepath.Join(folder, exe("kube-apiserver")))
	require.NoError(t, err)
	require.Equal(t, "program", string(data))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 5, "no other files stay")
	require.Equal(t, recordName, entries[0].Name())
}

// TestFilesOfOthers checks that MakeFolder neither replaces nor removes a file that it did not make, and then changes
// nothing.
func TestFilesOfOthers(t *testing.T) {
	binary, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: "+policy.APIVersion+"\nkind: ConflictPolicy\n"), 0o600))
	for _, name := range []string{exe("kube-apiserver"), exe("etcd"), exe("kubectl"), policyName, reportName} {
		for _, row := range []struct {
			name, why string
			make      func(path string) error
		}{
			{"file", "a pinned program", func(path string) error { return os.WriteFile(path, []byte("mine"), 0o755) }},
			{"link", "a package manager makes links", func(path string) error { return os.Symlink("mine", path) }},
			{"folder", "it can't be replaced", func(path string) error { return os.Mkdir(path, 0o755) }},
		} {
			t.Run(name+" "+row.name, func(t *testing.T) {
				folder := t.TempDir()
				path := filepath.Join(folder, name)
				require.NoError(t, row.make(path))
				before, err := os.Lstat(path)
				require.NoError(t, err)
				for _, policyFile := range []string{"", file} {
					require.ErrorContains(t, MakeFolder(folder, binary, "", policyFile),
						path+" exists, and tenure envtest did not make it: remove it, or use another folder", row.why)
					after, err := os.Lstat(path)
					require.NoError(t, err)
					require.True(t, os.SameFile(before, after))
					entries, err := os.ReadDir(folder)
					require.NoError(t, err)
					require.Len(t, entries, 1)
				}
				require.NoError(t, os.Remove(path))
				require.NoError(t, MakeFolder(folder, binary, "", file))
				require.NoError(t, MakeFolder(folder, "/usr/bin/tenure", "", ""), "its own files are replaced")
				if name == reportName {
					return // kube-apiserver writes it
				}
				_ = os.Remove(path)
				require.NoError(t, row.make(path))
				require.ErrorContains(t, MakeFolder(folder, binary, "", ""), "did not make it", "later as well")
			})
		}
	}
}
