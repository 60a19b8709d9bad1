package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// A Running is a server that listens on a port. It runs until its context ends or Close is
// called.
type Running struct {
	*Server
	config *rest.Config
	http   *http.Server
	conns  *connections
	ended  chan struct{}
	// the context in the kubeconfig that was written
	context string

	stop    sync.Once
	stopErr error
}

// Start starts a server with TLS and a bearer token, on a loopback port unless Options.Hosts
// allows others, and returns when it accepts requests. It stops when ctx ends.
func Start(ctx context.Context, options Options) (*Running, error) {
	options = options.withDefaults()
	listener, err := listen(ctx, options.Listen, options.Hosts)
	if err != nil {
		return nil, err
	}
	return startOn(ctx, options, listener)
}

// startOn starts a server on a listener, which it closes.
func startOn(ctx context.Context, options Options, listener net.Listener) (*Running, error) {
	server, err := New(ctx, options)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r, err := start(server, netutil.LimitListener(listener, server.options.Limits.Connections))
	if err != nil {
		return nil, errors.Join(err, listener.Close(), server.Close())
	}
	context.AfterFunc(ctx, func() { _ = r.Close() })
	return r, nil
}

// listen listens on a loopback address, or on any address if there are hosts.
func listen(ctx context.Context, address string, hosts []string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	for _, name := range hosts {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, fmt.Errorf("host %q: expected a DNS name or an IP address without a port", name)
		}
	}
	if len(hosts) > 0 {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen on %q: expected a loopback address", address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

func start(server *Server, listener net.Listener) (*Running, error) {
	identity, err := newIdentity(server.options.Now(), server.options.Hosts)
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if hosts := server.options.Hosts; len(hosts) > 0 {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		address = net.JoinHostPort(hosts[0], port)
	}
	limits := server.options.Limits
	conns := &connections{}
	r := &Running{
		Server: server, conns: conns,
		config: &rest.Config{
			Host:            "https://" + address,
			BearerToken:     server.options.Token,
			TLSClientConfig: rest.TLSClientConfig{CAData: identity.ca},
			QPS:             -1,
		},
		http: &http.Server{
			Handler: server, TLSConfig: identity.config, ConnState: conns.changed,
			ReadHeaderTimeout: limits.Read, ReadTimeout: limits.Read, IdleTimeout: limits.Idle, MaxHeaderBytes: limits.Header,
			// Connections that are aborted, or do not speak TLS, are not logged.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		ended: make(chan struct{}),
	}
	if path := server.options.Kubeconfig; path != "" {
		if r.context, err = r.WriteKubeconfig(path); err != nil {
			return nil, err
		}
	}
	go func() {
		defer close(r.ended)
		_ = r.http.ServeTLS(listener, "", "") // Close ends it
	}()
	return r, nil
}

// Config returns a client configuration. It is a copy for the caller.
func (r *Running) Config() *rest.Config { return rest.CopyConfig(r.config) }

// URL is the URL of the server.
func (r *Running) URL() string { return r.config.Host }

// Done returns a channel that is closed when the server has stopped.
func (r *Running) Done() <-chan struct{} { return r.ended }

// Close stops listening, ends all watches, waits for requests in flight up to a limit, and
// closes the server.
func (r *Running) Close() error {
	r.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), r.options.Limits.Shutdown)
		defer cancel()
		r.Server.stop()
		err := r.conns.shutdown(ctx, r.http)
		<-r.ended
		r.stopErr = errors.Join(err, r.Server.Close())
	})
	return r.stopErr
}
