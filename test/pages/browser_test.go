// Package pages tests the pages of the playground and of tenure ui in headless Chromium. Tests skip if Chromium is not
// installed; the Debian package is chromium.
package pages

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// start starts a browser for t and its subtests, or skips t if there is no browser.
func start(t testing.TB) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium in PATH: the page is not tested")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], // headless, without background activity
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // for root, as in many CI systems; the browser opens only the test's own pages
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(cancel)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		cancelBrowser()
		cancel()
	})
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// serve serves a folder over HTTP, and returns its address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// tab is a page in the browser, with its errors and its requests.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// openPage opens an address with a fragment in a new tab. At the end of the test, it checks that the page sent requests
// only to its own server, and reported no errors.
func openPage(t *testing.T, browser context.Context, address, fragment string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Text)
		case *log.EventEntryAdded: // for example violations of the page's security policy
			b.complaints = append(b.complaints, e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			b.complaints = append(b.complaints, "dialog: "+e.Message)
		}
	}))
	b.ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address+fragment))
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

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// eval returns the value of a JavaScript expression. If the value is a promise, eval returns the promise's result.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return out
}

// script runs JavaScript for its effect.
func (b *tab) script(code string) {
	b.t.Helper()
	eval[chromedp.Void](b, code)
}

// texts returns the texts of the elements that match a selector.
func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(`+quoted(selector)+`)].map(e => e.textContent)`)
}
