package blame

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"net/url"
	"os"
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
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/managedfields/blame"
	"github.com/tenure-ssa/tenure/test/conformance/internal/browser"
)

// contrast lists the texts of the page that are hard to read.
const contrast = browser.LowContrast

// now is when the reports are made.
var now = time.Date(2026, 1, 4, 18, 0, 0, 0, time.UTC)

// start starts a browser for t and its subtests, or skips t where there is none.
func start(t *testing.T) context.Context {
	t.Helper()
	return browser.Start(t)
}

// tab is a page in the browser, and what it complained about and asked for.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// open opens the page of reports at a fragment: see openPage.
func open(t *testing.T, browser context.Context, fragment string, reports ...*blame.Report) *tab {
	t.Helper()
	var html bytes.Buffer
	require.NoError(t, blame.HTML(&html, reports...))
	return openPage(t, browser, fragment, html.Bytes())
}

// openPage opens a page at a fragment in a tab of its own, and at the end of the
// test checks that it asked for nothing and complained about nothing.
func openPage(t *testing.T, browser context.Context, fragment string, html []byte) *tab {
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
		case *log.EventEntryAdded: // violations of the page's policy, for one
			b.complaints = append(b.complaints, e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			b.complaints = append(b.complaints, "dialog: "+e.Message)
		}
	}))
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, html, 0o600))
	address := &url.URL{Scheme: "file", Path: file, Fragment: fragment}
	// Now that there is a tab: nothing in it takes longer.
	b.ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address.String()))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.complaints)
		for _, request := range b.requests {
			require.True(t, strings.HasPrefix(request, "file://"+file) || request == "data:,", "the page asks for %s", request)
		}
	})
	return b
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

// visible returns the text of the lines that are shown.
func (b *tab) visible() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".line:not([hidden]) code")].map(c => c.textContent)`)
}

// theme has the page's colours as on a light or dark screen.
func (b *tab) theme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // at once, not by and by
		},
	})
	require.NoError(b.t, err)
}

// screenshot returns what is seen, and leaves it among the artifacts.
func (b *tab) screenshot(name string) image.Image {
	b.t.Helper()
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), data, 0o644))
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(b.t, err)
	return img
}

// read returns the object of a YAML text with numbers as in an unstructured one.
func read(t testing.TB, text []byte) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	var obj map[string]any
	require.NoError(t, utiljson.Unmarshal(data, &obj))
	return obj
}

func report(t testing.TB, obj map[string]any) *blame.Report {
	t.Helper()
	r, err := blame.New(obj, blame.Options{Now: now})
	require.NoError(t, err)
	return r
}

func deployment(t testing.TB) *blame.Report {
	t.Helper()
	data, err := os.ReadFile("../../../managedfields/blame/testdata/deployment.yaml")
	require.NoError(t, err)
	return report(t, read(t, data))
}
