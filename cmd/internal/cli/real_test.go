package cli

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// realServer names a variable with the path of a kube-apiserver. With it, TestClusterScripts runs against that server,
// and the etcd in PATH, instead of the server of this module:
//
//	go run ./hosts/kube-apiserver build --only stock
//	KUBE_APISERVER=PATH go test ./cmd/internal/cli -run TestClusterScripts -v
const realServer = "KUBE_APISERVER"

// scriptHost is what a server needs of the script, or of the test, that it is for.
type scriptHost interface {
	MkAbs(name string) string
	Check(err error)
	Fatalf(format string, args ...any)
	Defer(f func())
}

// startRealServer starts an etcd and a kube-apiserver for a script, and returns what passes requests to it, as an
// administrator.
func startRealServer(ts scriptHost, binary string) http.Handler {
	dir := ts.MkAbs(".cluster")
	ts.Check(os.MkdirAll(dir, 0o700))
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	ts.Check(err)
	keyFile, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	ts.Check(os.WriteFile(keyFile, pem.EncodeToMemory(block), 0o600))
	ts.Check(os.WriteFile(tokens, []byte(testToken+`,admin,admin,"system:masters"`), 0o600))
	etcd, peer, secure := freeAddress(ts), freeAddress(ts), freeAddress(ts)
	_, port, err := net.SplitHostPort(secure)
	ts.Check(err)
	start(ts, dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "error",
		"--listen-client-urls", "http://"+etcd, "--advertise-client-urls", "http://"+etcd,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	start(ts, dir, binary, "--etcd-servers", "http://"+etcd, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", dir, "--token-auth-file", tokens, "--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", keyFile,
		"--service-account-signing-key-file", keyFile)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: secure})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		request, err := http.NewRequest(http.MethodGet, "https://"+secure+"/api/v1/namespaces/default", nil)
		ts.Check(err)
		request.Header.Set("Authorization", "Bearer "+testToken)
		response, err := proxy.Transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return proxy
			}
		}
		if time.Now().After(end) {
			ts.Fatalf("kube-apiserver does not answer: %v", err)
		}
	}
}

func freeAddress(ts scriptHost) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer listener.Close()
	return listener.Addr().String()
}

// start starts a program that ends with the script; its output is in a file.
func start(ts scriptHost, dir, program string, args ...string) {
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	ts.Check(err)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		ts.Check(fmt.Errorf("%s: %w", program, err))
	}
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
}
