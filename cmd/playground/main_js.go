//go:build js

package main

import (
	"syscall/js"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
)

// main gives the page the function tenureRun, which takes a request and returns the response, both in JSON, and then
// waits for its calls.
func main() {
	js.Global().Set("tenureRun", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return string(playground.RunJSON([]byte(args[0].String())))
	}))
	js.Global().Call("tenureReady")
	select {}
}
