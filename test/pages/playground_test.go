package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// example is an example in the playground.
type example struct {
	Name  string   `json:"name"`
	Rules []string `json:"rules"`
	Steps []struct {
		Name string `json:"name"`
		Body string `json:"body"`
	} `json:"steps"`
}

// response is the part of the engine's response that the page shows.
type response struct {
	Steps []struct {
		Outcome string `json:"outcome"`
		Error   string `json:"error"`
		Object  []struct {
			Text string `json:"text"`
		} `json:"object"`
		Conflicts []struct {
			Field string `json:"field"`
		} `json:"conflicts"`
	} `json:"steps"`
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil { // never: each string can be encoded
		panic(err)
	}
	return string(data)
}

// conflicting is the first example of the page, which has a conflict.
const conflicting = "5.1-conflict-force-and-sharing"

func TestPlayground(t *testing.T) {
	chromium := start(t)
	program, dir := filepath.Join(t.TempDir(), "playground"), filepath.Join(t.TempDir(), "site")
	output(t, "", "go", "run", "-exec", "cp", "github.com/tenure-ssa/tenure/cmd/playground", program)
	output(t, "", program, "build", dir)
	address := serve(t, dir)

	t.Run("runs examples as the Go engine does", func(t *testing.T) {
		b := openPlayground(t, chromium, address, "")
		examples := eval[[]example](b, `playground.examples`)
		require.Greater(t, len(examples), 60)
		for _, e := range examples {
			request, err := json.Marshal(map[string]any{"steps": e.Steps})
			require.NoError(t, err)
			want := output(t, string(request), program, "run")
			require.Equal(t, want, eval[string](b, `playground.run(`+quoted(string(request))+`)`), e.Name)
			if strings.HasPrefix(e.Name, "5.1") { // all examples are shown in the same way
				checkShown(t, b, &e, want)
			}
		}
	})

	t.Run("shows the example of a rule", func(t *testing.T) {
		b := openPlayground(t, chromium, address, "")
		for _, row := range []struct{ fragment, example, why string }{
			{"#5.1", "5.1-all-conflicts-are-reported",
				"the first that is named after the rule, though one before it lists the rule too"},
			{"#13.4", "5.1-way-out-force", "none is named after the rule: the first that lists it"},
			{"#14.1", conflicting, "a rule without an example"},
		} {
			b.visit(row.fragment)
			require.Equal(t, row.example, eval[string](b, `document.querySelector("#example").value`), row.why)
		}
	})

	t.Run("offers the ways out of conflicts", func(t *testing.T) {
		link := "#s=" + linkOf(t, chromium, address, twoManagers)
		for _, row := range []struct {
			way    string
			owners []string
			why    string
		}{
			{"force", []string{"bob"}, "it takes the field"},
			{"give-up", []string{"alice"}, "it leaves the field"},
			{"share", []string{"alice", "bob"}, "both own the field"},
		} {
			t.Run(row.way, func(t *testing.T) {
				b := openPlayground(t, chromium, address, link)
				require.Equal(t, []string{"changed", "conflict"}, b.texts("#strip .badge"))
				b.script(`playground.busy = true; document.querySelector('.way[data-way="` + row.way + `"]').click()`)
				b.settle()
				require.Equal(t, []string{"changed", "conflict", "changed"}, b.texts("#strip .badge"))
				require.Len(t, b.texts("#steps > li"), 3)
				require.Equal(t, row.owners, eval[[]string](b,
					`[...document.querySelector('.line[title=".spec.replicas"]').querySelectorAll(".chip")].map(c => c.textContent)`),
					row.why)
			})
		}
	})

	t.Run("keeps everything in a link", func(t *testing.T) {
		b := openPlayground(t, chromium, address, "#example="+conflicting)
		b.script(`(() => {
			const body = document.querySelector("#steps textarea");
			body.value += "# €\n";
			body.dispatchEvent(new Event("input"));
			document.querySelector("#type").value = "deduced";
			document.querySelector("#type").dispatchEvent(new Event("change"));
		})()`)
		b.settle()
		link := eval[string](
			b,
			`new Promise(done => { const look = () => location.hash.startsWith("#s=") ? done(location.hash) : setTimeout(look, 10); look(); })`,
		)
		other := openPlayground(t, chromium, address, link)
		state := `[document.querySelector("#type").value, ...[...document.querySelectorAll("#steps textarea")].map(t => t.value)]`
		require.Equal(t, eval[[]string](b, state), eval[[]string](other, state))
		require.Contains(t, eval[[]string](other, state)[1], "# €\n")
		require.Equal(t, b.texts("#strip .badge"), other.texts("#strip .badge"))
	})

	t.Run("works by keyboard", func(t *testing.T) {
		b := openPlayground(t, chromium, address, "#example="+conflicting)
		steps := len(b.texts("#steps > li"))
		b.script(`document.querySelector('#strip [aria-selected="true"]').focus()`)
		last := eval[string](b, `document.activeElement.id`)
		b.do(chromedp.KeyEvent(kb.ArrowLeft))
		require.NotEqual(t, last, eval[string](b, `document.activeElement.id`))
		require.Equal(t, "true", eval[string](b, `document.activeElement.getAttribute("aria-selected")`))
		b.do(chromedp.KeyEvent(kb.ArrowRight))
		require.Equal(t, last, eval[string](b, `document.activeElement.id`))
		b.script(`document.querySelector("#add").focus()`)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.settle()
		require.Len(t, b.texts("#steps > li"), steps+1)
		require.Equal(
			t,
			"manager",
			eval[string](b, `document.activeElement.dataset.field`),
			"the new write is to be filled in",
		)
		require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("button, select, input, textarea")]
			.filter(e => !(e.textContent.trim() && e.tagName === "BUTTON") && !e.labels?.length && !e.ariaLabel).map(e => e.outerHTML)`),
			"every control has a name")
	})

	t.Run("shows hostile text as text", func(t *testing.T) {
		const evil = `</script><img src=x onerror=alert(1)><script>document.title="pwned"</script>`
		state := `{"type": {"word": "deduced"}, "live": "", "steps": [
			{"word": "apply", "manager": ` + quoted(evil) + `, "body": ` + quoted(evil) + `},
			{"word": "apply", "manager": "<b>", "body": ` + quoted("apiVersion: v1\nkind: Widget\nmetadata: {name: "+quoted(evil)+"}\nspec: {"+quoted(evil)+": "+quoted(evil)+"}\n") + `},
			{"word": ` + quoted(evil) + `}, 1, null]}`
		b := openPlayground(t, chromium, address, "#s="+linkOf(t, chromium, address, state))
		require.Equal(t, []string{"done", "error", "changed"}, b.texts("#strip .badge"))
		require.Equal(t, "Tenure playground", eval[string](b, `document.title`))
		require.Zero(t, eval[int](b, `document.images.length`))
		require.Contains(t, strings.Join(b.texts(".line code"), "\n"), evil)
		require.Contains(t, b.texts(".line .chip"), "<b>")
	})

	t.Run("rejects a link that can't be read", func(t *testing.T) {
		b := openPlayground(t, chromium, address, "")
		for _, link := range []string{"#s=AAAA", "#s=!", "#s="} {
			b.script(`playground.busy = true; location.hash = ` + quoted(link))
			require.Contains(t, eval[string](b, `new Promise(done => {
				const look = () => playground.busy ? setTimeout(look, 10) : done(playground.error);
				look();
			})`), "The link can't be read", link)
		}
	})
}

// twoManagers is a state with a conflict between two managers.
const twoManagers = `{"type": {"word": "builtin"}, "live": "", "steps": [
	{"word": "apply", "manager": "alice", "body": "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3}\n"},
	{"word": "apply", "manager": "bob", "body": "spec: {replicas: 5, paused: true}\n"}]}`

// checkShown checks that the page shows an example as in the engine's response.
func checkShown(t *testing.T, b *tab, e *example, answer string) {
	t.Helper()
	var want response
	require.NoError(t, json.Unmarshal([]byte(answer), &want))
	b.visit("#example=" + e.Name)
	var names, outcomes []string
	for i, step := range want.Steps {
		names, outcomes = append(names, sortedWords(e.Steps[i].Name)), append(outcomes, step.Outcome)
	}
	var shown []string
	for _, name := range b.texts("#strip b") {
		shown = append(shown, sortedWords(name))
	}
	require.Equal(t, names, shown, "%s: the page has the same steps", e.Name)
	require.Equal(t, outcomes, b.texts("#strip .badge"), e.Name)
	for i, step := range want.Steps {
		b.script(`document.querySelectorAll("#strip button")[` + strconv.Itoa(i) + `].click()`)
		lines := []string{}
		for _, line := range step.Object {
			lines = append(lines, line.Text)
		}
		require.Equal(t, lines, b.texts(".line code"), "%s, step %d", e.Name, i+1)
		fields := []string{}
		for _, c := range step.Conflicts {
			fields = append(fields, c.Field)
		}
		if len(fields) > 0 {
			require.Equal(
				t,
				fields,
				b.texts("#result table:first-of-type tbody td:first-child > code"),
				"%s, step %d",
				e.Name,
				i+1,
			)
		}
	}
}

// sortedWords sorts the words of a step's name, because the order of words such as force has no meaning.
func sortedWords(name string) string {
	words := strings.Fields(name)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// linkOf returns the fragment that a page makes for a state.
func linkOf(t *testing.T, chromium context.Context, address, state string) string {
	t.Helper()
	b := openPlayground(t, chromium, address, "")
	return eval[string](b, `import("./state.js").then(s => s.encode(`+state+`))`)
}

// output runs a program, and returns what it prints.
func output(t *testing.T, stdin, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	command.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	require.NoError(t, err, errs.String())
	return strings.TrimSuffix(string(out), "\n")
}

// openPlayground opens the page with a fragment, and waits until it shows results.
func openPlayground(t *testing.T, browser context.Context, address, fragment string) *tab {
	t.Helper()
	b := openPage(t, browser, address, fragment)
	b.settle()
	return b
}

// settle waits until the engine has run the page's content.
func (b *tab) settle() {
	b.t.Helper()
	require.Equal(b.t, "", eval[string](b, `new Promise(done => {
		const look = () => globalThis.playground && !playground.busy ? done(playground.error) : setTimeout(look, 10);
		look();
	})`))
}

// visit changes the fragment without loading the page again.
func (b *tab) visit(fragment string) {
	b.t.Helper()
	b.script(`playground.busy = true; location.hash = ` + quoted(fragment))
	b.settle()
}
