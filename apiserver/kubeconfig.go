package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the name of the context, cluster and user of a server in a kubeconfig; a
// number is put behind it where it is taken.
const contextName = "tenure"

// Context returns the name of the context by which the kubeconfig of Options.Kubeconfig
// reaches the server; "" if none was written.
func (r *Running) Context() string { return r.context }

// WriteKubeconfig adds a context that reaches the server to a kubeconfig, whose mode
// becomes 0600, and returns its name. The file is made if there is none. Of one that exists
// everything else stays, and so does the current context if there is such a context: the
// file may be the user's own, or that of another server that runs. What a server that has
// ended left behind is replaced.
func (r *Running) WriteKubeconfig(path string) (context string, err error) {
	// A link stays one.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	unlock, err := lockKubeconfig(path)
	if err != nil {
		return "", err
	}
	defer unlock()
	config, err := clientcmd.LoadFromFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		config = clientcmdapi.NewConfig()
	case err != nil:
		return "", fmt.Errorf("kubeconfig: %s: expected a kubeconfig: %w", path, err)
	}
	name := r.freeName(config)
	config.Clusters[name] = &clientcmdapi.Cluster{Server: r.config.Host, CertificateAuthorityData: r.config.CAData}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: r.config.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	if config.Contexts[config.CurrentContext] == nil {
		config.CurrentContext = name
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	return name, writePrivate(path, data)
}

// freeName returns a name that config does not have, or only for this server or one that
// has ended.
func (r *Running) freeName(config *clientcmdapi.Config) string {
	name := contextName
	for i := 2; ; i++ {
		cluster, user, context := config.Clusters[name], config.AuthInfos[name], config.Contexts[name]
		if cluster == nil && user == nil && context == nil {
			return name
		}
		isOwn := context != nil && context.Cluster == name && context.AuthInfo == name
		if isOwn && cluster != nil && (cluster.Server == r.config.Host || hasEnded(cluster)) {
			return name
		}
		name = fmt.Sprintf("%s-%d", contextName, i)
	}
}

// answerTimeout is how long a server has to say that it is still there.
const answerTimeout = 2 * time.Second

// hasEnded reports whether a cluster of a kubeconfig was a server on this machine, and does
// not run any more: nobody listens there, or somebody with another certificate.
func hasEnded(c *clientcmdapi.Cluster) bool {
	u, err := url.Parse(c.Server)
	if err != nil || len(c.CertificateAuthorityData) == 0 {
		return false
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CertificateAuthorityData)
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: answerTimeout}, "tcp", u.Host,
		&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		var timeout net.Error
		return !errors.As(err, &timeout) || !timeout.Timeout()
	}
	_ = conn.Close()
	return false
}

// lockAttempts and lockPause are how often and how long a kubeconfig is waited for that
// another program writes.
const (
	lockAttempts = 50
	lockPause    = 100 * time.Millisecond
)

// lockKubeconfig takes the lock that kubectl takes to write a kubeconfig.
func lockKubeconfig(path string) (unlock func(), err error) {
	lock := path + ".lock"
	for range lockAttempts {
		var f *os.File
		f, err = os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			return func() { _ = os.Remove(lock) }, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		time.Sleep(lockPause)
	}
	return nil, fmt.Errorf("kubeconfig: another program writes it; if none does, remove %s: %w", lock, err)
}

// writePrivate writes a file that nobody else may read, whole or not at all.
func writePrivate(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}
