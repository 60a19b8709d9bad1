// Package playground holds the tests of the playground's page in a real browser, headless Chromium. They are skipped
// where there is none. The page is tested with the engine of the command. Where the environment variable PLAYGROUND
// names a folder with the files of the static site, it is tested with the engine as WebAssembly too; to compile that
// takes a minute:
//
//	go run ./cmd/playground build /tmp/site && PLAYGROUND=/tmp/site go test ./test/conformance/playground -v
package playground
