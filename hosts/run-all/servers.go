package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/tenure-ssa/tenure/hosts/internal/tree"
	"github.com/tenure-ssa/tenure/internal/controlplane"
)

// The servers for suites that need a cluster.
const (
	onTenure        = "tenure"
	onKubeAPIServer = "kube-apiserver"
)

// programs builds commands from the published source of Kubernetes, and returns their folder.
func (r *runner) programs(ctx context.Context, log io.Writer, names ...string) (string, error) {
	t, err := tree.Open(filepath.Join(r.dir, r.version), r.version)
	if err != nil {
		return "", err
	}
	if err := t.WriteStock(); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := t.Build(ctx, tree.Stock, tree.Command{Name: name, Procs: r.procs}, log); err != nil {
			return "", err
		}
	}
	return t.Bin(""), nil
}

// server returns the path of the kube-apiserver for a suite, and its folder, which also has other commands of
// Kubernetes. The binary is named kube-apiserver, because managed fields contain its name.
func (r *runner) server(
	ctx context.Context,
	log io.Writer,
	on string,
	others ...string,
) (server, bin string, err error) {
	if on == onKubeAPIServer {
		bin, err = r.programs(ctx, log, append(others, "kube-apiserver")...)
		return filepath.Join(bin, "kube-apiserver"), bin, err
	}
	if bin, err = r.programs(ctx, log, others...); err != nil {
		return "", "", err
	}
	assets, err := r.assets(ctx)
	return filepath.Join(assets, "kube-apiserver"), bin, err
}

// testControllers runs the tests of controllers on a server with a kube-controller-manager.
func (r *runner) testControllers(ctx context.Context, s suite, log io.Writer) (err error) {
	server, bin, err := r.server(ctx, log, s.on, "kube-controller-manager")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-controllers-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil { // after a failure, the servers' logs are kept
			err = os.RemoveAll(dir)
		}
	}()
	fmt.Fprintln(log, "the logs of the servers are in", dir)
	served, err := controlplane.StartAlone(ctx, server, dir)
	if err != nil {
		return err
	}
	defer served.Stop()
	controllers, err := controlplane.StartControllers(ctx, filepath.Join(bin, "kube-controller-manager"), dir, served)
	if err != nil {
		return err
	}
	defer controllers.Stop()
	cmd := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout=60m", "./controllers")
	cmd.Dir = filepath.Join(r.root, "test", "e2e")
	cmd.Env = append(os.Environ(), "KUBECONFIG_OF_CONTROLLERS="+filepath.Join(dir, "controllers.kubeconfig"))
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

// scriptFolders are the folders of k8s.io/kubernetes that the tests of kubectl read.
var scriptFolders = []string{
	"hack", "test/cmd", "test/fixtures", "test/e2e/testing-manifests", "third_party/forked/shell2junit",
}

// testKubectl runs the published tests of kubectl's commands, hack/make-rules/test-cmd.sh. The tests call make to build
// their programs; here make does nothing, because all programs are already built.
func (r *runner) testKubectl(ctx context.Context, s suite, log io.Writer) error {
	server, bin, err := r.server(ctx, log, s.on, "kubectl", "kubectl-convert", "kube-controller-manager")
	if err != nil {
		return err
	}
	root := filepath.Join(r.dir, r.version, "test-cmd-"+s.on)
	if err := tree.CopyFolders(r.version, root, scriptFolders...); err != nil {
		return err
	}
	links := map[string]string{
		"_output/bin/kube-apiserver":          server,
		"_output/bin/kube-controller-manager": filepath.Join(bin, "kube-controller-manager"),
		"_output/bin/kubectl":                 filepath.Join(bin, "kubectl"),
		"_output/bin/kubectl-convert":         filepath.Join(bin, "kubectl-convert"),
		"_output/path/make":                   "/bin/true",
		"_output/path/kubeadm":                "/bin/true",
	}
	for name, target := range links {
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name)); err != nil {
			return err
		}
	}
	env, err := scriptEnvironment(ctx, root)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "bash", "hack/make-rules/test-cmd.sh")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	// A process group, to stop the script's servers together with the script.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd.Run()
}

// scriptEnvironment returns the environment for the scripts: their servers listen on free ports, and any version of
// etcd is accepted. The port of kube-controller-manager can't be chosen.
func scriptEnvironment(ctx context.Context, root string) (env []string, err error) {
	for _, name := range []string{"ETCD_PORT", "SECURE_API_PORT"} {
		port, err := controlplane.FreePort()
		if err != nil {
			return nil, err
		}
		env = append(env, fmt.Sprintf("%s=%d", name, port))
	}
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		return nil, err
	}
	printed, err := exec.CommandContext(ctx, etcd, "--version").Output()
	if err != nil {
		return nil, err
	}
	version := etcdVersion.FindSubmatch(printed)
	if version == nil {
		return nil, fmt.Errorf("etcd --version: expected a version, got %q", printed)
	}
	output := filepath.Join(root, "_output")
	path, temporary := filepath.Join(output, "path"), filepath.Join(output, "tmp")
	// The scripts set ETCD_VERSION to the required minimum version; etcd would read this variable as a flag.
	script := fmt.Sprintf("#!/bin/sh\nunset ETCD_VERSION\nexec '%s' \"$@\"\n", etcd)
	err = errors.Join(os.MkdirAll(temporary, 0o755), os.WriteFile(filepath.Join(path, "etcd"), []byte(script), 0o755))
	return append(env, "ETCD_VERSION="+string(version[1]), "ETCD_UNSAFE_NO_FSYNC=true",
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBEADM_PATH=/bin/true", "WHAT="+os.Getenv("WHAT"),
		"TERM=xterm",      // tput needs it
		"ALLOW_SKEW=true", // these builds have no git commit
		"KUBE_JUNIT_REPORT_DIR="+filepath.Join(output, "junit"), "TMPDIR="+temporary,
		"SERVICE_ACCOUNT_KEY="+filepath.Join(output, "sa.key")), err
}

var etcdVersion = regexp.MustCompile(`(?m)^etcd Version: (\S+)$`)
