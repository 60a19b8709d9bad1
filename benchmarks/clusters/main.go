// Command clusters measures the command tenure in clusters with many Deployments. It prints a Markdown table with the
// duration, the CPU time and the maximum memory of each subcommand.
//
//	go run ./benchmarks/clusters                   5,000 and 25,000 Deployments in tenure serve
//	go run ./benchmarks/clusters -tenure PATH      another build of the command; the server is built from this tree
//	go run ./benchmarks/clusters -stock PATH       in the kube-apiserver at PATH, with the installed etcd
//
// If kubectl is installed, the command also measures kubectl apply of new Deployments, on another server of the same
// kind.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

func main() {
	var b bench
	counts := flag.String("objects", "5000,25000", "how many Deployments the clusters have, `N[,N...]`")
	only := flag.String("only", "", "measure only command lines that contain `TEXT` or apply the Deployments")
	flag.StringVar(&b.tenure, "tenure", "", "the `PATH` of the command to measure (default: a build of this tree)")
	flag.StringVar(&b.stock, "stock", "", "the `PATH` of a kube-apiserver to use as the server (default: tenure serve)")
	flag.Parse()
	b.only = *only
	err := b.build(context.Background())
	for text := range strings.SplitSeq(*counts, ",") {
		var n int
		if err == nil {
			n, err = strconv.Atoi(text)
		}
		if err == nil {
			err = b.measure(context.Background(), n)
		}
	}
	if err = errors.Join(err, os.RemoveAll(b.folder)); err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

// bench describes what is measured, and where.
type bench struct {
	tenure, stock, only string
	folder              string // for files of this run
	server, host        string // this tree's tenure, and hosts/kube-apiserver
}

// build builds the programs of this tree, with the tags of a release.
func (b *bench) build(ctx context.Context) (err error) {
	if b.folder, err = os.MkdirTemp("", "clusters-"); err != nil {
		return err
	}
	const module = "github.com/tenure-ssa/tenure/"
	b.server, b.host = filepath.Join(b.folder, "tenure"), filepath.Join(b.folder, "host")
	programs := map[string]string{b.server: module + "cmd/tenure"}
	if b.stock != "" {
		programs[b.host] = module + "hosts/kube-apiserver"
	}
	for path, source := range programs {
		cmd := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace,kustomize_disable_go_plugin_support",
			"-o", path, source)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
	}
	if b.tenure == "" {
		b.tenure = b.server
	}
	return nil
}

// measure runs and measures subcommands in a cluster with n Deployments.
func (b *bench) measure(ctx context.Context, n int) error {
	given, changed := filepath.Join(b.folder, "given.yaml"), filepath.Join(b.folder, "changed.yaml")
	rules := filepath.Join(b.folder, "policy.yaml")
	err := errors.Join(writeManifests(given, n, 1), writeManifests(changed, n, 2),
		os.WriteFile(rules, []byte(permissions), 0o600))
	if err != nil {
		return err
	}
	fmt.Printf("\n| %d Deployments | time | CPU | peak memory |\n| --- | ---: | ---: | ---: |\n", n)
	err = b.with(ctx, func(kubeconfig string) error {
		for _, line := range []string{
			"plan --apply --yes -f " + given, "plan -f " + given, "plan --offline -f " + changed, "plan -f " + changed,
			"plan -o json -f " + changed, "plan --drift -f " + given, "report -A",
			"report -A --drift --policy " + rules, "get deployments -A", "get deployments -A -o json",
			"get deployments -A -l app", "blame deployments -A", "blame deployments -A -o json",
		} {
			if !strings.Contains(line, b.only) && !strings.Contains(line, "--apply") {
				continue
			}
			if err := b.run(ctx, b.tenure, line, kubeconfig); err != nil {
				return err
			}
		}
		return nil
	})
	kubectl, missing := exec.LookPath("kubectl")
	if err != nil || missing != nil || !strings.Contains("kubectl apply", b.only) {
		return err
	}
	return b.with(ctx, func(kubeconfig string) error {
		return b.run(ctx, kubectl, "apply --server-side -f "+given, kubeconfig)
	})
}

// permissions is a policy that permits only .spec, so that the labels of every Deployment are drift.
const permissions = `
apiVersion: tenure-ssa.github.io/v1alpha1
kind: ConflictPolicy
permissions:
  - managers: ["*"]
    fields: [.spec]
`

// deployment is the format of a manifest. Its verbs are the Deployment's name and the image's tag.
const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: default
  labels:
    app: %[1]s
    team: shop
spec:
  replicas: 2
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
        team: shop
    spec:
      containers:
        - name: app
          image: registry.example.dev/shop/web:%[2]d
          ports:
            - name: http
              containerPort: 8080
          env:
            - name: LOG_LEVEL
              value: info
          resources:
            requests:
              cpu: 100m
              memory: 128Mi
            limits:
              memory: 256Mi
          readinessProbe:
            httpGet:
              path: /healthz
              port: http
`

// writeManifests writes manifests of n Deployments into a file.
func writeManifests(path string, n, tag int) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for i := range n {
		fmt.Fprintf(out, deployment, fmt.Sprintf("web-%05d", i), tag)
	}
	return errors.Join(out.Flush(), file.Close())
}

// run runs a command, discards its output, and prints a row. Exit status 1 without an error message is a success: it
// means that a plan has changes.
func (b *bench) run(ctx context.Context, program, line, kubeconfig string) error {
	cmd := exec.CommandContext(ctx, program, append(strings.Fields(line), "--kubeconfig", kubeconfig)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil && (cmd.ProcessState.ExitCode() != 1 || strings.Contains(errs.String(), "error:")) {
		return fmt.Errorf("%s %s: %w: %s", program, line, err, errs.Bytes())
	}
	used, cpu := cmd.ProcessState.SysUsage().(*syscall.Rusage), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	name := strings.ReplaceAll(filepath.Base(program)+" "+line, b.folder+"/", "")
	fmt.Printf("| `%s` | %.1f s | %.1f s | %d MB |\n", name, took.Seconds(), cpu.Seconds(), used.Maxrss/1000)
	return nil
}

// with calls do while an empty server runs, and then stops the server.
func (b *bench) with(ctx context.Context, do func(kubeconfig string) error) error {
	folder, err := os.MkdirTemp(b.folder, "server-")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	store := filepath.Join(folder, "store")
	cmd := exec.CommandContext(ctx, b.server, "serve", "--store", store, "--kubeconfig", kubeconfig)
	if b.stock != "" {
		cmd = exec.CommandContext(ctx, b.host, "serve", "--build", "stock", "--binary", b.stock)
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the host stops when its input ends
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadBytes('\n')
	if err == nil && b.stock != "" {
		err = writeKubeconfig(kubeconfig, first)
	} else if err == nil {
		_, err = lines.ReadBytes('\n') // the kubeconfig is written before its path is printed
	}
	if err == nil {
		err = do(kubeconfig)
	}
	stopped := errors.Join(in.Close(), cmd.Process.Signal(os.Interrupt))
	if stopped == nil {
		stopped = cmd.Wait()
	}
	return errors.Join(err, stopped)
}

// writeKubeconfig writes the kubeconfig of the server that hosts/kube-apiserver printed.
func writeKubeconfig(path string, printed []byte) error {
	var server struct{ URL, Token string }
	if err := json.Unmarshal(printed, &server); err != nil {
		return fmt.Errorf("expected a server in JSON, got %q", printed)
	}
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{
			"server": server.URL, "insecure-skip-tls-verify": true}}},
		"users": []any{map[string]any{"name": "c", "user": map[string]any{"token": server.Token}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, config, 0o600)
}
