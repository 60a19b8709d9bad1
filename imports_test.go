package tenure_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/tenure-ssa/tenure/"

// layer says which packages of its module a package may import; one that is not
// listed may import none, and nothing that is not a test may import it.
// Imports go one way: every package is listed below those that it imports.
type layer struct {
	name    string
	imports []string
}

// layers are the layers of the root module.
var layers = []layer{
	{"doc", nil}, // for the commands
	{"internal/printable", nil},
	{"internal/secrets", nil},
	{"internal/txtar", nil},
	{"internal/folder", nil},       // for the commands
	{"internal/controlplane", nil}, // for hosts, and for tests of the command
	{"internal/limits", nil},
	{"internal/expansion", nil}, // for the commands and the API server
	{"internal/trees", []string{"internal/limits"}},
	{"internal/fieldsv1", nil},
	{"internal/plain", []string{"internal/limits"}},
	{"internal/hooks", nil},
	{"internal/lastapplied", []string{"internal/limits"}},
	{"typed/fieldpath", []string{"internal/hooks", "internal/limits", "internal/plain", "internal/trees"}},
	{"internal/fieldsets", []string{"internal/hooks", "internal/limits", "internal/plain", "typed/fieldpath"}},
	{"typed", []string{"internal/fieldsv1", "internal/hooks", "internal/limits", "internal/plain", "typed/fieldpath",
		"internal/fieldsets", "internal/trees"}},
	{"internal/values", []string{"internal/hooks", "typed/fieldpath", "typed"}},
	{"typed/openapi", []string{"typed", "internal/expansion", "internal/trees"}},
	{"internal/gostruct", []string{"internal/limits", "internal/plain", "typed/fieldpath", "internal/fieldsets", "typed"}},
	{"managedfields", []string{"internal/fieldsv1", "internal/hooks", "internal/limits", "typed/fieldpath",
		"internal/fieldsets", "typed", "internal/gostruct", "internal/trees"}},
	{"internal/scale", []string{"typed/fieldpath", "managedfields"}},
	{"conflicts", []string{"typed/fieldpath", "managedfields"}},
	{"conflicts/policy", []string{"internal/expansion", "internal/secrets", "typed/fieldpath", "conflicts"}},
	{"ownership/internal/items", []string{"typed/fieldpath", "typed", "internal/fieldsets"}},
	{"ownership/internal/components", nil},
	{"ownership/fights", []string{"internal/secrets", "typed/fieldpath", "typed", "managedfields",
		"ownership/internal/items", "ownership/internal/components"}},
	{
		"ownership/blame",
		[]string{"internal/limits", "internal/printable", "typed/fieldpath", "internal/fieldsets", "typed",
			"managedfields", "ownership/internal/items"},
	},
	{
		"fieldmanager",
		[]string{"internal/hooks", "internal/lastapplied", "internal/limits", "typed/fieldpath", "internal/fieldsets",
			"typed", "internal/values", "managedfields", "conflicts", "internal/gostruct", "internal/trees"},
	},
	{"internal/resetfields", []string{"typed/fieldpath"}},
	{"fieldmanager/plans", []string{"typed/fieldpath", "internal/resetfields", "internal/fieldsets", "typed",
		"internal/values", "managedfields", "conflicts", "fieldmanager", "internal/gostruct", "internal/trees"}},
	{"internal/writetest", []string{"typed", "typed/openapi", "fieldmanager"}}, // for tests
	{"internal/responses", []string{"typed", "managedfields", "conflicts", "fieldmanager", "fieldmanager/plans",
		"internal/gostruct"}},
	{"fieldmanager/applier", []string{"typed/fieldpath", "conflicts", "fieldmanager", "fieldmanager/plans",
		"internal/gostruct", "internal/responses", "internal/trees"}},
	{"ownership", []string{"typed/fieldpath", "internal/fieldsets", "typed", "managedfields", "conflicts", "fieldmanager",
		"fieldmanager/plans", "internal/gostruct", "internal/lastapplied"}},
	{"ownership/advice", []string{"internal/printable", "typed/fieldpath", "managedfields", "conflicts", "ownership"}},
	{"ownership/conflictreport", []string{"internal/printable", "typed/fieldpath", "conflicts", "fieldmanager",
		"fieldmanager/plans", "ownership/advice"}},
	{"compat/internal/updater", []string{"typed/fieldpath", "typed"}},
	{"compat/smdv4", []string{"internal/limits", "typed/fieldpath", "internal/fieldsets", "typed",
		"compat/internal/updater"}},
	{"compat/smdv6", []string{"internal/limits", "typed/fieldpath", "internal/fieldsets", "typed",
		"compat/internal/updater"}},
	{
		"compat/apimachinery",
		[]string{"typed/fieldpath", "typed", "typed/openapi", "managedfields", "conflicts", "fieldmanager",
			"internal/fieldsv1", "internal/lastapplied", "internal/hooks", "internal/scale", "internal/trees",
			"internal/gostruct", "compat/smdv6"},
	},
	{"compat/apimachinery/managedfieldstest", []string{"fieldmanager", "compat/apimachinery"}},
	{"internal/defaulted", []string{"internal/trees", "typed/fieldpath", "typed"}},
	{"upgrade", []string{"internal/defaulted", "internal/lastapplied", "internal/limits", "internal/gostruct",
		"internal/printable", "typed/fieldpath", "internal/fieldsets", "typed", "managedfields", "conflicts", "fieldmanager",
		"fieldmanager/plans", "ownership"}},
	{"compat/csaupgrade", []string{"internal/gostruct", "managedfields", "compat/smdv6", "upgrade"}},
	{"ownership/excess", []string{
		"internal/defaulted", "internal/fieldsets", "internal/gostruct", "internal/lastapplied", "internal/printable",
		"typed/fieldpath", "typed", "managedfields", "conflicts/policy", "ownership/internal/components",
		"ownership/internal/items", "internal/secrets",
	}},
	{
		"ownership/report",
		[]string{"internal/limits", "internal/printable", "internal/defaulted", "internal/fieldsets", "typed/fieldpath",
			"typed", "managedfields", "ownership/advice", "ownership/blame", "ownership/internal/components", "fieldmanager",
			"upgrade"},
	},
	{
		"fieldmanager/fieldmanagertest",
		[]string{"internal/expansion", "internal/printable", "internal/txtar", "typed/fieldpath", "typed", "typed/openapi",
			"managedfields", "internal/resetfields", "conflicts", "fieldmanager", "fieldmanager/plans",
			"ownership/conflictreport", "internal/scale", "internal/gostruct", "internal/trees"},
	},
	{"internal/oracle", []string{"typed/fieldpath", "typed", "typed/openapi", "managedfields", "conflicts", "fieldmanager",
		"fieldmanager/plans", "ownership", "internal/writetest"}},
}

// serverLayers are the layers of the module apiserver.
var serverLayers = []layer{
	{"admission", nil},
	{"storage", nil},
	{"storage/internal/kv", nil},
	{"storage/internal/objects", []string{"storage", "storage/internal/kv"}},
	{"storage/memory", []string{"storage", "storage/internal/kv", "storage/internal/objects"}},
	{"storage/bbolt", []string{"storage", "storage/internal/kv", "storage/internal/objects"}},
	{"storage/etcd", []string{"storage", "storage/internal/objects"}},
	{"storage/etcdtest", nil},
	{"internal/bootstrap", nil},
	{"internal/response", nil},
	{"internal/request", nil},
	{"internal/resources", nil},
	{"internal/discovery", []string{"internal/response", "internal/resources"}},
	{"internal/builtin", []string{"internal/resources"}},
	{"internal/builtin/gen", []string{"internal/resources"}},
	{"auth/rbac", []string{"storage", "internal/bootstrap", "internal/builtin"}},
	{"internal/webhooks", []string{"internal/resources"}},
	{"internal/plugins", []string{"admission", "internal/resources", "internal/webhooks"}},
	{"internal/openapi", []string{"internal/response", "internal/builtin", "internal/resources"}},
	{"internal/writes", []string{"internal/request", "internal/resources", "internal/response"}},
	{"internal/custom", []string{"admission", "internal/builtin", "internal/resources"}},
	{"internal/controllers", []string{"internal/custom", "internal/plugins", "internal/resources"}},
	{".", []string{
		"admission", "storage", "storage/memory", "internal/bootstrap", "internal/response", "internal/builtin",
		"internal/controllers", "internal/custom", "internal/discovery", "internal/openapi", "internal/plugins",
		"internal/request", "internal/resources", "internal/webhooks", "internal/writes",
	}},
	{"recorded", nil}, // for clients of any server
}

// planningLayers are the layers of the module internal/planning, which plans for the command and for other programs.
var planningLayers = []layer{
	{"document", nil},
	{"kinds", nil},
	{"cluster", nil},
	{"place", []string{"document", "kinds", "cluster"}},
	{".", []string{"document", "cluster", "place"}},
	{"releases", []string{".", "document", "cluster", "place"}},
	{"applications", []string{"document", "cluster", "place", "releases"}},
}

// commandLayers are the layers of the module cmd.
var commandLayers = []layer{
	{"internal/process", nil},
	{"internal/store", []string{"internal/process"}},
	{"internal/envtest", []string{"internal/process"}},
	{"internal/manifest", []string{"internal/process"}},
	{"internal/helm", nil},
	{"internal/lines", nil},
	{"internal/analyzers", nil},
	{"internal/page", []string{"internal/lines"}},
	{"internal/view", []string{"internal/process", "internal/manifest", "internal/lines", "internal/page"}},
	{"internal/ui", []string{"internal/lines", "internal/page", "internal/view"}},
	// playground is compiled to WebAssembly: what it imports makes the page load longer.
	{"internal/playground", []string{"internal/lines"}},
	{"internal/cli", []string{"internal/process", "internal/manifest", "internal/page", "internal/ui", "internal/view",
		"internal/helm"}},
	{"internal/server", []string{"internal/process", "internal/envtest", "internal/manifest", "internal/store"}},
	{"playground", []string{"internal/playground", "internal/page"}},
	{"action", nil}, // the GitHub Action: scripts and their tests
	{"internal/man", []string{"internal/process", "internal/cli", "internal/server"}},
	{"kubectl-tenure", []string{"internal/cli"}},
	{"tenure", []string{"internal/cli", "internal/server"}},
	{"tenure-vet", []string{"internal/analyzers"}},
	{"golangci", []string{"internal/analyzers"}},
	{"replay", []string{"internal/process", "internal/manifest"}},
	{"internal/conformance", []string{"internal/process", "internal/manifest", "internal/page"}},
	{"conformance", []string{"internal/conformance", "internal/process", "internal/manifest"}},
}

// modules says which packages of which modules are watched, and which modules below its own a
// module may import.
var modules = []struct {
	dir    string
	layers []layer
	below  []string // "" is the root module
}{
	{".", layers, nil},
	{"strategy", []layer{{".", nil}}, []string{""}},
	{"apiserver", serverLayers, []string{"", "strategy"}},
	{"internal/planning", planningLayers, []string{"", "strategy"}},
	{"helm", []layer{{".", nil}}, []string{"", "internal/planning"}},
	{"cmd", commandLayers, []string{"", "strategy", "internal/planning", "apiserver"}},
	{"controllerruntime", []layer{{".", nil}, {"fake", nil}, {"fake/kubernetesfake", []string{"fake"}}}, []string{"", "strategy"}},
}

// TestImportsGoOneWay checks the imports of the packages themselves; tests may
// import what they like.
func TestImportsGoOneWay(t *testing.T) {
	for _, m := range modules {
		t.Run(m.dir, func(t *testing.T) {
			allowed := map[string][]string{}
			for _, layer := range m.layers {
				for _, name := range layer.imports {
					require.Contains(t, allowed, name, "%s is above what it imports", layer.name)
				}
				allowed[layer.name] = layer.imports
			}
			for pkg, imports := range importsIn(t, m.dir) {
				require.Contains(t, allowed, pkg, "a package that has no place among the layers")
				for file, name := range imports {
					module, name := moduleOf(name)
					if module == m.dir {
						require.Contains(t, allowed[pkg], name, "%s imports what it must not know", file)
					} else {
						require.Contains(t, m.below, strings.TrimPrefix(module, "."), "%s imports module %s", file, module)
					}
				}
			}
		})
	}
}

// moduleOf returns the module that a package is in, as in modules, and its name in there.
func moduleOf(name string) (dir, pkg string) {
	// A module in the folder of another one comes before it.
	for _, dir := range []string{"strategy", "apiserver", "internal/planning", "helm", "cmd", "controllerruntime"} {
		if name == dir {
			return dir, "."
		}
		if pkg, ok := strings.CutPrefix(name, dir+"/"); ok {
			return dir, pkg
		}
	}
	return ".", name
}

// importsIn returns the imports of each package of a module, but for those of other projects,
// by the file and line that have them.
func importsIn(t *testing.T, dir string) map[string]map[string]string {
	out := map[string]map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != dir && err == nil || d.Name() == "testdata" {
				return filepath.SkipDir // another module
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		if out[pkg] == nil {
			out[pkg] = map[string]string{}
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(name+"/", module); ok {
				out[pkg][files.Position(spec.Pos()).String()] = strings.TrimSuffix(own, "/")
			}
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

// TestRootModuleIsLight checks the dependencies of a program that links Tenure. Heavy dependencies live in the modules
// beside this one.
func TestRootModuleIsLight(t *testing.T) {
	direct := []string{
		"github.com/pmezard/go-difflib", // differences of scenarios, in fieldmanagertest
		"github.com/stretchr/testify",   // tests
		"k8s.io/apimachinery",
		"k8s.io/klog/v2", // what apimachinery logs with, and hosts of it
		"k8s.io/kube-openapi",
		"sigs.k8s.io/structured-merge-diff/v4", // smdv4
		"sigs.k8s.io/structured-merge-diff/v6", // smdv6, as apimachinery; the oracle of tests
		"sigs.k8s.io/json",                     // what apimachinery decodes with: strict decoding with paths
		"sigs.k8s.io/yaml",
		"go.yaml.in/yaml/v2", // what sigs.k8s.io/yaml is made of
		"go.yaml.in/yaml/v3", // where values are in a text, which v2 does not tell
	}
	data, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.Contains(line, "// indirect") || !strings.Contains(fields[0], ".") {
			continue
		}
		require.True(t, slices.Contains(direct, fields[0]), "the root module must not depend on %s", fields[0])
	}
}

// TestViewPrints: what is printed comes from plans, and not from a cluster.
func TestViewPrints(t *testing.T) {
	names, err := filepath.Glob("cmd/internal/view/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			for _, forbidden := range []string{"k8s.io/client-go/", "/internal/planning/place", "/internal/planning/cluster"} {
				require.NotContains(t, spec.Path.Value, forbidden, name)
			}
		}
	}
}

// TestPlanningHasNoServer: programs that plan compile no API server, and no Helm but their own.
func TestPlanningHasNoServer(t *testing.T) {
	for _, name := range []string{"internal/planning/go.mod", "helm/go.mod"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, forbidden := range []string{"k8s.io/apiserver ", "k8s.io/kubernetes ", module + "apiserver ", "helm.sh/"} {
			require.NotContains(t, string(data), forbidden)
		}
	}
}

// TestOracleChoosesUpstreamOnce: the version of structured-merge-diff that the oracle runs is chosen in one file.
func TestOracleChoosesUpstreamOnce(t *testing.T) {
	files, err := filepath.Glob("internal/oracle/*.go")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "structured-merge-diff/v") {
			found = append(found, file)
		}
	}
	require.Equal(t, []string{filepath.FromSlash("internal/oracle/upstream.go")}, found)
}

// TestFieldsV1IsNotCopied: GetRawBytes copies the text of a FieldsV1 that is a handle (-tags fieldsv1string). What runs
// with each write reads it by internal/fieldsv1.
func TestFieldsV1IsNotCopied(t *testing.T) {
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "GetRawBytes()") {
			seen[filepath.ToSlash(path)] = true
		}
		return err
	}))
	require.Equal(t, map[string]bool{
		"internal/fieldsv1/bytes.go":             true, // without the tag it does not copy
		"benchmarks/internal/workloads/codec.go": true, // once, before the measurement
	}, seen)
}

// TestDesignNamesPackages: the table of packages has all of the root module.
func TestDesignNamesPackages(t *testing.T) {
	design, err := os.ReadFile("doc/design.md")
	require.NoError(t, err)
	for pkg := range importsIn(t, ".") {
		require.Contains(t, string(design), "`"+pkg+"`")
	}
}

// TestDifferencesAreNumberedOnce: tests and comments cite rows by their numbers.
func TestDifferencesAreNumberedOnce(t *testing.T) {
	text, err := os.ReadFile("doc/differences.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	numbers := regexp.MustCompile(`\| (?:([0-9]+) \||\*\*([0-9]+)\.\*\*)`)
	for _, row := range numbers.FindAllStringSubmatch(string(text), -1) {
		number := row[1] + row[2]
		require.False(t, seen[number], "row %s", number)
		seen[number] = true
	}
	require.NotEmpty(t, seen)
}
