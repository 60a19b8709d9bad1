package pages

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

const deploymentFile = "../../ownership/blame/testdata/deployment.yaml"

// now is when the reports are made.
var now = time.Date(2026, 1, 4, 18, 0, 0, 0, time.UTC)

// row finds the row of a path's line in the page, in JavaScript.
func row(path string) string {
	return fmt.Sprintf(
		`[...document.querySelectorAll(".line")].find(l => decodeURIComponent(l.querySelector(".no").hash.slice(1)) === %q)`,
		path,
	)
}

const (
	replicas  = `.spec.replicas`
	container = `.spec.template.spec.containers[name="web"]`
	port8080  = container + `.ports[containerPort=8080,protocol="TCP"]`
	port9090  = container + `.ports[containerPort=9090,protocol="TCP"]`
)

func TestBlamePage(t *testing.T) {
	browser := start(t)

	t.Run("shows every line", func(t *testing.T) {
		r := deployment(t)
		b := open(t, browser, "", r)
		require.Equal(t, r.YAML(), strings.Join(b.visible(), "\n")+"\n")
		require.Equal(t, "Who owns what: Deployment shop/web", eval[string](b, `document.title`))
	})

	t.Run("shows the owners of a keyed list", func(t *testing.T) {
		b := open(t, browser, "", deployment(t))
		for _, tt := range []struct {
			path  string
			chips []string
			why   string
		}{
			{port8080 + ".containerPort", []string{"gitops", "mesh-injector"}, "both applied the item and its fields"},
			{port9090 + ".containerPort", []string{"gitops"}, "an item of one manager in the same list"},
			{port8080 + ".protocol", []string{}, "the default of a key is nobody's, although the item is owned by it"},
			{container + ".args", []string{"gitops", "mesh-injector·item"},
				"the item that begins in the line is shared, the field is not"},
		} {
			chips := eval[[]string](b, `[...`+row(tt.path)+
				`.querySelectorAll(".chip")].map(c => [...c.childNodes].map(n => n.textContent).join("·"))`)
			require.Equal(t, tt.chips, chips, "%s: %s", tt.path, tt.why)
		}
	})

	t.Run("tells about the line that is pointed at", func(t *testing.T) {
		b := open(t, browser, "", deployment(t))
		type point struct{ X, Y float64 }
		over := func(path string) {
			p := eval[point](
				b,
				`(() => { const r = `+row(
					path,
				)+`; r.scrollIntoView({block: "center"}); const b = r.getBoundingClientRect(); return {X: b.x + b.width / 2, Y: b.y + b.height / 2}; })()`,
			)
			b.do(chromedp.MouseEvent("mouseMoved", p.X, p.Y))
		}
		over(port8080 + ".containerPort")
		details := eval[string](b, `document.querySelector("#field").innerText`)
		for _, want := range []string{
			port8080 + ".containerPort", "owned itself, by several", "gitops", "mesh-injector",
			"Apply", "apps/v1", "2026-01-03T09:00:00Z", "33h",
			port8080 + "\n", // the item
		} {
			require.Contains(t, details, want)
		}
		over(replicas)
		details = eval[string](b, `document.querySelector("#field").innerText`)
		require.Contains(t, details, "scale", "the subresource")
		require.NotContains(t, details, "gitops")
		over(".spec.revisionHistoryLimit")
		require.Contains(t, eval[string](b, `document.querySelector("#field").innerText`), "owned by nobody")
	})

	t.Run("filters by managers", func(t *testing.T) {
		b := open(t, browser, "", deployment(t))
		all := len(b.visible())
		button := func(name string) string {
			return fmt.Sprintf(
				`[...document.querySelectorAll(".manager")].find(m => m.querySelector("b").textContent === %q)`,
				name,
			)
		}
		b.script(button("hpa") + `.click()`)
		require.Equal(t, []string{"spec:", "  replicas: 5"}, b.visible(), "one line, and what it is in")
		require.Equal(t, "1 of 67 lines", eval[string](b, `document.querySelector("#shown").textContent`))

		b.script(button("kubectl-edit") + `.focus()`)
		b.do(chromedp.KeyEvent(" "))
		require.Contains(t, b.visible(), "            memory: 256Mi", "two managers, the second by keyboard")
		require.Contains(t, b.visible(), "  replicas: 5")
		require.Equal(t, "true", eval[string](b, button("kubectl-edit")+`.getAttribute("aria-pressed")`))

		b.do(chromedp.KeyEvent(kb.Escape))
		require.Len(t, b.visible(), all)
		b.script(button("co-owned") + `.click()`)
		require.Equal(t, 4, eval[int](b, `document.querySelectorAll(".line:not([hidden]):not(.context)").length`))
		b.script(`document.querySelector("#clear").click()`)
		b.script(button("unowned") + `.click()`)
		require.Contains(t, b.visible(), "    type: RollingUpdate")
		require.NotContains(t, b.visible(), "  replicas: 5")
	})

	t.Run("searches and folds", func(t *testing.T) {
		b := open(t, browser, "", deployment(t))
		b.do(chromedp.KeyEvent("/"))
		require.Equal(t, "search", eval[string](b, `document.activeElement.id`))
		b.script(`document.activeElement.value = ""`) // the driver types the slash as well
		b.do(chromedp.SendKeys("#search", "RESOURCES.limits"))
		visible := b.visible()
		require.Equal(t, "          limits:", visible[len(visible)-2])
		require.Equal(t, "            memory: 256Mi", visible[len(visible)-1])
		b.do(chromedp.KeyEvent(kb.Escape))
		b.script(`document.querySelector("#fold").click()`)
		require.Equal(t, []string{"apiVersion: apps/v1", "kind: Deployment", "metadata:", "spec:", "status:"}, b.visible())
		b.script(row(".metadata") + `.focus()`)
		b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent("j"))
		require.Contains(t, b.visible(), "  name: web")
		require.Contains(t, eval[string](b, `document.querySelector("#field").innerText`), ".metadata.annotations")
		b.script(`document.querySelector("#fold").click()`)
	})

	t.Run("has an address for every path", func(t *testing.T) {
		b := open(t, browser, port8080+".name", deployment(t))
		require.Equal(t, "          name: http", eval[string](b, `document.querySelector(".line.kept code").textContent`))
		require.True(
			t,
			eval[bool](
				b,
				`(() => { const b = document.querySelector(".line.kept").getBoundingClientRect(); return b.top >= document.querySelector("header").getBoundingClientRect().bottom && b.bottom <= innerHeight; })()`,
			),
			"in view, not below the header",
		)
		require.Equal(t, "  replicas: 5", eval[string](b, `new Promise(done => {
			addEventListener("hashchange", () => done(document.querySelector(".line.kept code").textContent), {once: true});
			location.hash = "#" + encodeURIComponent(".spec.replicas");
		})`))

		second := deployment(t)
		second.Name = "api"
		b = open(t, browser, "Deployment/shop/api"+replicas, deployment(t), second)
		require.Equal(t, "object-1", eval[string](b, `document.querySelector(".line.kept").closest("section").id`))
	})

	t.Run("shows hostile text as text", func(t *testing.T) {
		const evil = `</script><script>document.title="pwned"</script><img src=x onerror=alert(1)>`
		obj := map[string]any{
			"apiVersion": evil, "kind": evil,
			"metadata": map[string]any{
				"name": evil, "annotations": map[string]any{evil: evil + "\u202e\x1b[2J"},
				"managedFields": []any{
					map[string]any{
						"manager":    evil + "\x1b]0;x\x07",
						"operation":  "Apply",
						"apiVersion": evil,
						"fieldsType": "FieldsV1",
						"fieldsV1": map[string]any{
							"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + evil: map[string]any{}}},
							"f:" + evil:  map[string]any{},
						},
					},
				},
			},
		}
		r := report(t, obj)
		b := open(t, browser, "", r, r)
		require.NotContains(t, eval[string](b, `document.title`), "pwned")
		require.Zero(t, eval[int](b, `document.images.length`))
		require.Contains(t, eval[string](b, `document.querySelector(".manager b").textContent`), evil+`\u001b]0;x\u0007`)
		require.Contains(t, strings.Join(b.visible(), "\n"), `\u202e`)
	})

	t.Run("can be read without scripts", func(t *testing.T) {
		r := deployment(t)
		b := open(t, browser, "", r)
		_, err := chromedp.Call(
			b.ctx,
			emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true},
		)
		require.NoError(t, err)
		b.do(chromedp.Reload())
		require.False(t, eval[bool](b, `document.documentElement.classList.contains("js")`))
		require.Equal(t, r.YAML(), strings.Join(b.visible(), "\n")+"\n")
		require.Equal(
			t,
			"none",
			eval[string](b, `getComputedStyle(document.querySelector("aside")).display`),
			"what would do nothing is not shown",
		)
	})

	t.Run("says when nobody is known", func(t *testing.T) {
		b := open(
			t,
			browser,
			"",
			report(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}),
		)
		require.Contains(t, eval[string](b, `document.querySelector(".note").textContent`), "no managed fields")
	})
}

// open opens the page of reports at a fragment.
func open(t *testing.T, browser context.Context, fragment string, reports ...*blame.Report) *tab {
	t.Helper()
	var html bytes.Buffer
	require.NoError(t, blame.HTML(&html, reports...))
	return openHTML(t, browser, "#"+url.PathEscape(fragment), html.Bytes())
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
	data, err := os.ReadFile(deploymentFile)
	require.NoError(t, err)
	return report(t, read(t, data))
}
