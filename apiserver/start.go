package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// A Running is a server that listens on a port. It runs until its context ends or Close is called.
type Running struct {
	*Server
	config   *rest.Config
	http     *http.Server
	conns    *connections
	identity *identity
	ended    chan struct{}
	// the context in the kubeconfig that was written
	context string

	stop    sync.Once
	stopErr error
}

// Start starts a server with TLS and a bearer token, and returns when it accepts requests. The server listens on
// Options.Listeners or, by default, on a loopback port; Options.Hosts allows other addresses. It stops when ctx ends.
func Start(ctx context.Context, options Options) (*Running, error) {
	options = options.withDefaults()
	if len(options.Listeners) == 0 {
		listener, err := listen(ctx, options.Listen, options.Hosts)
		if err != nil {
			return nil, err
		}
		options.Listeners = []net.Listener{listener}
	}
	running, err := startOnListeners(ctx, options)
	if err != nil {
		for _, l := range options.Listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = running.Close() })
	return running, nil
}

// startOnListeners starts a server on the listeners of the options. If it fails, it does not close the listeners.
func startOnListeners(ctx context.Context, options Options) (*Running, error) {
	own, err := newIdentity(options.Now(), options.Hosts, options.Certificate, options.ClientCAs)
	if err != nil {
		return nil, err
	}
	server, err := newServer(ctx, options, own.config.ClientCAs)
	if err != nil {
		return nil, err
	}
	running, err := newRunning(server, own)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	running.serve()
	return running, nil
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

// newRunning returns a server that does not accept connections yet, and writes its kubeconfig.
func newRunning(server *Server, own *identity) (*Running, error) {
	address, err := hostOf(server.options.Listeners[0].Addr())
	if err != nil {
		return nil, err
	}
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
		Server: server, conns: conns, identity: own,
		config: &rest.Config{
			Host:            "https://" + address,
			BearerToken:     server.options.Token,
			TLSClientConfig: rest.TLSClientConfig{CAData: own.roots},
			QPS:             -1,
		},
		http: &http.Server{
			Handler: server, TLSConfig: own.config, ConnState: conns.changed, ConnContext: withConn,
			ReadHeaderTimeout: limits.Read, ReadTimeout: limits.Read, IdleTimeout: limits.Idle, MaxHeaderBytes: limits.Header,
			WriteTimeout: limits.Request + limits.Write, // the same as in Server.enter
			// The server does not log connections that are aborted or do not use TLS.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		ended: make(chan struct{}),
	}
	if path := server.options.Kubeconfig; path != "" {
		if r.context, err = r.WriteKubeconfig(path); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// serve accepts connections until Close is called.
func (r *Running) serve() {
	var serving sync.WaitGroup
	for _, l := range r.options.Listeners {
		limited := netutil.LimitListener(l, r.options.Limits.Connections)
		serving.Go(func() { _ = r.http.ServeTLS(limited, "", "") }) // Close ends it
	}
	go func() {
		defer close(r.ended)
		serving.Wait()
	}()
}

// hostOf returns the host and port that clients on this machine use for a listener.
func hostOf(address net.Addr) (string, error) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("listen on %s: expected a TCP address", address)
	}
	if tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port)), nil
	}
	return tcp.String(), nil
}

// AddUser returns a client configuration for a user with groups. It is a copy of Config with a client certificate,
// which this server issues. The certificate is accepted while the server runs.
func (r *Running) AddUser(name string, groups ...string) (*rest.Config, error) {
	if name == "" {
		return nil, errors.New("expected the name of a user")
	}
	certificate, key, err := r.identity.issueClient(name, groups)
	if err != nil {
		return nil, err
	}
	config := r.Config()
	config.BearerToken, config.CertData, config.KeyData = "", certificate, key
	return config, nil
}

// Config returns a new copy of the client configuration.
func (r *Running) Config() *rest.Config { return rest.CopyConfig(r.config) }

// URL is the URL of the server.
func (r *Running) URL() string { return r.config.Host }

// Done returns a channel that is closed when the server has stopped.
func (r *Running) Done() <-chan struct{} { return r.ended }

// Close stops listening, ends all watches, waits up to a limit for requests in flight, and closes the server.
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

// connections tracks which connections have requests in flight. The method Shutdown of http.Server keeps HTTP/2
// connections open for a second after their last request, which is too long for programs that start a server for each
// test.
type connections struct {
	mu     sync.Mutex
	active map[net.Conn]struct{}
	quiet  time.Time // when active became empty
}

// grace is the delay before an idle connection is closed: HTTP/2 reports a connection as idle
// a moment before the end of the last response is sent.
const grace = 50 * time.Millisecond

// changed is the ConnState callback of an http.Server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateActive {
		if c.active == nil {
			c.active = map[net.Conn]struct{}{}
		}
		c.active[conn] = struct{}{}
		return
	}
	if _, was := c.active[conn]; was {
		delete(c.active, conn)
		c.quiet = time.Now()
	}
}

// ended reports whether no requests are in flight.
func (c *connections) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.active) == 0 && time.Since(c.quiet) >= grace
}

// shutdown shuts down a server like http.Server.Shutdown, but returns as soon as no requests are in flight. If ctx ends
// first, it closes all connections.
func (c *connections) shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- server.Shutdown(ctx) }()
	look := time.NewTicker(grace / 10)
	defer look.Stop()
	for !c.ended() {
		select {
		case err := <-done:
			if err == nil {
				return nil
			}
			return server.Close()
		case <-look.C:
		}
	}
	return server.Close()
}
