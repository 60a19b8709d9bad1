package gomod

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const edited = `{"Module":{"Path":"k8s.io/kubernetes"},"Go":"1.26.0","Godebug":[{"Key":"default","Value":"go1.26"}],
"Require":[{"Path":"example.com/a","Version":"v1.2.3"},{"Path":"k8s.io/api","Version":"v0.0.0"}],
"Replace":[{"Old":{"Path":"k8s.io/api"},"New":{"Path":"./staging/src/k8s.io/api"}}]}`

func TestFile(t *testing.T) {
	p, err := parse([]byte(edited), "v1.37.2", "v0.37.2")
	require.NoError(t, err)
	require.Equal(t, `module kubernetes.example/linked

go 1.26.0

godebug default=go1.26

require (
	example.com/tenure v0.0.0
	k8s.io/kubernetes v1.37.2
)

replace (
	example.com/a => example.com/a v1.2.3
	k8s.io/kubernetes => k8s.io/kubernetes v1.37.2
	example.com/tenure => /src/tenure
	k8s.io/api => /src/api
)
`, string(p.File(Main{
		Name: "kubernetes.example/linked", Require: map[string]string{"example.com/tenure": "v0.0.0"},
		Folders: map[string]string{"example.com/tenure": "/src/tenure", "k8s.io/api": "/src/api"},
	})))
	require.Contains(t, string(p.File(Main{Name: "x"})), "\tk8s.io/api => k8s.io/api v0.37.2\n", "the published module")
}

func TestStaged(t *testing.T) {
	got, err := Staged("v1.35.4")
	require.NoError(t, err)
	require.Equal(t, "v0.35.4", got)
	for _, version := range []string{"1.35.4", "v2.0.0", "v1.", ""} {
		_, err := Staged(version)
		require.ErrorContains(t, err, "expected v1.MINOR.PATCH")
	}
}

// TestUnexpected: a go.mod with an unexpected form causes an error, not a wrong build.
func TestUnexpected(t *testing.T) {
	_, err := parse([]byte(`{"Go":"1.26.0"}`), "v1.37.2", "v0.37.2")
	require.ErrorContains(t, err, "replaced by folders")
	_, err = parse(
		[]byte(`{"Replace":[{"Old":{"Path":"a"},"New":{"Path":"b","Version":"v1.0.0"}}]}`),
		"v1.37.2",
		"v0.37.2",
	)
	require.ErrorContains(t, err, "expected replacements by folders only")
}
