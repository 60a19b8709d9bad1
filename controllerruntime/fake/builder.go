package fake

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// ClientBuilder is controller-runtime's type.
type ClientBuilder = fake.ClientBuilder

// NewClientBuilder returns the builder of controller-runtime's fake client, with all of its methods, for a client that
// merges custom resources by their definitions. paths are files and folders with CustomResourceDefinitions, like
// CRDDirectoryPaths of envtest. Without paths, it is controller-runtime's own builder with Tenure's types.
// NewClientBuilder panics if the files can't be read.
func NewClientBuilder(paths ...string) *ClientBuilder {
	definitions, err := ReadDefinitions(paths...)
	if err != nil {
		panic(err)
	}
	converter, err := NewTypeConverter(definitions...)
	if err != nil {
		panic(err)
	}
	return fake.NewClientBuilder().WithTypeConverters(converter)
}

// ReadDefinitions reads the CustomResourceDefinitions in YAML and JSON files, and in the files of folders, at any
// depth. It ignores other objects.
func ReadDefinitions(paths ...string) (out []runtime.Object, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			isManifest := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
			if err != nil || entry.IsDir() || !isManifest && name != path {
				return err
			}
			found, err := definitionsIn(name)
			out = append(out, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func definitionsIn(name string) (out []runtime.Object, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for docs := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := docs.Decode(&u.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if u.GetKind() == "CustomResourceDefinition" {
			out = append(out, u)
		}
	}
}
