package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
)

// servedStore is the environment variable that makes this binary serve a store until it is killed. Its value is a
// served in JSON.
const servedStore = "E2E_SERVE"

// served is what a process serves: the store in a file or in an etcd. The address and the certificate do not change
// when the process restarts, so that clients can reconnect.
type served struct {
	File, Etcd       string
	Listen, Token    string
	Certificate, Key []byte
}

// run serves the store. It prints a line with its URL when it is ready.
func (s served) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var store storage.Store
	if s.Etcd != "" {
		store, err = etcd.Open(ctx, etcdOptions(s.Etcd, patience))
	} else {
		store, err = bbolt.Open(s.File, bbolt.Options{HistoryBytes: everything, HistoryRevisions: everything})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	certificate, err := tls.X509KeyPair(s.Certificate, s.Key)
	if err != nil {
		return err
	}
	server, err := apiserver.Start(ctx, apiserver.Options{
		Store: store, Listen: s.Listen, Token: s.Token, Certificate: &certificate, Bootstrap: apiserver.BootstrapAll(),
	})
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	<-server.Done()
	return nil
}

func etcdOptions(endpoint string, timeout time.Duration) etcd.Options {
	return etcd.Options{Config: clientv3.Config{Endpoints: []string{endpoint}}, Timeout: timeout}
}

// process is a server in a separate process.
type process struct {
	t      *testing.T
	served served
	config *rest.Config
	cmd    *exec.Cmd
	lines  *bufio.Scanner
}

// startProcesses starts count processes that serve a store, all at the same time.
func startProcesses(t *testing.T, store served, count int) (all []*process) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	store.Certificate, store.Key, store.Token, store.Listen = certificate, key, "token", "127.0.0.1:0"
	for range count {
		p := &process{t: t, served: store}
		p.launch()
		all = append(all, p)
		t.Cleanup(func() {
			if p.cmd.ProcessState == nil {
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait()
			}
		})
	}
	for _, p := range all {
		url := p.wait()
		p.served.Listen = url[len("https://"):]
		p.config = &rest.Config{
			Host: url, BearerToken: store.Token, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}, QPS: -1,
		}
	}
	return all
}

func (p *process) launch() {
	value, err := json.Marshal(p.served)
	require.NoError(p.t, err)
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), servedStore+"="+string(value))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, p.cmd.Start())
	p.lines = bufio.NewScanner(out)
}

// wait waits until the process is ready, and returns its URL.
func (p *process) wait() string {
	require.True(p.t, p.lines.Scan(), "the server did not start")
	return p.lines.Text()
}

// kill kills the process without a graceful shutdown.
func (p *process) kill() {
	require.NoError(p.t, p.cmd.Process.Kill())
	require.ErrorContains(p.t, p.cmd.Wait(), "killed")
}

// restart restarts a killed process at the same address.
func (p *process) restart() {
	p.launch()
	require.Equal(p.t, p.config.Host, p.wait())
}

func configsOf(all []*process) (out []*rest.Config) {
	for _, p := range all {
		out = append(out, p.config)
	}
	return out
}
