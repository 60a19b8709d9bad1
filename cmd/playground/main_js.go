//go:build js

package main

import (
	"syscall/js"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
)

// main defines the JavaScript function tenureRun, which takes a request and returns a response, both as JSON. The page
// calls this function, and main waits for its calls.
func main() {
	js.Global().Set("tenureRun", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return string(playground.RunJSON([]byte(args[0].String())))
	}))
	js.Global().Call("tenureReady")
	select {}
}
