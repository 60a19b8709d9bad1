package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Controllers is a running kube-controller-manager.
type Controllers struct{ cmd *exec.Cmd }

// StartControllers starts a kube-controller-manager beside a server of [Start] or [StartAlone] that has its files in
// dir. Each controller has a ServiceAccount of its own, as on a cluster: the server's default roles are what it may do.
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

// Stop ends the controllers.
func (c *Controllers) Stop() { stop(c.cmd) }

// WriteKubeconfig writes a kubeconfig for the server, with [Token].
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

// writeCA writes the certificate of a CA and its key.
func writeCA(certificate, key string) error {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
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
	return errors.Join(
		os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private),
		}), 0o600),
	)
}
