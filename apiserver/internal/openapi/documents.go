package openapi

import (
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A document is computed when it is first requested.
type document struct {
	json     func() (content, error)
	protobuf func() ([]byte, error)
	custom   []*resources.Resource // the custom resources of a group version
}

// newDocument returns a document. compute returns its JSON, and toProtobuf converts the JSON.
func newDocument(compute func() (content, error), toProtobuf func([]byte) ([]byte, error)) *document {
	d := &document{json: sync.OnceValues(compute)}
	d.protobuf = sync.OnceValues(func() ([]byte, error) {
		c, err := d.json()
		if err != nil {
			return nil, err
		}
		return toProtobuf(c.data)
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

// newDocuments returns the documents of a table. It reuses unchanged documents of the previous table.
func newDocuments(table *resources.Table, before *documents) (*documents, error) {
	shared, err := builtinV3()
	if err != nil {
		return nil, err
	}
	d := &documents{table: table, v3: maps.Clone(shared), v2: builtinV2Document}
	var custom []*resources.Resource
	for _, g := range table.Groups() {
		for _, v := range g.Versions {
			list := v.Resources
			if len(list) == 0 || !list[0].Custom { // no definition adds to a built-in group
				continue
			}
			custom = append(custom, list...)
			name := nameOf(schema.GroupVersion{Group: g.Name, Version: v.Name})
			if before != nil && before.v3[name] != nil && slices.Equal(before.v3[name].custom, list) {
				d.v3[name] = before.v3[name]
				continue
			}
			d.v3[name] = newDocument(func() (content, error) { return makeV3(list) }, handler3.ToV3ProtoBinary)
			d.v3[name].custom = list
		}
	}
	if len(custom) > 0 {
		d.v2 = newDocument(func() (content, error) { return makeV2(custom) }, handler.ToProtoBinary)
	}
	d.index = sync.OnceValues(d.makeIndex)
	return d, nil
}

// nameOf returns the name of the document of a group version.
func nameOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// describe are the options with which the controllers of k8s.io/apiextensions-apiserver describe definitions.
var describe = builder.Options{IncludeSelectableFields: true}

// makeV3 computes the document of the custom resources of a group version.
func makeV3(custom []*resources.Resource) (content, error) {
	var parts []*spec3.OpenAPI
	for _, r := range custom {
		crd, err := r.Definition()
		if err != nil {
			return content{}, err
		}
		part, err := builder.BuildOpenAPIV3(crd, r.Version, describe)
		if err != nil {
			return content{}, err
		}
		parts = append(parts, part)
	}
	merged, err := builder.MergeSpecsV3(parts...)
	if err != nil {
		return content{}, err
	}
	data, err := json.Marshal(merged) // as in kube-apiserver, which hashes this JSON
	return contentOf(data), err
}

// makeIndex computes the URLs of the documents. Each URL contains the hash of its document. If a
// CustomResourceDefinition can't be described, makeIndex omits its document, so that clients can still read the other
// documents.
func (d *documents) makeIndex() (content, error) {
	names := slices.Collect(maps.Keys(d.v3))
	contents, errs := make([]content, len(names)), make([]error, len(names))
	inParallel(len(names), func(i int) { contents[i], errs[i] = d.v3[names[i]].json() })
	hashes := map[string]string{}
	for i, name := range names {
		if errs[i] == nil {
			hashes[name] = contents[i].hash
		} else if len(d.v3[name].custom) == 0 {
			return content{}, errs[i]
		}
	}
	return marshalIndex(hashes)
}

// inParallel calls compute with the numbers below n. It runs few calls at a time, because each may hold a large schema.
func inParallel(n int, compute func(i int)) {
	workqueue.ParallelizeUntil(context.Background(), runtime.GOMAXPROCS(0), n, compute)
}

var builtinV2Document = newDocument(func() (content, error) { return makeV2(nil) }, handler.ToProtoBinary)

// makeV2 computes the OpenAPI 2 document. It omits custom resources that can't be described.
func makeV2(custom []*resources.Resource) (content, error) {
	out, err := builtinV2()
	if err != nil {
		return content{}, err
	}
	if len(custom) > 0 {
		parts := make([]*spec.Swagger, len(custom))
		inParallel(len(custom), func(i int) { parts[i], _ = describeV2(custom[i], out.Definitions) })
		if out, err = builder.MergeSpecs(out, parts...); err != nil {
			return content{}, err
		}
	}
	data, err := out.MarshalJSON()
	return contentOf(data), err
}

// describeV2 returns the OpenAPI 2 description of a custom resource. It omits models that shared contains, such as
// ObjectMeta.
func describeV2(r *resources.Resource, shared spec.Definitions) (*spec.Swagger, error) {
	crd, err := r.Definition()
	if err != nil {
		return nil, err
	}
	options := describe
	options.V2 = true
	out, err := builder.BuildOpenAPIV2(crd, r.Version, options)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(out.Definitions, func(model string, _ spec.Schema) bool {
		_, known := shared[model]
		return known
	})
	out.Definitions = handler.PruneDefaults(out.Definitions)
	return out, nil
}
