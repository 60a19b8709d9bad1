package tenure_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// kubernetesModule matches requirements of Kubernetes and of the modules that are released with it. The others of
// k8s.io, such as klog, have versions of their own.
var kubernetesModule = regexp.MustCompile(
	`(?m)^(?:require)?\s+k8s\.io/([a-z-]+) (v[01]\.[0-9]{2}\.[0-9]+)( // indirect)?$`,
)

// oldest are the modules that controllers and tests import. A module asks for the least that it works with: it must not
// raise Kubernetes in the modules of its users.
var oldest = map[string]bool{
	"go.mod": true, "strategy/go.mod": true, "controllerruntime/go.mod": true, "internal/planning/go.mod": true,
	"helm/go.mod": true,
}

const oldestVersion = "v0.35.0"

// TestKubernetesVersions: all modules but the oldest require one version of Kubernetes, the version of the embedded
// documents. Otherwise a field of a Go type is not in the schemas, or the reverse, and a server treats a POST and an
// apply of it differently.
func TestKubernetesVersions(t *testing.T) {
	staging := "v0" + strings.TrimPrefix(openapi.KubernetesVersion, "v1")
	files, err := filepath.Glob("*/go.mod")
	require.NoError(t, err)
	for _, pattern := range []string{"go.mod", "*/*/go.mod"} {
		more, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, more...)
	}
	total := 0
	for _, file := range files {
		if file == "internal/tools/go.mod" {
			continue // outside of the workspace; it builds tools of others
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range kubernetesModule.FindAllStringSubmatch(string(text), -1) {
			want := staging
			switch {
			case oldest[file]:
				want = oldestVersion
			case found[1] == "kubernetes":
				want = openapi.KubernetesVersion
			}
			require.Equal(t, want, found[2], "%s: k8s.io/%s", file, found[1])
			total++
		}
	}
	require.Greater(t, total, 40, "the expression finds no requirements any more")
}

// TestDocumentsOfOneKubernetesVersion: every embedded document says of which minor version it is.
func TestDocumentsOfOneKubernetesVersion(t *testing.T) {
	minor := regexp.MustCompile(`1\.[0-9]+`).FindString(openapi.KubernetesVersion)
	versions := map[string]bool{}
	for _, gvk := range openapi.Builtin().Kinds() {
		data, ok := openapi.BuiltinDocument(gvk.GroupVersion())
		if !ok {
			continue // a kind of a subresource, in the document of the resource
		}
		var document struct {
			Info struct{ Version string }
		}
		require.NoError(t, json.Unmarshal(data, &document))
		require.Equal(t, minor, document.Info.Version, gvk)
		versions[gvk.GroupVersion().String()] = true
	}
	require.Len(t, versions, 23)
}
