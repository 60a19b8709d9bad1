// Package server has the API server of the command tenure: for stores, for serve, and for controller-runtime's
// envtest.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/envtest"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	store       string
	etcd        []string
	listen      string
	kubeconfig  string
	definitions []string
	rbac        bool
	users       []string
	controllers bool
	bootstrap   []string
	auditLog    string
	auditPolicy string
	hosts       []string
	memory      bool
	untilEOF    bool
	format      string
}

func newServe(env *process.Env) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a store to kubectl and other Kubernetes clients",
		Long: `Serve starts a Kubernetes API server on a store, with the built-in resources, custom
resources and server-side apply. Like kube-apiserver, it creates default roles and
bindings, priority classes, flow schemas, and the Service kubernetes. It deletes the
contents of deleted Namespaces and the objects of deleted CustomResourceDefinitions,
and aggregates ClusterRoles. It runs no other controllers, so nothing creates the
Pods of a Deployment. Use --controllers if a kube-controller-manager runs beside the
server.

The store is the file of --store, the etcd of --etcd-servers or, with --memory, an
empty store in memory. While the server runs, no other command can use the file.
Several servers can share an etcd.

Serve adds a context to the file of --kubeconfig and prints the path of the file.
The context is called tenure or, if that name is taken, tenure-2 and so on. It has
the address and the certificate of the server, and the token of an administrator,
who may do everything. Each --user gets a context too, such as ann@tenure, and may
do everything unless --rbac is set. If the kubeconfig exists, serve changes nothing
else in it. If serve creates the kubeconfig, the administrator's context is the
current one.

The server runs until it is interrupted (SIGINT, SIGTERM). Then it ends watches,
completes requests in flight, and closes the store. With --until-eof, the server
also ends when its standard input ends. So if a test starts the server with
--until-eof and a pipe as standard input, the server ends when the test ends.

With -o json, serve prints one line of JSON as soon as it accepts requests, with
url, certificateAuthorityData (base64) and token. With -o json, --kubeconfig has no
default: serve writes a kubeconfig only if you set the flag. The line then also has
kubeconfig and context.

By default, the server listens on this computer only. For clients on other
computers, set --listen to any address, and --host to the server's name. Serve
writes this name to the server's certificate and to the kubeconfig. Clients need
the certificate and a token from the kubeconfig.

With --audit-log-path, serve records requests as kube-apiserver does, by the policy
in --audit-policy-file. Without a policy, it records all writes, but omits the
bodies of Secrets, token requests and objects of authentication.k8s.io. To read the
log, use tenure watch --audit-log.

Exit status: 0 if the server was interrupted or, with --until-eof, its standard
input ended; 1 on any error.`,
		Example: `  tenure serve --store shop.db
  tenure serve --store shop.db --listen 127.0.0.1:8443 --crd widgets.yaml
  tenure serve --store shop.db --rbac --user ann --user bob=developers,testers
  tenure serve --etcd-servers http://127.0.0.1:2379
  tenure serve --memory -o json --until-eof
  tenure serve --store shop.db --listen 0.0.0.0:6443 --host tenure.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(env.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			switch {
			case flags.format != "" && flags.format != "json":
				return fmt.Errorf("--output: expected json, got %q", flags.format)
			case len(flags.hosts) > 0 && !cmd.Flags().Changed("listen"):
				return errors.New("--host needs --listen, because the server listens on 127.0.0.1 by default: " +
					"add --listen 0.0.0.0:6443 or another address that clients can connect to")
			case flags.format == "json" && !cmd.Flags().Changed("kubeconfig"):
				flags.kubeconfig = ""
			}
			if flags.untilEOF {
				go func() {
					_, _ = io.Copy(io.Discard, env.Stdin) // ends at the end of stdin or on an error
					stop()
				}()
			}
			return serveStore(ctx, env, &flags)
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.store, "store", "", "`FILE` with the objects; it is created if it does not exist")
	set.StringSliceVar(&flags.etcd, "etcd-servers", nil, "`URL`s of an etcd that stores the objects")
	set.StringVar(&flags.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 selects any free port")
	set.StringVar(&flags.kubeconfig, "kubeconfig", "tenure.kubeconfig",
		"`FILE` with the kubeconfig to add a context to")
	set.StringArrayVar(&flags.definitions, "crd", nil,
		"`FILE` or folder with CustomResourceDefinitions to apply at the start; may be given several times")
	set.BoolVar(&flags.rbac, "rbac", false, "authorize by the Roles and bindings in the store")
	set.StringArrayVar(&flags.users, "user", nil,
		"`NAME[=GROUP,...]` of a user to add to the kubeconfig; may be given several times")
	set.StringSliceVar(&flags.bootstrap, "bootstrap", []string{"rbac", "priorityclasses", "flowschemas", "service"},
		"`SETS` of objects to create as kube-apiserver does; \"none\" creates no objects")
	set.BoolVar(&flags.controllers, "controllers", false,
		"leave finalizers, deleted Namespaces and aggregated ClusterRoles to a kube-controller-manager")
	set.StringVar(&flags.auditLog, "audit-log-path", "", "append audit events to `FILE`, or - for stdout")
	set.StringVar(&flags.auditPolicy, "audit-policy-file", "", "`FILE` with the audit policy")
	set.StringSliceVar(&flags.hosts, "host", nil,
		"`NAME` or IP address of this server for clients on other computers; needs --listen")
	set.BoolVar(&flags.memory, "memory", false, "store the objects in memory only")
	set.BoolVar(&flags.untilEOF, "until-eof", false, "end when stdin ends")
	set.StringVarP(&flags.format, "output", "o", "", "output `FORMAT`: json")
	cmd.MarkFlagsMutuallyExclusive("store", "etcd-servers", "memory")
	cmd.MarkFlagsOneRequired("store", "etcd-servers", "memory")
	return cmd
}

// serveStore serves a store until ctx is done.
func serveStore(ctx context.Context, e *process.Env, f *serveFlags) (err error) {
	definitions, err := readDefinitions(e, f.definitions)
	if err != nil {
		return err
	}
	kubeconfig := f.kubeconfig
	if kubeconfig != "" {
		if kubeconfig, err = filepath.Abs(e.Path(kubeconfig)); err != nil {
			return err
		}
	}
	users, err := parseUsers(f.users)
	if err != nil {
		return err
	}
	bootstrap, err := parseBootstrap(f.bootstrap)
	if err != nil {
		return err
	}
	records, closeRecords, name, err := openServedStore(ctx, e, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRecords()) }()
	audit, closeLog, err := openAuditLog(e, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	options := apiserver.Options{
		Store: records, Audit: audit, Listen: f.listen, Hosts: f.hosts, Kubeconfig: kubeconfig,
		Now:       e.Now,
		NewUID:    func() types.UID { return types.UID(e.NewUID()) },
		Bootstrap: bootstrap, Users: users, Controllers: f.controllers, Anonymous: true,
		Log: slog.New(slog.NewTextHandler(e.Stderr, nil)),
	}
	if f.rbac {
		if options.Authorizer, err = rbac.New(ctx, records); err != nil {
			return err
		}
	}
	server, err := apiserver.Start(context.WithoutCancel(ctx), options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := applyDefinitions(ctx, server.LoopbackConfig(), definitions); err != nil {
		return err
	}
	if err := f.printServed(e, name, kubeconfig, server); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return errors.New("the server stopped unexpectedly")
	}
}

// printServed prints how clients can access the server.
func (f *serveFlags) printServed(e *process.Env, name, kubeconfig string, server *apiserver.Running) error {
	if f.format == "json" {
		config := server.Config()
		return json.NewEncoder(e.Stdout).Encode(struct {
			URL        string `json:"url"`
			CAData     []byte `json:"certificateAuthorityData"`
			Token      string `json:"token"`
			Kubeconfig string `json:"kubeconfig,omitempty"`
			Context    string `json:"context,omitempty"`
		}{server.URL(), config.CAData, config.BearerToken, kubeconfig, server.Context()})
	}
	text := fmt.Sprintf("serving %s at %s\n", name, server.URL())
	if kubeconfig != "" {
		which, err := contextFlag(kubeconfig, server.Context())
		if err != nil {
			return err
		}
		text += fmt.Sprintf("kubeconfig: %s\ntry: kubectl --kubeconfig %s %sget namespaces\n",
			kubeconfig, printable.ShellQuoted(kubeconfig), which)
	}
	_, err := io.WriteString(e.Stdout, text)
	return err
}

// parseBootstrap parses the values of --bootstrap.
func parseBootstrap(names []string) (b apiserver.Bootstrap, err error) {
	sets := map[string]*bool{
		"rbac": &b.RBAC, "priorityclasses": &b.PriorityClasses, "flowschemas": &b.FlowSchemas, "service": &b.Service,
		"none": new(bool),
	}
	if len(names) == 0 || len(names) > 1 && slices.Contains(names, "none") {
		return b, fmt.Errorf("--bootstrap: expected sets, or only none, got %q", strings.Join(names, ","))
	}
	for _, name := range names {
		set := sets[name]
		if set == nil {
			return b, fmt.Errorf("--bootstrap: expected rbac, priorityclasses, flowschemas, service or none, got %q", name)
		}
		*set = true
	}
	return b, nil
}

// parseUsers parses the values of --user.
func parseUsers(values []string) (users []apiserver.User, err error) {
	for _, value := range values {
		name, list, hasGroups := strings.Cut(value, "=")
		u := apiserver.User{Name: name}
		if hasGroups {
			u.Groups = strings.Split(list, ",")
		}
		switch {
		case name == "" || slices.Contains(u.Groups, ""):
			return nil, fmt.Errorf("--user: expected NAME or NAME=GROUP,..., got %q", value)
		case slices.ContainsFunc(users, func(other apiserver.User) bool { return other.Name == name }):
			return nil, fmt.Errorf("--user: expected different names, got %q twice", name)
		}
		users = append(users, u)
	}
	return users, nil
}

// contextFlag returns kubectl's flag that selects a context of a kubeconfig; "" if it is the current context.
func contextFlag(kubeconfig, context string) (string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil || config.CurrentContext == context {
		return "", err
	}
	return "--context " + context + " ", nil
}

// openServedStore opens the storage of the server. It also returns a name for the storage, for messages.
func openServedStore(ctx context.Context, e *process.Env, f *serveFlags) (
	records storage.Store, closeRecords func() error, name string, err error,
) {
	if f.memory {
		records := memory.New(memory.Options{})
		return records, records.Close, "a store in memory", nil
	}
	if len(f.etcd) == 0 {
		records, closeFile, err := store.OpenRecords(e, f.store, process.CreateStore)
		if err != nil {
			return nil, nil, "", err
		}
		closeRecords := func() error { _, err := closeFile(); return err }
		if err := store.Verify(records); err != nil {
			return nil, nil, "", errors.Join(fmt.Errorf("store %s: %w", e.Path(f.store), err), closeRecords())
		}
		return records, closeRecords, f.store, nil
	}
	for _, server := range f.etcd {
		if u, err := url.Parse(server); err != nil || u.Host == "" {
			return nil, nil, "", fmt.Errorf("--etcd-servers: expected URLs such as http://127.0.0.1:2379, got %q",
				server)
		}
	}
	name = "the etcd at " + strings.Join(f.etcd, ", ")
	opened, err := etcd.Open(ctx, etcd.Options{Config: clientv3.Config{Endpoints: f.etcd}, Timeout: e.StoreTimeout})
	switch {
	case errors.Is(err, etcd.ErrUnavailable):
		return nil, nil, "", fmt.Errorf("%s is unavailable", name)
	case err != nil:
		return nil, nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return opened, opened.Close, name, nil
}

// readDefinitions reads the CustomResourceDefinitions in files and folders. It ignores other objects, so that an
// input can be a folder with all kinds of manifests.
func readDefinitions(e *process.Env, inputs []string) (out []map[string]any, err error) {
	for _, input := range inputs {
		docs, err := manifest.ReadFiles(e, input)
		if err != nil {
			return nil, fmt.Errorf("--crd: %w", err)
		}
		found := false
		for _, doc := range docs {
			if doc.Err != nil {
				return nil, fmt.Errorf("--crd: %w", doc.Wrap(doc.Err))
			}
			if gvk, err := document.GVKOf(doc.Tree); err == nil && gvk.GroupKind() == place.DefinitionKind {
				out, found = append(out, doc.Tree), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--crd: %s: no CustomResourceDefinition found", input)
		}
	}
	return out, nil
}

// applyDefinitions applies definitions to a server with force, as kubectl does. If the server does not serve one of
// them, the error says why.
func applyDefinitions(ctx context.Context, config *rest.Config, definitions []map[string]any) error {
	c, err := cluster.Local(config)
	if err != nil {
		return err
	}
	each := func(visit func(tree map[string]any, kind cluster.Kind) error) error {
		for _, tree := range definitions {
			gvk, err := document.GVKOf(tree)
			if err != nil {
				return err
			}
			kind, err := c.Kind(gvk)
			if err == nil {
				err = visit(tree, kind)
			}
			if err != nil {
				return fmt.Errorf("--crd: %s: %w", document.Reference(place.DefinitionKind, document.NameOf(tree)), err)
			}
		}
		return nil
	}
	err = each(func(tree map[string]any, kind cluster.Kind) error {
		_, err := c.Apply(ctx, kind, "", tree, cluster.WriteOptions{Manager: "kubectl", Force: true})
		return err
	})
	if err != nil {
		return err
	}
	c.ForgetDiscovery()
	return each(func(tree map[string]any, kind cluster.Kind) error {
		live, err := c.Get(ctx, kind, "", document.NameOf(tree))
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live, &crd); err != nil {
			return err
		}
		return checkServed(c, &crd)
	})
}

// checkServed returns an error if the server of c does not accept the names of a definition, or does not serve its
// kind.
func checkServed(c *cluster.Cluster, crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.NamesAccepted && condition.Status != apiextensionsv1.ConditionTrue {
			return fmt.Errorf("expected names that no other definition of the group has: %s", condition.Message)
		}
	}
	for _, version := range crd.Spec.Versions {
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		if _, err := c.Kind(gvk); version.Served && err != nil {
			return fmt.Errorf("spec.group: expected a group that is not built in, got %s", crd.Spec.Group)
		}
	}
	return nil
}

// New returns the API server for [process.Env].
func New() *process.Server {
	return &process.Server{
		Commands:  []func(*process.Env) *cobra.Command{newServe, envtest.NewCommand},
		Program:   envtest.Program,
		OpenStore: store.OpenAndServe,
	}
}

// writesOnly is the audit policy that is used without a policy file. It records all writes with their bodies, but omits
// the bodies of Secrets, token requests and objects of authentication.k8s.io.
var writesOnly = &auditinternal.Policy{
	OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived},
	Rules: []auditinternal.PolicyRule{
		{Level: auditinternal.LevelNone, Verbs: []string{"get", "list", "watch"}},
		{Level: auditinternal.LevelMetadata, Resources: []auditinternal.GroupResources{
			{Resources: []string{"secrets", "serviceaccounts/token"}}, {Group: "authentication.k8s.io"},
		}},
		{Level: auditinternal.LevelRequestResponse},
	},
}

// openAuditLog opens the audit log of serve. Without --audit-log-path, there is none.
func openAuditLog(env *process.Env, f *serveFlags) (audit apiserver.Audit, closeLog func() error, err error) {
	if f.auditLog == "" {
		if f.auditPolicy != "" {
			return audit, nil, errors.New("--audit-policy-file needs --audit-log-path")
		}
		return audit, func() error { return nil }, nil
	}
	rules := writesOnly
	if f.auditPolicy != "" {
		data, err := os.ReadFile(env.Path(f.auditPolicy))
		if err != nil {
			return audit, nil, fmt.Errorf("--audit-policy-file: %w", err)
		}
		if err = expansion.Check(data); err == nil {
			rules, err = policy.LoadPolicyFromBytes(data)
		}
		if err != nil {
			return audit, nil, fmt.Errorf("--audit-policy-file: %s: expected a Policy of audit.k8s.io/v1", f.auditPolicy)
		}
	}
	out, closeLog := env.Stdout, func() error { return nil }
	if f.auditLog != "-" {
		file, err := os.OpenFile(env.Path(f.auditLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return audit, nil, fmt.Errorf("--audit-log-path: %w", err)
		}
		out, closeLog = file, file.Close
	}
	return apiserver.Audit{
		Policy: policy.NewPolicyRuleEvaluator(rules),
		// The backend does not serialize writes, but files and the guard of stdout allow concurrent writes.
		Sink: auditlog.NewBackend(out, auditlog.FormatJson, auditv1.SchemeGroupVersion),
	}, closeLog, nil
}
