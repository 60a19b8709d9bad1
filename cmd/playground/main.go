//go:build !js

// Command playground builds the playground: a web page that runs the engine as WebAssembly.
//
//	go run ./cmd/playground build DIR       write the files of a static site; run in a clone of the repository
//	go run ./cmd/playground run < REQUEST   run a request of the page, without the page
//
// Compiled for js/wasm, this program is the page's engine.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
)

func main() {
	if err := runCommand(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func runCommand(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "build":
		return build(args[1])
	case len(args) == 1 && args[0] == "run":
		request, err := io.ReadAll(io.LimitReader(os.Stdin, playground.MaxRequest+1))
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(append(playground.RunJSON(request), '\n'))
		return err
	}
	return errors.New("usage: playground build DIR | run")
}
