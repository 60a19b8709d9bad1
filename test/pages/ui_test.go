package pages

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// board is a server of the command tenure, and a page of tenure ui that shows it.
type board struct {
	t       testing.TB
	dir     string
	program string
	config  string // the kubeconfig of the server
	client  *dynamic.DynamicClient
	address string
}

// newBoard starts an empty server.
func newBoard(t testing.TB) *board {
	dir := t.TempDir()
	b := &board{t: t, dir: dir, program: filepath.Join(dir, "tenure")}
	build := exec.Command("go", "run", "-exec", "cp", "github.com/tenure-ssa/tenure/cmd/tenure", b.program)
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	b.config = filepath.Join(dir, "kubeconfig")
	b.start(regexp.MustCompile(`^kubeconfig: `), "serve", "--store", "x.db", "--kubeconfig", b.config)
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: b.config}, &clientcmd.ConfigOverrides{CurrentContext: "tenure"})
	config, err := loader.ClientConfig()
	require.NoError(t, err)
	config.QPS = -1
	b.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	return b
}

// start runs the program until the test ends, and returns the first output line that matches.
func (b *board) start(line *regexp.Regexp, args ...string) string {
	command := exec.Command(b.program, args...)
	command.Dir = b.dir
	errs := &strings.Builder{}
	command.Stderr = errs
	out, err := command.StdoutPipe()
	require.NoError(b.t, err)
	require.NoError(b.t, command.Start())
	var reading sync.WaitGroup
	b.t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		reading.Wait()
		require.NoError(b.t, command.Wait(), errs.String())
	})
	found := make(chan string, 1)
	reading.Go(func() {
		defer close(found)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line.MatchString(lines.Text()) {
				found <- lines.Text()
				line = regexp.MustCompile(`$^never`)
			}
		}
	})
	text, ok := <-found
	require.True(b.t, ok, errs.String())
	return text
}

// serve starts tenure ui.
func (b *board) serve(args ...string) {
	b.t.Setenv("KUBECONFIG", b.config) // a flag would also be in the commands that the page shows
	args = append([]string{"ui", "--no-browser", "--context", "tenure"}, args...)
	b.address = b.start(regexp.MustCompile(`^http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/$`), args...)
}

// apply applies an object as a manager, with force.
func (b *board) apply(resource schema.GroupVersionResource, manager, text string) {
	b.t.Helper()
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(b.t, err)
	require.NoError(b.t, json.Unmarshal(data, &object))
	force := true
	_, err = b.client.Resource(resource).Namespace(object.Metadata.Namespace).Patch(b.t.Context(), object.Metadata.Name,
		types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: &force})
	require.NoError(b.t, err)
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secretKinds = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// shopped is the path of the manifest of the Deployment shop/web.
const shopped, webKey = "../../doc/examples/web.yaml", "#Deployment.apps%2Fshop%2Fweb"

// patch updates the Deployment shop/web, or a subresource of it, as a manager.
func (b *board) patch(manager, patch string, subresource ...string) {
	b.t.Helper()
	_, err := b.client.Resource(deployments).Namespace("shop").Patch(b.t.Context(), "web", types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: manager}, subresource...)
	require.NoError(b.t, err)
}

// scale sets the replicas of shop/web through the scale subresource, like kubectl scale and autoscalers.
func (b *board) scale(manager string, replicas int) {
	b.t.Helper()
	_, err := b.client.Resource(deployments).Namespace("shop").Patch(b.t.Context(), "web", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{FieldManager: manager}, "scale")
	require.NoError(b.t, err)
}

// seed creates objects in two namespaces.
func (b *board) seed(manifest string) {
	for _, name := range []string{"shop", "payments"} {
		b.apply(namespaces, "flux", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	for _, in := range [][]string{{"shop", "flux", "web", "cart", "search", "checkout"}, {"payments", "argocd", "api", "ledger", "fraud"}} {
		for _, name := range in[2:] {
			text := strings.NewReplacer("web", name, "shop", in[0], "4.3.0", "4.2.0", "512Mi", "256Mi").Replace(manifest)
			b.apply(deployments, in[1], text)
			b.apply(configMaps, in[1], "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"-settings, namespace: "+in[0]+
				"}, data: {log: info, region: eu-west-1}}")
			if in[0] == "shop" {
				b.apply(deployments, "mesh-injector", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: "+name+
					", namespace: shop}, spec: {selector: {matchLabels: {app: "+name+"}}, template: {spec: {containers: "+
					"[{name: mesh-proxy, image: 'mesh.example/proxy:1.22'}]}}}}")
			}
		}
	}
	b.apply(configMaps, "<img src=x onerror=alert(1)>", "{apiVersion: v1, kind: ConfigMap, metadata: {name: evil, namespace: default}, "+
		`data: {a: "</script><script>document.title='pwned'</script>"}}`)
	release := `{"namespace": "shop", "manifest": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}\n---\n` +
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart}}"}`
	b.apply(secretKinds, "Helm", "{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.store.v1, namespace: shop, "+
		"labels: {owner: helm, name: store, status: deployed, version: '1'}}, stringData: {release: '"+
		base64.StdEncoding.EncodeToString([]byte(release))+"'}}")
	b.apply(secretKinds, "flux", "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop}, stringData: {password: m4rk3r}}")
}

// await waits until a JavaScript condition is true.
func (b *tab) await(condition string) {
	b.t.Helper()
	b.script(`new Promise(done => { const look = () => (` + condition + `) ? done() : setTimeout(look, 20); look(); })`)
}

const replicas = `document.querySelector('.line[title=".spec.replicas"]')`

func TestUI(t *testing.T) {
	chromium, b := start(t), newBoard(t)
	manifest, err := os.ReadFile(shopped)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "web.yaml"), manifest, 0o600))
	b.seed(string(manifest))
	b.serve("-A", "-f", "web.yaml", "--field-manager", "flux")

	t.Run("follows a Deployment that kubectl scales", func(t *testing.T) {
		p := openPage(t, chromium, b.address, webKey)
		p.await(replicas)
		require.Equal(t, []string{"flux"}, p.texts(`.line[title=".spec.replicas"] .chip`))
		require.Empty(t, p.texts(".was"))
		b.scale("kubectl", 5)
		p.await(replicas + `.textContent.includes("replicas: 5")`)
		require.Equal(t, []string{"kubectl"}, p.texts(`.line[title=".spec.replicas"] .chip`))
		require.Regexp(t, `^3 kubectl/scale, \d+s ago$`, p.texts(`.line[title=".spec.replicas"] .was`)[0])
		require.Contains(t, p.texts("#version")[0], "Now version 2 of 2")

		p.script(`(() => { const s = document.getElementById("slider"); s.value = 0; s.oninput(); })()`)
		p.await(replicas + `.textContent.includes("replicas: 3")`)
		require.Contains(t, p.texts("#version")[0], "Then version 1 of 2")
		b.scale("hpa", 6)
		p.await(`document.getElementById("slider").max === "2"`)
		require.Contains(t, eval[string](p, replicas+`.textContent`), "replicas: 3", "an old version stays on the screen")
		b.patch("kubectl-edit", `{"spec":{"template":{"spec":{"containers":[{"name":"web","resources":{"limits":{"memory":"384Mi"}}}]}}}}`)
	})

	t.Run("shows conflicts with commands, and what was planned", func(t *testing.T) {
		p := openPage(t, chromium, b.address, webKey)
		p.await(`document.querySelectorAll("#findings h3").length === 2`)
		require.Equal(t, []string{`conflict 2 conflicts with "flux"`, "drift 1 field that no owner may own"},
			p.texts("#findings h3"))
		require.Equal(t, "tenure conflicts --field-manager flux --filename web.yaml --resolve force --context tenure",
			p.texts("#findings .command code")[0])
		p.await(`document.getElementById("facets").textContent.includes("conflicts 1")`) // all objects are planned later
		require.Contains(t, p.texts("#findings")[0], `policy permit tenure.yaml --manager mesh-injector --operation Apply `+
			`--kind Deployment.apps --field '.spec.template.spec.containers[name="mesh-proxy"]'`)
		require.Equal(t, 2, eval[int](p, `document.querySelectorAll(".line.conflict").length`))
		p.script(`document.querySelector("[data-view=plan]").click()`)
		p.await(`[...document.querySelectorAll("h3")].some(e => e.textContent === "Ways out")`)
		require.Equal(t, []string{"deployment.apps/web in shop conflict"}, p.texts("#title"))
	})

	t.Run("filters by words, manager and findings", func(t *testing.T) {
		p := openPage(t, chromium, b.address, "")
		p.await(`document.querySelector("#groups summary")`)
		find := func(words string) []string {
			p.script(`(() => { const f = document.getElementById("find"); f.value = ` + quoted(words) + `; f.oninput(); })()`)
			return p.texts("#groups .row .name")
		}
		require.Equal(t, []string{"web"}, find("deployment shop web"))
		require.Equal(t, []string{"evil"}, find("onerror"), "a manager")
		require.Equal(t, []string{"cart", "web"}, find("helm/shop/store"), "an application")
		require.Empty(t, find("nothing like that"))
		find("")
		p.script(`document.querySelector("[data-facet=conflict]").click()`)
		require.Equal(t, []string{"web"}, p.texts("#groups .row .name"))
		// KeyEvent would also send the letter to the element that has the focus by then.
		p.script(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}))`)
		require.Equal(t, "find", eval[string](p, `document.activeElement.id`))
		p.script(`document.querySelector("#groups summary").focus()`)
		p.script(`for (const key of ["ArrowDown", "ArrowDown"]) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}))`)
		require.Contains(t, eval[string](p, `document.activeElement.textContent`), "web")
		p.script(`document.activeElement.click()`)
		p.await(replicas)
	})

	t.Run("shows hostile text as text, and no value of a Secret", func(t *testing.T) {
		p := openPage(t, chromium, b.address, "#ConfigMap%2Fdefault%2Fevil")
		p.await(`document.querySelector(".line")`)
		require.Contains(t, strings.Join(p.texts(".chip"), "\n"), "<img src=x onerror=alert(1)>")
		require.NotEqual(t, "pwned", eval[string](p, `document.title`))
		require.Zero(t, eval[int](p, `document.images.length`))
		p = openPage(t, chromium, b.address, "#Secret%2Fshop%2Fdb")
		p.await(`document.querySelector(".line")`)
		require.Contains(t, eval[string](p, `document.body.textContent`), "password:")
		require.NotRegexp(t, "m4rk3r|bTRyazNy", eval[string](p, `document.documentElement.outerHTML`))
	})

	t.Run("can't be read by a page of another origin", func(t *testing.T) {
		dir := t.TempDir()
		script := `Promise.all(["", "object?key=x", "events", "ui.js"].map(path => fetch("` + b.address + `" + path)
			.then(r => r.status, () => "refused"))).then(all => { document.title = all.join() })`
		require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte("<script>"+script+"</script>"), 0o600))
		ctx, cancel := chromedp.NewContext(chromium)
		t.Cleanup(cancel)
		other := &tab{t: t, ctx: ctx}
		other.do(chromedp.Navigate(serve(t, dir)))
		other.await(`document.title !== ""`)
		require.Equal(t, "refused,refused,refused,refused", eval[string](other, `document.title`))
	})

	t.Run("is README's picture", func(t *testing.T) {
		source := b.source()
		if !*update {
			data, err := os.ReadFile(picture)
			require.NoError(t, err)
			require.True(t, bytes.Contains(data, []byte(source)), "doc/ui.png shows another page: run this test with -update")
			return
		}
		p := openPage(t, chromium, b.address, webKey)
		p.await(replicas + ` && document.querySelector("#findings .command")`)
		p.do(chromedp.EmulateViewport(1440, 860))
		p.script(`document.documentElement.dataset.theme = "light"; document.getElementById("list").scrollTop = 1e4`)
		b.scale("hpa", 7)
		p.await(replicas + `.textContent.includes("replicas: 7")`)
		time.Sleep(2 * time.Second) // waits until the highlight ends
		shot, err := chromedp.Call(p.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(picture, withText(shot.Data, source), 0o666))
	})

	t.Run("is dark and light, fits all widths, and is accessible", func(t *testing.T) {
		p := openPage(t, chromium, b.address, webKey)
		p.await(replicas + ` && document.querySelector("#findings .command")`)
		colours := map[string]bool{}
		for range 2 {
			p.script(`document.getElementById("theme").click()`)
			colours[eval[string](p, `getComputedStyle(document.body).backgroundColor`)] = true
		}
		require.Len(t, colours, 2)
		for _, width := range []int64{1920, 1280, 800, 390, 320} {
			p.do(chromedp.EmulateViewport(width, 800))
			for _, pane := range []string{"list", "object", "findings"} {
				p.script(`document.querySelector("#panes [data-pane=` + pane + `]").click()`)
				require.True(t, eval[bool](p, `document.documentElement.scrollWidth <= innerWidth`), "%d %s", width, pane)
				checkAccessible(t, p)
			}
		}
		p.do(chromedp.EmulateViewport(1280, 800))
		p.script(`document.getElementById("back").click()`)
		checkAccessible(t, p)
	})
}

// picture is the picture in README. It contains a checksum of its sources, because browsers do not render the same
// bytes.
const picture = "../../doc/ui.png"

// source returns a checksum of the page's files, for the picture.
func (b *board) source() string {
	sum := sha256.New()
	for _, name := range []string{"", "ui.css", "ui.js", "lines.js"} {
		response, err := http.Get(b.address + name)
		require.NoError(b.t, err)
		_, err = io.Copy(sum, response.Body)
		require.NoError(b.t, err)
		require.NoError(b.t, response.Body.Close())
	}
	return "Source\x00" + hex.EncodeToString(sum.Sum(nil))
}

// withText returns a PNG with a text chunk after its header (PNG specification, 11.3.4.3).
func withText(png []byte, text string) []byte {
	const header = 8 + 4 + 4 + 13 + 4
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	chunk = append(chunk, "tEXt"+text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return append(append(bytes.Clone(png[:header]), chunk...), png[header:]...)
}

// checkAccessible checks the accessibility tree: interactive elements have a name and are not nested, there is only one
// main part, and heading levels have no gaps.
func checkAccessible(t *testing.T, p *tab) {
	t.Helper()
	tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	text := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		return strings.Trim(string(v.Value), `"`)
	}
	used := []string{"button", "textbox", "combobox", "slider", "link", "DisclosureTriangle", "option"}
	nodes, roles, level := map[accessibility.NodeID]*accessibility.Node{}, map[string]int{}, 0
	for _, node := range tree.Nodes {
		nodes[node.NodeID] = node
	}
	for _, node := range tree.Nodes {
		role := text(node.Role)
		if node.Ignored {
			continue
		}
		roles[role]++
		if slices.Contains(used, role) || slices.Contains([]string{"navigation", "complementary", "heading"}, role) {
			require.NotEmpty(t, strings.TrimSpace(text(node.Name)), "a %s without a name", role)
		}
		for up := nodes[node.ParentID]; slices.Contains(used, role) && role != "option" && up != nil; up = nodes[up.ParentID] {
			require.NotContains(t, used, text(up.Role), "a %s in it: %s", role, text(node.Name))
		}
		for _, property := range node.Properties {
			if role == "heading" && property.Name == "level" {
				next := int(text(property.Value)[0] - '0')
				require.LessOrEqual(t, next, level+1, "a level of headings is left out before %s", text(node.Name))
				level = next
			}
		}
	}
	require.LessOrEqual(t, roles["main"], 1)
	require.Positive(t, roles["main"]+roles["navigation"]+roles["complementary"], "some part is shown")
	require.Positive(t, roles["status"])
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("[id]")].map(e => e.id)
		.filter((id, i, all) => all.indexOf(id) !== i)`), "every id is there once")
}

// BenchmarkUI measures the page with 5,000 objects in Chromium: how long a filter takes until the list is drawn, and
// how long a selection takes until the object is drawn.
//
//	go test ./test/pages -run '^$' -bench UI -benchtime 20x
func BenchmarkUI(b *testing.B) {
	if _, err := exec.LookPath("chromium"); err != nil {
		b.Skip("no chromium in PATH")
	}
	board := newBoard(b)
	manifest, err := os.ReadFile(shopped)
	require.NoError(b, err)
	text := strings.Replace(string(manifest), "namespace: shop", "namespace: default", 1)
	for i := range 5000 {
		board.apply(deployments, []string{"flux", "argocd", "helm"}[i%3], strings.ReplaceAll(text, "web", fmt.Sprintf("web-%04d", i)))
	}
	board.serve("deployments", "-n", "default")
	p := &tab{ctx: start(b)}
	run := func(script string) float64 {
		out, err := chromedp.Run(p.ctx, chromedp.Evaluate[float64](script, chromedp.EvalAwaitPromise))
		require.NoError(b, err)
		return out
	}
	require.NoError(b, chromedp.Do(p.ctx, chromedp.Navigate(board.address)))
	run(`new Promise(done => { const look = () => document.getElementById("state").textContent.startsWith("5,000") ? done(0) : setTimeout(look, 20); look(); })`)
	// Rows are drawn once their groups are open.
	run(`(() => { for (let closed; closed = document.querySelector("#groups details:not([open]) summary");) closed.click(); return 0; })()`)
	require.Equal(b, 200.0, run(`document.querySelectorAll("#groups .row").length`))
	drawn := `await new Promise(done => requestAnimationFrame(() => setTimeout(done)))`
	for _, row := range []struct{ name, act string }{
		{"filter", `f.value = "web-" + String(%d %% 100).padStart(2, "0"); f.oninput(); ` + drawn},
		{"all", `f.value = ""; f.oninput(); ` + drawn},
		{"select", `const row = document.querySelectorAll("#groups .row")[%d %% 200], name = row.querySelector(".name").textContent;
			row.click(); while (!document.getElementById("title").textContent.endsWith(name)) await new Promise(r => setTimeout(r, 1)); ` + drawn},
	} {
		b.Run(row.name, func(b *testing.B) {
			total := 0.0
			for i := range b.N {
				act := row.act
				if strings.Contains(act, "%d") {
					act = fmt.Sprintf(act, i)
				}
				total += run(`(async () => { const f = document.getElementById("find"), start = performance.now(); ` + act + `; return performance.now() - start; })()`)
			}
			b.ReportMetric(total/float64(b.N), "ms/op")
		})
	}
}
