package pages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	page "github.com/tenure-ssa/tenure/ownership/report"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// openReport opens the page of a report on objects: the Deployment of blame's page, ConfigMaps of several
// managers, and whatever else is given.
func openReport(t *testing.T, browser context.Context, fragment string, more ...map[string]any) *tab {
	t.Helper()
	r := page.New(page.Options{Now: now})
	data, err := os.ReadFile(deploymentFile)
	require.NoError(t, err)
	objects := append(more, read(t, data))
	for i := range 30 {
		data, fields := map[string]any{}, map[string]any{}
		for j := range i + 1 {
			data[fmt.Sprint("k", j)], fields[fmt.Sprint("f:k", j)] = "v", map[string]any{}
		}
		objects = append(objects, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{
				"name": fmt.Sprintf("c-%02d", i), "namespace": "shop", "managedFields": []any{
					map[string]any{
						"manager": fmt.Sprintf(
							"writer-%d",
							i%5,
						),
						"operation":  "Update",
						"apiVersion": "v1",
						"time":       "2020-01-01T00:00:00Z",
						"fieldsType": "FieldsV1",
						"fieldsV1":   map[string]any{"f:data": fields},
					},
				},
			},
		})
	}
	for _, object := range objects {
		r.Add(t.Context(), page.Object{Tree: object, Types: openapi.Builtin()})
	}
	var html bytes.Buffer
	require.NoError(t, page.HTML(&html, r.Summary()))
	return openHTML(t, browser, fragment, html.Bytes())
}

func TestReportPage(t *testing.T) {
	browser := start(t)

	t.Run("is seen", func(t *testing.T) {
		b := openReport(t, browser, "")
		require.Equal(t, "Who owns what in 31 objects of 2 kinds", eval[string](b, `document.title`))
		require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("svg text")].filter(t => {
			const box = t.getBBox(); return box.x < 0 || box.x + box.width > 560; }).map(t => t.textContent)`), "text beyond a chart")
	})

	t.Run("sorts", func(t *testing.T) {
		b := openReport(t, browser, "")
		first := func(column int) string {
			return eval[string](b, fmt.Sprintf(`document.querySelector("#objects tbody tr").cells[%d].textContent`, column))
		}
		head := func(column int) string {
			return fmt.Sprintf(`document.querySelectorAll("#objects th button")[%d]`, column)
		}
		b.script(head(0) + `.click()`)
		require.Equal(t, "configmap/c-06", first(0), "the 25 with the largest managed fields, by name")
		b.script(head(0) + `.click()`)
		require.Equal(t, "deployment.apps/web", first(0))
		require.Equal(t, "descending", eval[string](b, head(0)+`.closest("th").getAttribute("aria-sort")`))
		b.script(head(5) + `.focus()`)
		b.do(chromedp.KeyEvent(kb.Enter))
		require.Equal(t, "deployment.apps/web", first(0), "the most entries, by the keyboard")
	})

	t.Run("searches", func(t *testing.T) {
		b := openReport(t, browser, "")
		b.do(chromedp.KeyEvent("/"))
		require.Equal(t, "search", eval[string](b, `document.activeElement.id`))
		b.script(`document.activeElement.value = ""`) // the driver types the slash as well
		b.do(chromedp.SendKeys("#search", "C-29 shop"))
		require.Equal(t, []string{"configmap/c-29"}, eval[[]string](b,
			`[...document.querySelectorAll("#objects tbody tr:not([hidden])")].map(r => r.cells[0].textContent)`))
		require.Regexp(t, `^1 of \d+ rows$`, eval[string](b, `document.querySelector("#shown").textContent`))
		b.do(chromedp.KeyEvent(kb.Escape))
		require.Zero(t, eval[int](b, `document.querySelectorAll("tr[hidden]").length`))
	})

	t.Run("leads to the lines of an object", func(t *testing.T) {
		b := openReport(t, browser, "")
		require.Zero(t, eval[int](b, `[...document.querySelectorAll(".blame")].filter(s => s.offsetHeight).length`))
		b.script(`[...document.querySelectorAll("#objects a")].find(a => a.textContent === "configmap/c-29").click()`)
		lines := eval[[]string](
			b,
			`new Promise(done => setTimeout(() => done([...document.querySelectorAll(".blame.opened .line")]
			.map(l => l.querySelector(".who").textContent + "|" + l.querySelector("code").textContent)), 100))`,
		)
		require.Contains(t, lines, "writer-4|  k0: v")
		require.Contains(t, lines, "|metadata:")
		require.Equal(
			t,
			"tenure blame configmap/c-29 -n shop",
			eval[string](b, `document.querySelector(".blame.opened .command code").textContent`),
		)
		b.do(chromedp.KeyEvent(kb.Escape))
		require.Zero(t, eval[int](b, `document.querySelectorAll(".blame.opened").length`))

		b = openReport(t, browser, "#object-0")
		require.Equal(t, 1, eval[int](b, `document.querySelectorAll(".blame.opened").length`), "by its address")
	})

	t.Run("shows hostile text as text", func(t *testing.T) {
		const evil = `</script><script>document.title="pwned"</script><img src=x onerror=alert(1)>`
		b := openReport(t, browser, "", map[string]any{
			"apiVersion": evil + "/v1", "kind": evil, "data": map[string]any{evil: evil + "\u202e"},
			"metadata": map[string]any{"name": evil, "namespace": evil, "managedFields": []any{
				map[string]any{
					"manager":    evil + "\x1b]0;x\x07",
					"operation":  "Apply",
					"apiVersion": evil,
					"fieldsType": "FieldsV1",
					"time":       "2020-01-01T00:00:00Z",
					"fieldsV1":   map[string]any{"f:data": map[string]any{"f:" + evil: map[string]any{}}},
				},
			}},
		})
		require.NotContains(t, eval[string](b, `document.title`), "pwned")
		require.Zero(t, eval[int](b, `document.images.length`))
		require.Contains(t, eval[string](b, `document.body.textContent`), evil+`\u001b]0;x\u0007`)
	})
}
