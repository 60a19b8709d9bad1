// Package bundle reads and writes the embedded schemas of built-in types: a zip file with an OpenAPI v3 document for
// each group version, and an index of the kinds in each document, so that a document is inflated only when one of its
// kinds is needed.
//
//	index.json            {"apis/apps/v1": {"apps/v1": ["Deployment", ...]}, ...}
//	apis/apps/v1.json     {"components": {"schemas": {...}}, ...}
//
// Documents have the names of a server's discovery: api/v1, apis/apps/v1. The same documents always give the same
// bytes.
package bundle

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IndexFile is the name of the index; documentSuffix ends the names of documents.
const (
	IndexFile      = "index.json"
	documentSuffix = ".json"
)

// An Index has the kinds whose schemas are in each document. No kind is in two documents.
type Index map[string][]schema.GroupVersionKind

// ReadIndex returns the index of the bundle in files.
func ReadIndex(files fs.FS) (Index, error) {
	data, err := fs.ReadFile(files, IndexFile)
	if err != nil {
		return nil, err
	}
	var written map[string]map[string][]string
	if err := json.Unmarshal(data, &written); err != nil {
		return nil, fmt.Errorf("%s: %w", IndexFile, err)
	}
	index := Index{}
	for document, kinds := range written {
		for groupVersion, names := range kinds {
			gv, err := schema.ParseGroupVersion(groupVersion)
			if err != nil {
				return nil, fmt.Errorf("%s: document %s: %w", IndexFile, document, err)
			}
			for _, name := range names {
				index[document] = append(index[document], gv.WithKind(name))
			}
		}
	}
	return index, nil
}

// ReadDocument returns the document called name of the bundle in files.
func ReadDocument(files fs.FS, name string) ([]byte, error) {
	return fs.ReadFile(files, name+documentSuffix)
}

// Build returns a bundle of documents, as a zip file. A kind that several documents
// describe, such as Status, is taken from the document of its own group version, or
// else from the first. Documents without a kind of their own are left out.
func Build(documents map[string][]byte) ([]byte, error) {
	files := map[string][]byte{}
	declared := map[string][]schema.GroupVersionKind{}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		data, kinds, err := minify(documents[name])
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", name, err)
		}
		own, err := GroupVersion(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.GroupVersion() == own }) {
			continue
		}
		declared[name] = kinds
		files[name+documentSuffix] = data
	}
	if len(declared) == 0 {
		return nil, fmt.Errorf("no document describes a kind of its own group version")
	}
	index, err := json.MarshalIndent(assign(declared), "", " ")
	if err != nil {
		return nil, err
	}
	files[IndexFile] = append(index, '\n')
	return archive(files)
}

// assign picks the document of each kind and returns the index as it is written:
// document, group version, kinds.
func assign(declared map[string][]schema.GroupVersionKind) map[string]map[string][]string {
	from := map[schema.GroupVersionKind]string{}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		own, _ := GroupVersion(name)
		for _, kind := range declared[name] {
			if _, taken := from[kind]; !taken || kind.GroupVersion() == own {
				from[kind] = name
			}
		}
	}
	out := map[string]map[string][]string{}
	for kind, name := range from {
		if out[name] == nil {
			out[name] = map[string][]string{}
		}
		gv := kind.GroupVersion().String()
		out[name][gv] = append(out[name][gv], kind.Kind)
	}
	for _, kinds := range out {
		for _, names := range kinds {
			slices.Sort(names)
		}
	}
	return out
}

// GroupVersion returns the group version that a document is about: v1 for api/v1,
// apps/v1 for apis/apps/v1. Other names are an error.
func GroupVersion(document string) (schema.GroupVersion, error) {
	parts := strings.Split(document, "/")
	switch {
	case slices.Contains(parts, ""):
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, nil
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, nil
	}
	return schema.GroupVersion{}, fmt.Errorf("document %q is of no group version, want api/VERSION or apis/GROUP/VERSION",
		document)
}

func archive(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, flate.BestCompression)
	})
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// A file has no time, so that equal data gives equal bytes.
		file, err := w.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
