// Package browser starts headless Chromium for tests of pages. Tests are skipped where there is none; Debian has it as
// the package chromium.
package browser

import (
	"context"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Start starts a browser for t and its subtests, or skips t where there is none.
func Start(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium in PATH: the page is not tested (Debian: apt-get install chromium)")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], // headless, and quiet in the background
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // for root, which CI often is; it opens the test's own files only
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
