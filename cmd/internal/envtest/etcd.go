package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// standIn is the response header that tells kube-apiserver that the etcd is only a placeholder.
const standIn = "Tenure-Stand-In"

// RunEtcd serves the health endpoint of an etcd until it is interrupted, and returns the exit status.
func RunEtcd(env *process.Env, args []string) int {
	set := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	version := set.Bool("version", false, "print the version")
	clients := set.StringSlice("listen-client-urls", []string{"http://127.0.0.1:2379"},
		"URLs to listen on, on loopback only")
	args = slices.Clone(args)
	for i, arg := range args {
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			args[i] = "-" + arg // etcd accepts long flags with one hyphen
		}
	}
	return runProgram(env, set, args, false, etcdHelp, func(ctx context.Context) error {
		if *version {
			_, err := fmt.Fprintln(env.Stdout, "etcd of Tenure, a placeholder for etcd, for Kubernetes",
				openapi.KubernetesVersion)
			return err
		}
		return serveHealth(ctx, *clients)
	})
}

const etcdHelp = `etcd of Tenure is a placeholder for etcd: it serves /health and stores nothing. The
objects are in the memory of kube-apiserver. Flags that are not listed here are
accepted and have no effect.

`

// serveHealth serves /health at URLs until ctx is done.
func serveHealth(ctx context.Context, urls []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(standIn, "etcd")
		_, _ = io.WriteString(w, `{"health":"true","reason":""}`+"\n")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, len(urls))
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" {
			return fmt.Errorf("--listen-client-urls: expected http://HOST:PORT, got %q", text)
		}
		address, ip := u.Host, net.ParseIP(u.Hostname())
		switch {
		case ip != nil && ip.IsUnspecified(): // as with kube-apiserver's --bind-address
			address = net.JoinHostPort("127.0.0.1", u.Port())
		case u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()):
			return fmt.Errorf("--listen-client-urls: expected a loopback address, got %q", text)
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		go func() { failed <- server.Serve(listener) }()
	}
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-failed:
		return err
	}
}

// openStore returns the server's store: in memory if the etcd is the placeholder, otherwise the etcd.
func openStore(ctx context.Context, urls []string, prefix string) (storage.Store, error) {
	if len(urls) == 0 {
		return nil, errors.New("--etcd-servers: expected the URL of an etcd")
	}
	if isStandIn(ctx, urls[0]) {
		return memory.New(memory.Options{}), nil
	}
	store, err := etcd.Open(ctx, etcd.Options{Config: clientv3.Config{Endpoints: urls}, Prefix: prefix})
	if err != nil {
		return nil, fmt.Errorf("the etcd at %s: %w", strings.Join(urls, ", "), err)
	}
	return store, nil
}

// healthTimeout is the maximal time that the placeholder may take to respond.
const healthTimeout = 5 * time.Second

func isStandIn(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/health", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.Header.Get(standIn) != ""
}
