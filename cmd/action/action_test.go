package action

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/cli"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// TestMain runs the test binary as tenure if a test starts it as tenure.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_TENURE") != "" {
		env := process.Env{Name: "tenure", Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		os.Exit(cli.Main(env, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// metadata has the parts of action.yml that the tests check.
type metadata struct {
	Name, Description string
	Inputs            map[string]struct {
		Description string
		Required    bool
		Default     *string
	}
	Runs struct {
		Using string
		Steps []struct {
			Name, Run, Shell, Uses string
			Env                    map[string]string
		}
	}
}

// Text from users and pull requests reaches scripts only in environment variables, never as code. Every input is
// used.
func TestMetadata(t *testing.T) {
	text, err := os.ReadFile("action.yml")
	require.NoError(t, err)
	var action metadata
	require.NoError(t, yaml.Unmarshal(text, &action))
	require.Equal(t, "composite", action.Runs.Using)
	for _, step := range action.Runs.Steps {
		require.NotContains(t, step.Run, "${{", step.Name)
		require.True(t, step.Shell == "bash" || step.Uses != "", step.Name)
		for _, m := range regexp.MustCompile(`GITHUB_ACTION_PATH/([a-z.]+)`).FindAllStringSubmatch(step.Run, -1) {
			out, err := exec.Command("bash", "-n", m[1]).CombinedOutput()
			require.NoError(t, err, "%s", out)
			script, err := os.ReadFile(m[1])
			require.NoError(t, err)
			for name := range step.Env {
				require.True(t, name == "GH_TOKEN" || strings.Contains(string(script), "$"+name) ||
					strings.Contains(string(script), "${"+name), "%s does not use %s", m[1], name)
			}
		}
	}
	for name, input := range action.Inputs {
		require.NotEmpty(t, input.Description, name)
		require.Equal(t, input.Required, input.Default == nil, name)
		require.Regexp(t, `inputs\.`+name+`\b`, string(text), name)
	}
	for _, m := range regexp.MustCompile(`inputs\.([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, action.Inputs, m[1])
	}
}

// runner is a folder like the one that a job of GitHub Actions gets.
type runner struct {
	t        *testing.T
	dir      string
	checkout string // folder in which scripts run
}

func (r *runner) in(folder string) *runner { return &runner{r.t, r.dir, folder} }

func newRunner(t *testing.T) *runner {
	for _, name := range []string{"bash", "awk", "iconv"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s in PATH", name)
		}
	}
	r := &runner{t: t, dir: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(r.dir, "bin"), 0o777))
	self, err := os.Executable()
	require.NoError(t, err)
	r.write("bin/tenure", fmt.Sprintf("#!/bin/sh\nRUN_TENURE=1 exec %q \"$@\"\n", self))
	return r
}

func (r *runner) write(name, text string) {
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o755))
}

func (r *runner) read(name string) string {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(r.t, err)
	return string(text)
}

// script runs a script of the action, and returns its output.
func (r *runner) script(name string, env ...string) (string, error) {
	path, err := filepath.Abs(name)
	require.NoError(r.t, err)
	command := exec.Command("bash", path)
	command.Dir = filepath.Join(r.dir, r.checkout)
	command.Env = append(os.Environ(), "PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"), "RUNNER_TEMP="+r.dir,
		"GITHUB_OUTPUT="+filepath.Join(r.dir, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(r.dir, "summary"),
		"GITHUB_PATH="+filepath.Join(r.dir, "path"), "GITHUB_REPOSITORY=you/shop")
	command.Env = append(command.Env, env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

const live = `apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: default
  managedFields:
  - {manager: alice, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}
  - {manager: edit, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:b": {}}}}
data: {a: x, b: y}
`

func manifest(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\ndata: " + data + "\n"
}

func TestPlan(t *testing.T) {
	for _, row := range []struct {
		name, manager, data, status, title string
		args                               string
	}{
		{"no-op", "alice", "{a: x}", "0", "Nothing would change", ""},
		{"change", "alice", "{a: z}", "1", "Objects or their owners would change", ""},
		{"drift", "alice", "{a: x}", "1",
			"Drift: nothing would change, but the cluster has fields that no manifest has", " --drift"},
		{"a change and drift", "alice", "{a: z}", "1",
			"Objects or their owners would change, and there is drift", " --drift"},
		{"conflict, and backticks that would end the block", "bob", "{a: '`````'}", "2", "Conflicts with other managers",
			""},
		{"error", "bob", "{a: {}}", "3", "The plan failed", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRunner(t)
			r.write("live.yaml", live)
			r.write("a b.yaml", manifest(row.data))
			r.write("c.yaml", manifest(row.data))
			out, err := r.script("plan.sh", "COMMAND=", "FILES=c.yaml", "FIELD_MANAGER="+row.manager,
				"ARGS=--live live.yaml"+row.args)
			require.NoError(t, err, out)
			require.Equal(t, "status="+row.status+"\n", r.read("output"), out)
			body := r.read("tenure-plan.md")
			require.Equal(t, body, r.read("summary"))
			lines := strings.Split(strings.TrimSpace(body), "\n")
			require.Equal(t, "### tenure plan: "+row.title, lines[0])
			fence := lines[2]
			require.Regexp(t, "^`{3,}$", fence)
			require.Equal(t, fence, lines[len(lines)-1])
			inside := strings.Join(lines[3:len(lines)-1], "\n")
			require.NotContains(t, inside, fence)
			require.Contains(t, inside, strings.TrimSpace(strings.Split(out, "\n")[1]), "after the line that stops commands")
		})
	}
	out, err := newRunner(t).script("plan.sh", "COMMAND=", "FILES= ", "FIELD_MANAGER=x", "ARGS=")
	require.Error(t, err)
	require.Contains(t, out, "::error::files")
}

// A pull request can't make the action show a file of the runner: every file that is read is inside the checkout,
// even after symbolic links are followed.
func TestLinks(t *testing.T) {
	r := newRunner(t)
	outside := t.TempDir()
	for name, text := range map[string]string{
		"config.json": `{"auths": {"ghcr.io": {"auth": "m4rk3r"}}}`, "object.yaml": manifest("{a: m4rk3r}"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(outside, name), []byte(text), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(r.dir, "repo", "deploy"), 0o777))
	r.write("repo/live.yaml", live)
	r.write("repo/c.yaml", manifest("{a: z}"))
	for link, target := range map[string]string{
		"deploy/extra.json": outside + "/config.json", "object.yaml": outside + "/object.yaml", "folder": outside,
		"twice.yaml": "object.yaml", "linked.yaml": "c.yaml",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(r.dir, "repo", link)))
	}
	for _, row := range []struct{ files, args, refused string }{
		{"deploy", "--live live.yaml", "deploy/extra.json"}, {"object.yaml", "--live live.yaml", "object.yaml"},
		{"*.yaml", "--live live.yaml", "object.yaml"}, {"twice.yaml", "--live live.yaml", "twice.yaml"},
		{"folder/", "--live live.yaml", "folder/config.json"}, {"folder", "--live live.yaml", "folder"},
		{outside, "--live live.yaml", outside + "/config.json"}, {".", "-R --live live.yaml", "deploy/extra.json"},
		{"c.yaml", "--live object.yaml", "object.yaml"}, {"c.yaml", "--live=folder", "folder"},
		{"c.yaml", "--live live.yaml --policy object.yaml", "object.yaml"},
		{"c.yaml", "--live live.yaml --schema deploy", "deploy/extra.json"},
		{"linked.yaml", "--live live.yaml", ""},
	} {
		for _, workspace := range []string{"", filepath.Join(r.dir, "repo")} {
			log, err := r.in("repo").script("plan.sh", "COMMAND=", "FILES="+row.files, "FIELD_MANAGER=bob", "ARGS="+row.args,
				"GITHUB_WORKSPACE="+workspace)
			require.NoError(t, err, log)
			body := r.read("tenure-plan.md")
			require.NotContains(t, log+body, "m4rk3r", row)
			if row.refused == "" {
				require.Contains(t, body, "Conflicts with other managers", row)
				continue
			}
			require.Contains(t, body, row.refused+": not read, because it leads out of ", row)
		}
	}
}

// commandsIn returns the lines of a log that the runner would take as commands.
func commandsIn(log string) (commands []string) {
	stopped := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		switch token, ok := strings.CutPrefix(line, "::stop-commands::"); {
		case stopped != "":
			if line == "::"+stopped+"::" {
				stopped = ""
			}
		case ok:
			stopped = token
		case strings.HasPrefix(line, "::") || strings.HasPrefix(line, "##["):
			commands = append(commands, line)
		}
	}
	return commands
}

// Output of any size, with any bytes, becomes a comment with valid text, and no line of it is a command for the
// runner.
func TestHostileOutput(t *testing.T) {
	hostile := "::set-output name=status::0\n::error::x\n##[error]x\n::stop-commands::x\n::x::\n" +
		"<!-- tenure plan: m -->\n" +
		"```\n~~~\n\x1b[2J\x1b]0;title\x07\n${{ secrets.X }}\n$(touch pwned)\n"
	for name, output := range map[string]string{
		"100 KB of two bytes":               strings.Repeat("é", 50_000),
		"100 KB of two bytes, one off":      "a" + strings.Repeat("é", 50_000),
		"100 KB of four bytes, one off":     "abc" + strings.Repeat("𝄞", 25_000),
		"no text":                           strings.Repeat("\xff\xfe\x80", 20_000),
		"the first bytes of a character":    "é\xf0\x9d",
		"what looks like commands":          hostile,
		"100 KB of what looks like command": strings.Repeat(hostile, 600),
		"backticks":                         strings.Repeat("`", 70_000),
		"nothing":                           "",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			r.write("text", output)
			r.write("print", "#!/bin/sh\ncat \""+filepath.Join(r.dir, "text")+"\"\nexit 1\n")
			log, err := r.script("plan.sh", "COMMAND="+filepath.Join(r.dir, "print"), "FILES=x", "FIELD_MANAGER=m", "ARGS=")
			require.NoError(t, err, log)
			require.Empty(t, commandsIn(log))
			require.Equal(t, "status=1\n", r.read("output"))
			body := r.read("tenure-plan.md")
			require.True(t, utf8.ValidString(body))
			require.Less(t, utf8.RuneCountInString(body), 65_000, "a comment has 65,536 characters")
			require.NoFileExists(t, filepath.Join(r.dir, "pwned"))
		})
	}
}

// For each manager, the first run creates a comment, and later runs change it.
func TestComment(t *testing.T) {
	r := newRunner(t)
	r.write("tenure-plan.md", "### plan\n")
	r.write(
		"bin/gh",
		"#!/bin/sh\necho \"$*\" >>\""+r.dir+"/calls\"\ncase \"$*\" in *--jq*) cat \""+r.dir+"/found\" ;; esac\n",
	)
	for _, found := range []string{"", "17\n18\n"} {
		r.write("found", found)
		out, err := r.script("comment.sh", "PULL_REQUEST=5", "FIELD_MANAGER=a -->b")
		require.NoError(t, err, out)
	}
	require.Equal(t, "<!-- tenure plan: a----b -->\n### plan\n", r.read("tenure-comment.md"))
	calls := strings.Split(strings.TrimSpace(r.read("calls")), "\n")
	require.Len(t, calls, 4)
	require.Contains(t, calls[0], "--raw-field owner=you --raw-field name=shop --field number=5 --jq")
	require.Contains(t, calls[0], "select(.viewerDidAuthor and", "comments of others are not changed")
	require.Contains(t, calls[1], "--method POST repos/you/shop/issues/5/comments --field body=@")
	require.Contains(t, calls[3], "--method PATCH repos/you/shop/issues/comments/17 --field body=@")
}

// Only a program with the right checksum gets into PATH.
func TestInstall(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl in PATH")
	}
	release := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(release, "v0.1.0"), 0o777))
	archive := filepath.Join(release, "v0.1.0", "tenure_v0.1.0_linux_amd64.tar.gz")
	require.NoError(t, os.WriteFile(filepath.Join(release, "tenure"), []byte("#!/bin/sh\n"), 0o755))
	out, err := exec.Command("tar", "-czf", archive, "-C", release, "tenure").CombinedOutput()
	require.NoError(t, err, "%s", out)
	sum, err := exec.Command("sh", "-c", "sha256sum <'"+archive+"' | cut -d ' ' -f 1").Output()
	require.NoError(t, err)
	server := httptest.NewServer(http.FileServer(http.Dir(release)))
	t.Cleanup(server.Close)
	require.NoError(t, os.WriteFile(filepath.Join(release, "v0.1.0", "checksums.txt.sigstore.json"), []byte("{}"), 0o600))
	for _, row := range []struct{ name, sum, version, os, want string }{
		{"right", string(sum), "v0.1.0", "Linux", ""},
		{"not signed", string(sum), "v0.1.0", "Linux", "checksums.txt is not signed by the release v0.1.0"},
		{"a command for a version", string(sum), "v0\n::error::x", "Linux", "version: expected"},
		{"another archive", strings.Repeat("0", 64) + "\n", "v0.1.0", "Linux", "has the checksum"},
		{"no version", string(sum), "", "Linux", "version: expected a release as in v0.1.0"},
		{"a path for a version", string(sum), "v0.1.0/../x", "Linux", "version: expected"},
		{"another system", string(sum), "v0.1.0", "Plan9", "there is no release for Plan9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			list := strings.TrimSpace(row.sum) + "  " + filepath.Base(archive) + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(release, "v0.1.0", "checksums.txt"), []byte(list), 0o600))
			r := newRunner(t)
			signed := 0
			if row.name == "not signed" {
				signed = 1
			}
			r.write("bin/cosign", fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s/cosign\nexit %d\n", r.dir, signed))
			out, err := r.script("install.sh", "VERSION="+row.version, "RUNNER_OS="+row.os, "RUNNER_ARCH=X64",
				"RELEASES="+server.URL)
			if row.want != "" {
				require.Error(t, err)
				require.Contains(t, out, row.want)
				require.NoFileExists(t, filepath.Join(r.dir, "path"))
				require.Len(t, commandsIn(out), 1)
				return
			}
			require.NoError(t, err, out)
			require.FileExists(t, filepath.Join(strings.TrimSpace(r.read("path")), "tenure"))
			require.Contains(t, r.read("cosign"), "/tenure-ssa/tenure/.github/workflows/release.yml@refs/tags/v0.1.0 ")
		})
	}
}
