// Package controlplane starts and stops etcd and kube-apiserver on the loopback interface, for tests and measurements.
package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Etcd is a running etcd.
type Etcd struct {
	URL string
	cmd *exec.Cmd
}

// FreePort returns an unused port of the loopback interface.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// StartEtcd starts an etcd with its data in dir.
func StartEtcd(ctx context.Context, dir string) (*Etcd, error) {
	client, err := FreePort()
	if err != nil {
		return nil, err
	}
	peer, err := FreePort()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(dir + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e := &Etcd{URL: fmt.Sprintf("http://127.0.0.1:%d", client)}
	peers := fmt.Sprintf("http://127.0.0.1:%d", peer)
	e.cmd = exec.CommandContext(ctx, "etcd", "--data-dir", dir,
		"--listen-client-urls", e.URL, "--advertise-client-urls", e.URL,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers,
		"--quota-backend-bytes", "8589934592", "--unsafe-no-fsync")
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := e.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w; Debian has etcd in the package etcd-server", err)
	}
	err = waitFor(ctx, http.DefaultClient, e.URL+"/health", time.Minute)
	if err != nil {
		e.Stop()
		return nil, fmt.Errorf("etcd, see %s.log: %w", dir, err)
	}
	return e, nil
}

// Stop stops the etcd.
func (e *Etcd) Stop() { stop(e.cmd) }

func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(os.Interrupt)
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
	}
}

// Server is a running kube-apiserver with an etcd of its own.
type Server struct {
	// URL and Etcd are the addresses of the server and its etcd.
	URL, Etcd string
	log       string // file with the server's output
	etcd      *Etcd
	cmd       *exec.Cmd
}

// Token is a bearer token with all permissions.
const Token = "loopback"

// Client returns a client that does not share connections with other clients.
func Client() *http.Client {
	return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, // self-signed
	}}
}

// Start starts an etcd and a kube-apiserver, with their files in dir. The server does not limit concurrent requests,
// and runs no admission plugins that need other objects of a cluster.
func Start(ctx context.Context, binary, dir string) (*Server, error) {
	return start(ctx, binary, dir, "--endpoint-reconciler-type=none", "--authorization-mode=AlwaysAllow",
		"--advertise-address=127.0.0.1", "--enable-priority-and-fairness=false",
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0")
}

// StartAlone starts a kube-apiserver like [Start], but lets it create all its initial objects.
func StartAlone(ctx context.Context, binary, dir string) (*Server, error) {
	return start(ctx, binary, dir, "--authorization-mode=RBAC",
		"--advertise-address=192.0.2.1") // reserved for documentation; endpoints can't have loopback addresses
}

func start(ctx context.Context, binary, dir string, more ...string) (s *Server, err error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	key, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv")
	if _, err := writeKey(key); err != nil {
		return nil, err
	}
	if err := os.WriteFile(tokens, []byte(Token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	etcd, err := StartEtcd(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return nil, err
	}
	s = &Server{URL: fmt.Sprintf("https://127.0.0.1:%d", port), Etcd: etcd.URL, log: log.Name(), etcd: etcd}
	s.cmd = exec.CommandContext(ctx, binary, append([]string{
		"--etcd-servers=" + etcd.URL, "--secure-port=" + fmt.Sprint(port),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + filepath.Join(dir, "certs"), "--token-auth-file=" + tokens,
		"--service-account-issuer=https://loopback.example", "--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key, "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount",
		"--profiling=true",
	}, more...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		etcd.Stop()
		return nil, err
	}
	// The namespace "default" is the last object that a starting server creates.
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		if err := waitFor(ctx, Client(), s.URL+path, 5*time.Minute); err != nil {
			s.Stop()
			return nil, fmt.Errorf("server, see %s: %w", s.log, err)
		}
	}
	return s, nil
}

// Stop stops the server and its etcd.
func (s *Server) Stop() {
	stop(s.cmd)
	s.etcd.Stop()
}

// Controllers is a running kube-controller-manager.
type Controllers struct{ cmd *exec.Cmd }

// StartControllers starts a kube-controller-manager for a server of [Start] or [StartAlone] whose files are in dir.
// Each controller uses its own ServiceAccount, as in a real cluster. So the server's default roles decide what the
// controller may do.
func StartControllers(ctx context.Context, binary, dir string, s *Server) (*Controllers, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "controllers.kubeconfig")
	ca, caKey := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if err := errors.Join(s.WriteKubeconfig(kubeconfig), writeCA(ca, caKey)); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "controllers.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := &Controllers{exec.CommandContext(ctx, binary, "--kubeconfig="+kubeconfig, "--bind-address=127.0.0.1",
		"--secure-port="+fmt.Sprint(port), "--cert-dir="+filepath.Join(dir, "controllers-certs"), "--leader-elect=false",
		"--use-service-account-credentials", "--service-account-private-key-file="+filepath.Join(dir, "sa.key"),
		"--root-ca-file="+ca, "--cluster-signing-cert-file="+ca, "--cluster-signing-key-file="+caKey,
		"--pvclaimbinder-sync-period=1s")}
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if err := waitFor(ctx, Client(), fmt.Sprintf("https://127.0.0.1:%d/healthz", port), 5*time.Minute); err != nil {
		c.Stop()
		return nil, fmt.Errorf("kube-controller-manager, see %s: %w", log.Name(), err)
	}
	return c, nil
}

// Stop stops the controllers.
func (c *Controllers) Stop() { stop(c.cmd) }

// WriteKubeconfig writes a kubeconfig for the server. Clients that use it authenticate with [Token].
func (s *Server) WriteKubeconfig(path string) error {
	return os.WriteFile(path, []byte(fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: loopback
contexts:
- {name: loopback, context: {cluster: loopback, user: admin}}
clusters:
- {name: loopback, cluster: {server: %q, insecure-skip-tls-verify: true}}
users:
- {name: admin, user: {token: %q}}
`, s.URL, Token)), 0o600)
}

// writeCA writes the certificate and the key of a CA.
func writeCA(certificate, key string) error {
	private, err := writeKey(key)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return err
	}
	return os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// writeKey creates a key, writes it, and returns it.
func writeKey(path string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return key, os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// waitFor waits until a GET of url returns 200.
func waitFor(ctx context.Context, client *http.Client, url string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+Token)
		res, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s: %s", url, res.Status)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", most, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
