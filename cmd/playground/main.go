//go:build !js

// Command playground makes the files of the playground: the engine in a web page, as WebAssembly.
//
//	go run ./cmd/playground build DIR                   write the files of a static site
//	go run ./cmd/playground examples SCENARIOS FILE     write the examples of the page
//	go run ./cmd/playground serve                       serve the page with the engine of this command, until stdin ends
//	go run ./cmd/playground run < REQUEST               run a request of the page, without the page
//
// Compiled for js/wasm, it is the engine of the page.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
	"github.com/tenure-ssa/tenure/cmd/internal/playground/site"
)

var errUsage = errors.New("usage: playground build DIR | examples SCENARIOS FILE | serve | run")

func main() {
	if err := runCommand(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func runCommand(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "build":
		return site.Build(args[1])
	case len(args) == 3 && args[0] == "examples":
		return writeExamples(args[1], args[2])
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 1 && args[0] == "run":
		request, err := io.ReadAll(io.LimitReader(os.Stdin, playground.MaxRequest+1))
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(append(playground.RunJSON(request), '\n'))
		return err
	}
	return errUsage
}

func writeExamples(scenarios, file string) error {
	list, err := playground.ReadExamples(scenarios)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o666)
}

// serve is tenure playground without the rest of tenure, which takes long to build for a test.
func serve() error {
	handler, err := site.Handler(nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadTimeout: time.Minute}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		server.Close()
	}()
	fmt.Printf("http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
