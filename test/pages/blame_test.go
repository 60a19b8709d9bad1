package pages

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "make README's picture again")

// shopLive is the live object in README.
const shopLive = "../../doc/examples/web-live.yaml"

func TestBlame(t *testing.T) {
	program := filepath.Join(t.TempDir(), "tenure")
	output(t, "", "go", "run", "-exec", "cp", "github.com/tenure-ssa/tenure/cmd/kubectl-tenure", program)
	html := output(t, "", program, "blame", "--live", shopLive, "--time", "-o", "html")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte(html), 0o600))
	chromium, address := start(t), serve(t, dir)
	shown := `[...document.querySelectorAll(".line:not([hidden]):not(.around) code")].map(e => e.textContent.trim())`

	t.Run("finds lines", func(t *testing.T) {
		b := openPage(t, chromium, address, "")
		all := eval[[]string](b, shown)
		require.Greater(t, len(all), 50)
		b.script(`(() => { const s = document.getElementById("search"); s.value = "IMAGE:"; s.oninput(); })()`)
		found := eval[[]string](b, shown)
		require.NotEmpty(t, found)
		for _, line := range found {
			require.Contains(t, line, "image:")
		}
		require.NotEmpty(t, b.texts(".line.around:not([hidden])"), "what the lines are in stays, paler")
		require.Less(t, len(b.texts(".line:not([hidden])")), len(all))
		b.do(chromedp.KeyEvent("\u001b"))
		require.Equal(t, all, eval[[]string](b, shown))
		b.do(chromedp.KeyEvent("/"))
		require.Equal(t, "search", eval[string](b, `document.activeElement.id`))
	})

	t.Run("filters by owner", func(t *testing.T) {
		b := openPage(t, chromium, address, "")
		press := func(name string) {
			b.script(`[...document.querySelectorAll("#filters button")].find(e => e.dataset.of === ` + quoted(name) + `).click()`)
		}
		press("=hpa")
		require.Equal(t, []string{"replicas: 5"}, eval[[]string](b, shown))
		require.Equal(t, []string{"1 line"}, b.texts("#count"))
		press("=hpa")
		for _, filter := range []string{"co-owned", "unowned"} {
			press(filter)
			lines := len(eval[[]string](b, shown))
			require.Equal(t, lines, eval[int](b, `Number(document.querySelector("#filters [aria-pressed=true] small").textContent)`))
			require.Positive(t, lines)
			press(filter)
		}
	})

	t.Run("is dark and light, and fits a narrow window", func(t *testing.T) {
		b := openPage(t, chromium, address, "")
		colours := map[string]bool{}
		for range 2 {
			b.script(`document.getElementById("theme").click()`)
			colours[eval[string](b, `getComputedStyle(document.body).backgroundColor`)] = true
		}
		require.Len(t, colours, 2)
		for _, width := range []int64{1280, 390} {
			b.do(chromedp.EmulateViewport(width, 800))
			require.True(t, eval[bool](b, `document.documentElement.scrollWidth <= innerWidth`), width)
		}
		require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("button, input")]
			.filter(e => !e.textContent.trim() && !e.ariaLabel).map(e => e.outerHTML)`), "every control has a name")
	})

	t.Run("shows a plan and hostile text", func(t *testing.T) {
		dir := t.TempDir()
		const evil = `</script><img src=x onerror=alert(1)><script>document.title="pwned"</script>`
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			return path
		}
		live := file("live.yaml", `apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: default
  managedFields:
  - {manager: `+quoted(evil)+`, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}
data: {a: `+quoted(evil)+`, b: y}
`)
		intent := file("intent.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {a: z, b: w}\n")
		html := printed(t, 2, program, "plan", "--live", live, "-f", intent, "--field-manager", "b", "-o", "html")
		file("index.html", html)
		b := openPage(t, chromium, serve(t, dir), "")
		require.Equal(t, "Plan", eval[string](b, `document.title`))
		require.Zero(t, eval[int](b, `document.images.length`))
		require.Equal(t, []string{"What changes", "Conflicts", "Ways out"}, b.texts("h3"))
		require.Contains(t, strings.Join(b.texts("td"), "\n"), "</script><img src=x onerror=alert(1)>")
		require.Contains(t, strings.Join(b.texts(".line.conflict code"), "\n"), "</script><img src=x onerror=alert(1)>")
	})
}

// printed returns the output of a program that must end with a status.
func printed(t *testing.T, status int, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, status, ended.ExitCode(), string(ended.Stderr))
	return string(out)
}
