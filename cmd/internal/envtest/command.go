package envtest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// NewCommand returns the command tenure envtest.
func NewCommand(env *process.Env) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "envtest",
		Short: "Print a folder with kube-apiserver, etcd and kubectl for envtest",
		Long: `Envtest makes a folder with the programs that envtest of controller-runtime starts,
and prints its path:

  kube-apiserver   this command, which takes the flags that envtest gives
  etcd             this command, which stands in for etcd: the objects are in the
                   memory of kube-apiserver
  kubectl          the kubectl on the PATH; if there is none, a program that says so

The folder is one in the user's cache unless --dir names another. It holds links,
and stays valid while this command is where it is.

Exit status: 0, or 1 if the folder can't be made.`,
		Example: `  KUBEBUILDER_ASSETS=$(tenure envtest) go test ./...

  # a project of kubebuilder, whose Makefile asks setup-envtest for the folder
  ENVTEST_USE_ENV=1 KUBEBUILDER_ASSETS=$(tenure envtest) make test`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			folder := env.Path(dir)
			if dir == "" {
				if folder, err = DefaultFolder(binary); err != nil {
					return err
				}
			}
			if folder, err = filepath.Abs(folder); err != nil {
				return err
			}
			if err := MakeFolder(folder, binary, env.Getenv("PATH")); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, folder)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`FOLDER` to make, instead of one in the user's cache")
	return cmd
}
