package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/playground/site"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// playgroundAddress is where the page is served unless a flag says otherwise: doc/spec.md has links to it.
const playgroundAddress = "127.0.0.1:8421"

func newPlayground(env *process.Env) *cobra.Command {
	var listen, dir string
	cmd := &cobra.Command{
		Use:   "playground",
		Short: "Serve a web page to try the engine in",
		Long: `Playground serves a web page: an object, the writes of managers to it, and what each
write does: the merged object with the owners of each line, the conflicts with their
ways out, and the managed fields before and after. Its examples show the rules of
the specification.

The page is for this computer: it is served to loopback addresses only. The links of
doc/spec.md lead to its own address; if that is in use, any free port is taken.

A command of a release has the engine as WebAssembly, so that it runs in the page.
Any other answers the page itself, unless --dir names a folder that was made by

  go run ./cmd/playground build DIR

in a clone of the repository. Such a folder can also be put on any web server.

Exit status: 0 if it was interrupted, 1 if it could not start, or on any error.`,
		Example: `  tenure playground
  tenure playground --listen 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(env.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			files, err := playgroundFiles(env, dir)
			if err != nil {
				return err
			}
			listener, err := listenPlayground(listen, cmd.Flags().Changed("listen"))
			if err != nil {
				return err
			}
			return servePlayground(ctx, env, listener, files)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", playgroundAddress, "loopback `ADDRESS` to listen on; port 0 is any free port")
	cmd.Flags().StringVar(&dir, "dir", "", "`FOLDER` with the files of the page, instead of those of the command")
	return cmd
}

// playgroundFiles returns the files of the static site to serve, or nil if the command answers the page.
func playgroundFiles(env *process.Env, dir string) (fs.FS, error) {
	if dir == "" {
		return site.Built(), nil
	}
	files := os.DirFS(env.Path(dir))
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, fmt.Errorf("--dir: %s: no files of a playground found: %w", dir, err)
	}
	return files, nil
}

// listenPlayground listens on a loopback address; on a free port instead, if the address is in use and was not chosen.
func listenPlayground(address string, isChosen bool) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil && !isChosen {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(
			fmt.Errorf("--listen: expected a loopback address such as 127.0.0.1:8080, got %q", address),
			listener.Close(),
		)
	}
	return listener, nil
}

// servePlayground serves until ctx ends.
func servePlayground(ctx context.Context, env *process.Env, listener net.Listener, files fs.FS) error {
	handler, err := site.Handler(files)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler, ReadTimeout: time.Minute, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	fmt.Fprintf(env.Stdout, "playground: http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
