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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tenure-ssa/tenure/internal/secrets"
)

// contextName is the name of the server's context, cluster and user in a kubeconfig. If the name is in use, a number is
// appended.
const contextName = "tenure"

// Context returns the name of the context that was added to Options.Kubeconfig, or "".
func (r *Running) Context() string { return r.context }

// WriteKubeconfig adds a context for the server to a kubeconfig and returns the context's name. It also adds a context
// for each of Options.Users, named USER@CONTEXT, where CONTEXT is the name of the server's context. It creates the file
// if necessary and sets its mode to 0600. In a file that it creates, the server's context is the current context. In an
// existing file, it neither sets nor changes the current context, and keeps other contexts, because the file may belong
// to the user or to another server. It replaces contexts that it wrote for servers that have ended, but never contexts
// of other clusters.
func (r *Running) WriteKubeconfig(path string) (context string, err error) {
	// keep symbolic links
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	unlock, err := lockKubeconfig(path)
	if err != nil {
		return "", err
	}
	defer unlock()
	config, err := clientcmd.LoadFromFile(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case isNew:
		config = clientcmdapi.NewConfig()
	case err != nil:
		if !errors.As(err, new(*fs.PathError)) {
			err = secrets.Unreadable(err, 0, "users, clusters and contexts")
		}
		return "", fmt.Errorf("kubeconfig: %s: expected a kubeconfig: %w", path, err)
	}
	name := r.freeName(config)
	if isNew {
		config.CurrentContext = name
	}
	removeUsers(config, name)
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: r.config.Host, CertificateAuthorityData: r.config.CAData,
		Extensions: map[string]runtime.Object{ownCluster: &runtime.Unknown{
			Raw: []byte("{}"), ContentType: runtime.ContentTypeJSON,
		}},
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: r.config.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	for _, u := range r.options.Users {
		userContext := u.Name + "@" + name
		config.AuthInfos[userContext] = &clientcmdapi.AuthInfo{Token: u.Token}
		config.Contexts[userContext] = &clientcmdapi.Context{Cluster: name, AuthInfo: userContext}
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	return name, writePrivate(path, data)
}

// ownCluster is the extension that marks clusters that WriteKubeconfig wrote.
const ownCluster = "tenure-serve"

// removeUsers removes the users and contexts of Options.Users that were written for an earlier server with the same
// context name.
func removeUsers(config *clientcmdapi.Config, name string) {
	for contextName, context := range config.Contexts {
		if context.Cluster == name && context.AuthInfo == contextName && strings.HasSuffix(contextName, "@"+name) {
			delete(config.Contexts, contextName)
			delete(config.AuthInfos, contextName)
		}
	}
}

// freeName returns a name for the server's context. If the config already has a context of this name, the context
// belongs to this server or to a server that has ended.
func (r *Running) freeName(config *clientcmdapi.Config) string {
	name := contextName
	for i := 2; ; i++ {
		cluster, user, context := config.Clusters[name], config.AuthInfos[name], config.Contexts[name]
		if cluster == nil && user == nil && context == nil {
			return name
		}
		isOwn := context != nil && context.Cluster == name && context.AuthInfo == name &&
			cluster != nil && cluster.Extensions[ownCluster] != nil
		if isOwn && (cluster.Server == r.config.Host || hasEnded(cluster)) {
			return name
		}
		name = fmt.Sprintf("%s-%d", contextName, i)
	}
}

// answerTimeout is the timeout for a server to respond.
const answerTimeout = 2 * time.Second

// hasEnded reports whether a server on this machine has ended: nothing listens on its port, or a server with another
// certificate listens there. c is a cluster that WriteKubeconfig wrote for the server.
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

// lockAttempts and lockPause limit the wait for a kubeconfig that another program writes.
const (
	lockAttempts = 50
	lockPause    = 100 * time.Millisecond
)

// lockKubeconfig takes the lock file that kubectl takes to write a kubeconfig.
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

// writePrivate writes a file of mode 0600 atomically.
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
