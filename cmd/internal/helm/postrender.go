package helm

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
)

// SocketVariable is the environment variable through which a post-renderer finds the command that started helm. It
// names a socket in a folder of the user. Templates may contain Secrets, so they are not passed in arguments or in a
// file.
const SocketVariable = "TENURE_HELM_SOCKET"

// pluginName is the name of the Helm plugin that calls Relay.
const pluginName = "tenure-postrender"

// postRender runs helm with a function of this process as its post-renderer.
func (p *Program) postRender(
	ctx context.Context, stdout io.Writer, args []string, replace func([]byte) ([]byte, error),
) error {
	folder, err := os.MkdirTemp("", "tenure")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() { done <- answer(listener, replace) }()
	err = p.run(ctx, stdout, []string{SocketVariable + "=" + socket}, append(args, "--post-renderer", pluginName)...)
	listener.Close()
	answered := <-done
	switch {
	case errors.Is(answered, net.ErrClosed) && err == nil:
		return errors.New("helm upgrade did not run the plugin " + pluginName)
	case answered == nil || errors.Is(answered, net.ErrClosed):
		return err
	}
	return answered // more precise than Helm's error
}

// answer accepts one connection of a post-renderer, and sends it the result of replace.
func answer(listener net.Listener, replace func([]byte) ([]byte, error)) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err == nil {
		text, err = replace(text)
	}
	if err == nil {
		_, err = conn.Write(text)
	}
	return err
}

// Relay is the post-renderer that Helm starts for postRender. It passes its input to the command that listens at the
// socket, and prints the templates that the command returns.
func Relay(socket string, in io.Reader, out io.Writer) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err = io.Copy(conn, in); err == nil {
		err = conn.(*net.UnixConn).CloseWrite()
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(out, conn)
	if err == nil && n == 0 {
		err = errors.New("the templates were refused")
	}
	return err
}
