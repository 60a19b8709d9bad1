package playground

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// program builds cmd/playground, which serves the page and runs requests without it.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "playground")
	out, err := exec.Command("go", "build", "-o", file, "github.com/tenure-ssa/tenure/cmd/playground").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// serve serves the page with the engine of the command, and returns its address.
func serve(t *testing.T, program string) string {
	t.Helper()
	command := exec.Command(program, "serve")
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, stdin.Close())
		require.NoError(t, command.Wait())
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address)
}

// serveStatic serves a folder as a static host does, and returns its address.
func serveStatic(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// native returns what the Go engine answers to a request.
func native(t *testing.T, program, request string) string {
	t.Helper()
	command := exec.Command(program, "run")
	command.Stdin = strings.NewReader(request)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	require.NoError(t, err, errs.String())
	return strings.TrimSuffix(string(out), "\n")
}

// tab is a page in the browser, and what it complained about and asked for.
type tab struct {
	t       *testing.T
	ctx     context.Context
	address string

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// open opens the page at a fragment, and at the end of the test checks that it asked only where it came from, and
// complained about nothing.
func open(t *testing.T, browser context.Context, address, fragment string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, address: address}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Text)
		case *log.EventEntryAdded: // violations of the page's policy, for one
			b.complaints = append(b.complaints, e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			b.complaints = append(b.complaints, "dialog: "+e.Message)
		}
	}))
	b.ctx, cancel = context.WithTimeout(ctx, 5*time.Minute) // it may have a hundred examples to run
	t.Cleanup(cancel)
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address+fragment))
	b.settle()
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.complaints)
		for _, request := range b.requests {
			own := strings.HasPrefix(request, address) || strings.HasPrefix(request, "blob:"+address)
			require.True(t, own || request == "data:,", "the page asks for %s", request)
		}
	})
	return b
}

// settle waits until the engine has run what the page shows.
func (b *tab) settle() {
	b.t.Helper()
	require.Equal(b.t, "", eval[string](b, `new Promise(done => {
		const look = () => globalThis.playground && !playground.busy ? done(playground.error) : setTimeout(look, 10);
		look();
	})`))
}

// visit goes to a fragment, without loading the page again.
func (b *tab) visit(fragment string) {
	b.t.Helper()
	b.script(`playground.busy = true; location.hash = ` + quoted(fragment))
	b.settle()
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// eval returns the value of a JavaScript expression, or of what it promises.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return out
}

// script runs JavaScript for what it does.
func (b *tab) script(code string) {
	b.t.Helper()
	eval[chromedp.Void](b, code)
}

// texts returns the text of the elements that a selector finds.
func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(`+quoted(selector)+`)].map(e => e.textContent)`)
}

// theme has the page's colours as on a light or dark screen.
func (b *tab) theme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	require.NoError(b.t, err)
}

// screenshot leaves what is seen among the artifacts.
func (b *tab) screenshot(name string) {
	b.t.Helper()
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), data, 0o644))
}
