package openapi

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A document is computed at its first use.
type document struct {
	json     func() (content, error)
	protobuf func() ([]byte, error)

	// list holds the resources of the document, if it is of a group version.
	list []*resources.Resource
	// describe computes the description again. It is not cached: it is larger than the
	// document, and used once for this document and once for OpenAPI 2.
	describe func() (*description, error)
}

func newDocument(version string, describe func() (*description, error)) *document {
	d := &document{describe: describe}
	d.json = sync.OnceValues(func() (content, error) {
		description, err := describe()
		if err != nil {
			return content{}, err
		}
		data, err := description.marshal(version)
		return contentOf(data), err
	})
	d.protobuf = sync.OnceValues(func() ([]byte, error) {
		content, err := d.json()
		if err != nil {
			return nil, err
		}
		return protobufV3(content.data)
	})
	return d
}

// documents are the documents of a table.
type documents struct {
	table *resources.Table
	v3    map[string]*document // by path, without the leading slash
	v2    *document
	index func() (content, error)
}

// newDocuments returns the documents of a table. It reuses unchanged documents of the previous
// table.
func newDocuments(table *resources.Table, version string, before *documents) *documents {
	d := &documents{table: table, v3: map[string]*document{
		"apis":    singles.get("apis", version, groupsPath),
		"version": singles.get("version", version, versionPath),
	}}
	for _, g := range table.Groups() {
		root := strings.TrimPrefix(rootOf(schema.GroupVersion{Group: g.Name}), "/")
		root = strings.TrimSuffix(root, "/")
		if !isCustom(g) {
			d.v3[root] = singles.get(root, version, func() *path { return groupPath(g.Name) })
		}
		for _, v := range g.Versions {
			name := root + "/" + v.Name
			d.v3[name] = documentOf(schema.GroupVersion{Group: g.Name, Version: v.Name}, v.Resources, version, before.get(name))
		}
	}
	d.index = sync.OnceValues(d.makeIndex)
	d.v2 = &document{}
	d.v2.json = sync.OnceValues(func() (content, error) { return d.makeV2(version) })
	d.v2.protobuf = sync.OnceValues(func() ([]byte, error) {
		content, err := d.v2.json()
		if err != nil {
			return nil, err
		}
		return protobufV2(content.data)
	})
	return d
}

func (d *documents) get(name string) *document {
	if d == nil {
		return nil
	}
	return d.v3[name]
}

// isCustom reports whether a group has custom resources only. kube-apiserver has documents for
// the versions of such a group, but none for the group.
func isCustom(g resources.Group) bool {
	for _, v := range g.Versions {
		if slices.ContainsFunc(v.Resources, func(r *resources.Resource) bool { return !r.Custom }) {
			return false
		}
	}
	return true
}

// documentOf returns the document of a group version. It reuses a document of the same
// resources.
func documentOf(gv schema.GroupVersion, list []*resources.Resource, version string, before *document) *document {
	if before != nil && slices.Equal(before.list, list) {
		return before
	}
	describe := func() (*description, error) { return describeVersion(gv, list) }
	if !slices.ContainsFunc(list, func(r *resources.Resource) bool { return r.Custom }) {
		// Documents of built-in groups are the same in all servers of the process.
		shared := *singles.of(rootOf(gv), version, describe)
		shared.list = list
		return &shared
	}
	d := newDocument(version, describe)
	d.list = list
	return d
}

// kept are the documents that all servers of a process share.
type kept struct {
	lock sync.Mutex
	made map[[2]string]*document // by name and version
}

var singles kept

func (k *kept) of(name, version string, describe func() (*description, error)) *document {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.made == nil {
		k.made = map[[2]string]*document{}
	}
	key := [2]string{name, version}
	d := k.made[key]
	if d == nil {
		d = newDocument(version, describe)
		k.made[key] = d
	}
	return d
}

func (k *kept) get(name, version string, p func() *path) *document {
	return k.of(name, version, func() (*description, error) { return describePath(p()) })
}

// makeIndex computes all documents in parallel: the index contains their hashes. It omits
// CustomResourceDefinitions that can't be described, so that clients get the others.
func (d *documents) makeIndex() (content, error) {
	var group sync.WaitGroup
	var lock sync.Mutex
	var errs []error
	hashes := map[string]string{}
	for name, doc := range d.v3 {
		group.Go(func() {
			content, err := doc.json()
			lock.Lock()
			defer lock.Unlock()
			switch {
			case err == nil:
				hashes[name] = content.hash
			case !doc.isCustom():
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return content{}, err
	}
	return marshalIndex(hashes)
}

// makeV2 computes the OpenAPI 2 document. Descriptions that differ in version 2 are computed
// again.
func (d *documents) makeV2(version string) (content, error) {
	var all []*description
	for _, name := range d.sorted() {
		doc := d.v3[name]
		description, err := doc.describeV2()
		switch {
		case err == nil:
			all = append(all, description)
		case !doc.isCustom():
			return content{}, err
		}
	}
	data, err := marshalV2(all, version)
	return contentOf(data), err
}

// sorted returns the names of documents. Built-in ones come first: their models take
// precedence.
func (d *documents) sorted() []string {
	var out []string
	for name := range d.v3 {
		out = append(out, name)
	}
	slices.SortFunc(out, func(a, b string) int {
		if custom := d.v3[a].isCustom(); custom != d.v3[b].isCustom() {
			if custom {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return out
}

func (d *document) isCustom() bool {
	return slices.ContainsFunc(d.list, func(r *resources.Resource) bool { return r.Custom })
}

// describeV2 returns the description with custom resource schemas for OpenAPI 2.
func (d *document) describeV2() (*description, error) {
	out, err := d.describe()
	if err != nil {
		return nil, err
	}
	for _, r := range d.list {
		if !r.Custom {
			continue
		}
		schemas, err := customSchemas(r, 2)
		if err != nil {
			return nil, err
		}
		for model, t := range schemas {
			out.schemas[model] = t
		}
	}
	return out, nil
}
