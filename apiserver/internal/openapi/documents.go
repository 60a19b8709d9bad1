package openapi

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A document is made at its first use.
type document struct {
	json     func() (content, error)
	protobuf func() ([]byte, error)

	// list is what it is made of, if it is of a group version.
	list []*resources.Resource
	// describe returns the description again: it is larger than the document, and
	// used once for this and once for version 2.
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

// documents are those of one table.
type documents struct {
	table *resources.Table
	v3    map[string]*document // by path, without the first slash
	v2    *document
	index func() (content, error)
}

// newDocuments returns the documents of a table. What is the same as in those of the
// table before is taken over.
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

// isCustom reports whether all of a group is: a real server has no document of such
// a group, only those of its versions.
func isCustom(g resources.Group) bool {
	for _, v := range g.Versions {
		if slices.ContainsFunc(v.Resources, func(r *resources.Resource) bool { return !r.Custom }) {
			return false
		}
	}
	return true
}

// documentOf returns the document of a group version: one that was made before, if
// it is made of the same resources.
func documentOf(gv schema.GroupVersion, list []*resources.Resource, version string, before *document) *document {
	if before != nil && slices.Equal(before.list, list) {
		return before
	}
	describe := func() (*description, error) { return describeVersion(gv, list) }
	if !slices.ContainsFunc(list, func(r *resources.Resource) bool { return r.Custom }) {
		// What is built in is the same in every server of the process.
		shared := *singles.of(rootOf(gv), version, describe)
		shared.list = list
		return &shared
	}
	d := newDocument(version, describe)
	d.list = list
	return d
}

// kept are documents that are the same for all servers of a process.
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

// makeIndex makes all documents, as their hashes are in the index. They are made
// side by side. A definition that can't be described is left out: clients need the
// rest all the same.
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

// makeV2 makes the one document of version 2, of descriptions that are made anew
// where version 2 differs.
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

// sorted returns the names of documents: what is built in, which may not be
// overridden, goes first.
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

// describeV2 returns the description with the schemas of custom resources as they
// are in version 2.
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
