package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	store       string
	etcd        []string
	listen      string
	kubeconfig  string
	definitions []string
	hosts       []string
}

func newServe(env *process.Env) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the store to kubectl and other Kubernetes clients",
		Long: `Serve starts a Kubernetes API server on the store, with the built-in resources,
custom resources and server-side apply. No controllers run: nothing creates the Pods
of a Deployment.

The store is the file that tenure apply and tenure get use; no other command can use
it at the same time. Or it is an etcd, which several servers can share.

Serve adds a context to the kubeconfig and prints its path. The context is called
tenure, or tenure-2 and so on, and has the address, the certificate and the token of
an administrator. Everything else in the file stays, also the current context. The
server runs until it is interrupted (SIGINT, SIGTERM). Then it ends watches,
completes requests in flight, and closes the store.

The server listens on this computer only. With --host, which names it for clients on
others, --listen may be any address. The name is in the server's certificate and in
the kubeconfig. Every client needs the certificate and the token in the kubeconfig.

Exit status: 0 if it was interrupted, 1 if it could not start, or on any error.`,
		Example: `  tenure serve
  tenure serve --store shop.db --listen 127.0.0.1:8443 --crd widgets.yaml
  tenure serve --etcd-servers http://127.0.0.1:2379
  tenure serve --listen 0.0.0.0:6443 --host tenure.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(env.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return serveStore(ctx, env, &flags)
		},
	}
	addStoreFlag(cmd, &flags.store)
	set := cmd.Flags()
	set.StringSliceVar(&flags.etcd, "etcd-servers", nil, "`URL`s of an etcd, instead of a file")
	set.StringVar(&flags.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 is any free port")
	set.StringVar(
		&flags.kubeconfig,
		"kubeconfig",
		"tenure.kubeconfig",
		"`FILE` with the kubeconfig to add a context to",
	)
	set.StringArrayVar(&flags.definitions, "crd", nil,
		"`FILE` or folder with CustomResourceDefinitions to apply first; may be given several times")
	set.StringSliceVar(&flags.hosts, "host", nil,
		"`NAME` or IP address of this server for clients on other computers")
	cmd.MarkFlagsMutuallyExclusive("store", "etcd-servers")
	return cmd
}

// serveStore serves until ctx ends.
func serveStore(ctx context.Context, e *process.Env, f *serveFlags) (err error) {
	definitions, err := readDefinitions(e, f.definitions)
	if err != nil {
		return err
	}
	kubeconfig, err := filepath.Abs(e.Path(f.kubeconfig))
	if err != nil {
		return err
	}
	records, name, err := openServedStore(ctx, e, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	server, err := apiserver.Start(context.WithoutCancel(ctx), apiserver.Options{
		Store: records, Listen: f.listen, Hosts: f.hosts, Kubeconfig: kubeconfig, Now: e.Now,
		NewUID: func() types.UID { return types.UID(e.NewUID()) },
		Log:    slog.New(slog.NewTextHandler(e.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := applyDefinitions(ctx, server.LoopbackConfig(), definitions); err != nil {
		return err
	}
	which, err := contextFlag(kubeconfig, server.Context())
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "serving %s at %s\nkubeconfig: %s\ntry: kubectl --kubeconfig %s %sget namespaces\n",
		name, server.URL(), kubeconfig, shellQuoted(kubeconfig), which)
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return errors.New("the server stopped unexpectedly")
	}
}

// contextFlag returns kubectl's flag for a context of a kubeconfig, if it needs one.
func contextFlag(kubeconfig, context string) (string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil || config.CurrentContext == context {
		return "", err
	}
	return "--context " + context + " ", nil
}

// openServedStore opens the storage of the server, and returns its name for messages.
func openServedStore(ctx context.Context, e *process.Env, f *serveFlags) (storage.Store, string, error) {
	if len(f.etcd) == 0 {
		records, err := place.OpenRecords(e, f.store, place.CreateStore)
		if err != nil {
			return nil, "", err
		}
		if err := store.Verify(ctx, records); err != nil {
			return nil, "", errors.Join(fmt.Errorf("store %s: %w", e.Path(f.store), err), records.Close())
		}
		return records, f.store, nil
	}
	for _, server := range f.etcd {
		if u, err := url.Parse(server); err != nil || u.Host == "" {
			return nil, "", fmt.Errorf("--etcd-servers: expected URLs such as http://127.0.0.1:2379, got %q", server)
		}
	}
	name := "the etcd at " + strings.Join(f.etcd, ", ")
	records, err := etcd.Open(ctx, etcd.Options{Config: clientv3.Config{Endpoints: f.etcd}, Timeout: e.StoreTimeout})
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return nil, "", fmt.Errorf("%s is unavailable", name)
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return records, name, nil
}

// shellQuoted returns a path quoted for a shell, if it needs quotes.
func shellQuoted(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+@:,%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') &&
			(r < 'a' || r > 'z')
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// readDefinitions reads the CustomResourceDefinitions in files and folders. It ignores other objects,
// so that an input can be a folder of manifests.
func readDefinitions(e *process.Env, inputs []string) (out []map[string]any, err error) {
	for _, input := range inputs {
		docs, err := manifest.ReadDocuments(e, []string{input})
		if err != nil {
			return nil, fmt.Errorf("--crd: %w", err)
		}
		found := false
		for _, doc := range docs {
			if doc.Err != nil {
				return nil, fmt.Errorf("--crd: %s: %w", doc.Where(), doc.Err)
			}
			if gvk, err := manifest.GVKOf(doc.Tree); err == nil && gvk.GroupKind() == place.DefinitionKind {
				out, found = append(out, doc.Tree), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--crd: %s: no CustomResourceDefinition found", input)
		}
	}
	return out, nil
}

// applyDefinitions applies definitions to a server as the manager tenure, with force.
func applyDefinitions(ctx context.Context, config *rest.Config, definitions []map[string]any) error {
	if len(definitions) == 0 {
		return nil
	}
	c, err := cluster.Local(config)
	if err != nil {
		return err
	}
	for _, tree := range definitions {
		gvk, err := manifest.GVKOf(tree)
		if err != nil {
			return err
		}
		kind, err := c.Kind(gvk)
		if err == nil {
			_, err = c.Apply(ctx, kind, "", tree, cluster.WriteOptions{Manager: storeManager, Force: true})
		}
		if err != nil {
			return fmt.Errorf("--crd: %s: %w", place.Reference(place.DefinitionKind, manifest.NameOf(tree)), err)
		}
	}
	return nil
}
