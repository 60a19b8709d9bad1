package openapi

import (
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A path is an OpenAPI path item, for both versions of OpenAPI.
type path struct {
	path       string
	operations []*operation
	parameters []parameter // of all operations
}

// An operation is one method of a path.
type operation struct {
	method      string // in lower case
	id          string
	tags        []string
	description string
	action      string
	kind        *schema.GroupVersionKind
	parameters  []parameter
	body        string // the model of the request body; empty if there is none
	required    bool   // whether the body is required
	consumes    []string
	produces    []string
	answer      string         // the model of the response; empty if it is text
	codes       map[int]string // descriptions of the response codes
}

const (
	ok, created, accepted = "OK", "Created", "Accepted"

	metaModels    = "io.k8s.apimachinery.pkg.apis.meta.v1."
	statusModel   = metaModels + "Status"
	deleteOptions = metaModels + "DeleteOptions"
	patchModel    = metaModels + "Patch"
	scaleModel    = "io.k8s.api.autoscaling.v1.Scale"
)

// The media types of built-in and custom objects. CBOR is served but not described, as on kube-apiserver.
var (
	builtinTypes = []string{
		runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf,
	}
	builtinStreams = append(slices.Clone(builtinTypes),
		runtime.ContentTypeJSON+";stream=watch", runtime.ContentTypeProtobuf+";stream=watch")
	builtinPatches = []string{
		string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
		string(types.ApplyYAMLPatchType),
	}
	customTypes   = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
	customPatches = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
)

// models returns the model name of a kind.
type models func(schema.GroupVersionKind) string

// An author generates the paths of one resource.
type author struct {
	r      *resources.Resource
	models models
	root   string // path prefix of the group version
	tag    string
	prefix string // of operation ids

	model     string
	types     []string
	streams   []string
	patches   []string
	bodyTypes []string
}

// pathsOf returns the paths of a resource.
func pathsOf(r *resources.Resource, models models) []*path {
	a := &author{r: r, models: models, root: rootOf(r.GroupVersion()), model: models(r.GVK())}
	a.tag, a.prefix = names(r.GroupVersion())
	if r.Custom {
		a.types, a.streams, a.patches, a.bodyTypes = customTypes, customTypes, customPatches, customTypes
	} else {
		a.types, a.streams, a.patches, a.bodyTypes = builtinTypes, builtinStreams, builtinPatches, []string{"*/*"}
	}
	return a.paths()
}

func rootOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// names returns the tag of a group version and its name in operation ids, such as
// rbacAuthorization_v1 and RbacAuthorizationV1.
func names(gv schema.GroupVersion) (tag, prefix string) {
	group := strings.TrimSuffix(gv.Group, ".k8s.io")
	if group == "" {
		group = "core"
	}
	tag, prefix = identifier(group, false), identifier(group, true)
	if gv.Version != "" {
		tag, prefix = tag+"_"+identifier(gv.Version, false), prefix+identifier(gv.Version, true)
	}
	return tag, prefix
}

// identifier converts a string to camel case, without characters that identifiers can't have.
func identifier(s string, capital bool) string {
	var out strings.Builder
	for i, c := range s {
		switch {
		case !unicode.IsLetter(c) && c != '_' && (i == 0 || !unicode.IsDigit(c)):
			capital = true
		case capital:
			out.WriteRune(unicode.ToUpper(c))
			capital = false
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

func (a *author) paths() []*path {
	r := a.r
	collection, scope := a.root+"/"+r.Plural, ""
	var inPath []parameter
	var out []*path
	if r.Namespaced {
		if r.Allows("list", "") {
			out = append(out, a.path(collection, nil, a.list("", "ForAllNamespaces")))
		}
		collection, scope = a.root+"/namespaces/{namespace}/"+r.Plural, "Namespaced"
		inPath = []parameter{namespaceParameter}
	}
	out = append(out,
		a.path(collection, inPath, a.list(scope, ""), a.create(scope, "", r.GVK()), a.deleteCollection(scope)))
	inItem := append([]parameter{nameParameter(r.Kind)}, inPath...)
	item := collection + "/{name}"
	out = append(out, a.path(item, inItem, a.get(scope, "", r.GVK()), a.update(scope, "", r.GVK()),
		a.patch(scope, "", r.GVK()), a.delete(scope)))
	for i := range r.Subresources {
		out = append(out, a.subresource(&r.Subresources[i], item, scope, inPath)...)
	}
	if !r.Custom {
		out = append(out, a.watches(scope, inPath, inItem)...)
	}
	return slices.DeleteFunc(out, func(p *path) bool { return len(p.operations) == 0 })
}

// subresource returns the paths of a subresource.
func (a *author) subresource(s *resources.Subresource, item, scope string, inPath []parameter) []*path {
	kind := s.Kind.Kind
	switch {
	case a.r.Custom:
		kind = a.r.Kind
	case connects(s):
		return a.connect(s, item, scope, inPath)
	case a.r.Group == "" && a.r.Plural == "pods" && s.Name == "log":
		return []*path{a.log(item, scope, inPath)}
	}
	return []*path{a.path(item+"/"+s.Name, append([]parameter{nameParameter(kind)}, inPath...),
		a.create(scope, s.Name, s.Kind), a.get(scope, s.Name, s.Kind), a.update(scope, s.Name, s.Kind),
		a.patch(scope, s.Name, s.Kind))}
}

// watches returns the deprecated watch paths.
func (a *author) watches(scope string, inPath, inItem []parameter) []*path {
	if !a.r.Allows("watch", "") {
		return nil
	}
	all := a.root + "/watch/" + a.r.Plural
	if !a.r.Namespaced {
		return []*path{a.path(all, nil, a.watchList("", "")), a.path(all+"/{name}", inItem, a.watch(scope))}
	}
	in := a.root + "/watch/namespaces/{namespace}/" + a.r.Plural
	return []*path{
		a.path(all, nil, a.watchList("", "ForAllNamespaces")),
		a.path(in, inPath, a.watchList(scope, "")),
		a.path(in+"/{name}", inItem, a.watch(scope)),
	}
}

// path returns a path with the supported operations. It moves parameters that all of them have
// to the path.
func (a *author) path(name string, inPath []parameter, operations ...*operation) *path {
	p := &path{path: name}
	for _, o := range operations {
		if o != nil {
			o.parameters = append(o.parameters, prettyParameter)
			o.parameters = append(o.parameters, inPath...)
			slices.SortFunc(o.parameters, compareParameters)
			p.operations = append(p.operations, o)
		}
	}
	if len(p.operations) == 0 {
		return p
	}
	for _, candidate := range p.operations[0].parameters {
		isCommon := !slices.ContainsFunc(p.operations, func(o *operation) bool {
			return !slices.Contains(o.parameters, candidate)
		})
		if isCommon {
			p.parameters = append(p.parameters, candidate)
		}
	}
	for _, o := range p.operations {
		o.parameters = slices.DeleteFunc(o.parameters, func(c parameter) bool { return slices.Contains(p.parameters, c) })
	}
	return p
}

// operation returns an operation whose response is the resource's kind, or nil if the verb is
// not supported. words are the parts of its id: the verb, and what follows scope and kind.
func (a *author) operation(verb, subresource, method, action, word, scope, suffix string) *operation {
	if !a.r.Allows(verb, subresource) {
		return nil
	}
	kind := a.r.GVK()
	capital := ""
	if subresource != "" {
		capital = strings.ToUpper(subresource[:1]) + strings.ToLower(subresource[1:])
	}
	return &operation{
		method: method, action: action, tags: []string{a.tag}, kind: &kind,
		id:       word + a.prefix + identifier(scope+a.r.Kind+capital+suffix, true),
		consumes: []string{"*/*"}, produces: a.types, answer: a.model, codes: map[int]string{200: ok},
	}
}

// of sets the kind of a subresource. Operations of custom resources keep the kind of the
// object.
func (a *author) of(o *operation, subresource string, kind schema.GroupVersionKind) *operation {
	if o == nil || subresource == "" {
		return o
	}
	if subresource == "scale" {
		o.answer = scaleModel
	} else if o.answer = a.models(kind); o.answer == "" {
		return nil
	}
	if !a.r.Custom {
		o.kind = &kind
	}
	return o
}

// phrase returns the description: the verb and the kind or its subresource.
func (a *author) phrase(verb, subresource, article string) string {
	if subresource != "" {
		verb += " " + subresource + " of"
	}
	return verb + article + a.r.Kind
}

// article returns the article of the kind.
func (a *author) article() string {
	kind := a.r.Kind
	switch {
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss"):
		return " " // a plural
	case strings.ContainsRune("aeiou", unicode.ToLower(rune(kind[0]))):
		return " an "
	}
	return " a "
}

func (a *author) list(scope, suffix string) *operation {
	o := a.operation("list", "", "get", "list", "list", scope, suffix)
	if o == nil {
		return nil
	}
	o.description = "list objects of kind " + a.r.Kind
	if !a.r.Custom && a.r.Allows("watch", "") {
		o.description = "list or watch objects of kind " + a.r.Kind
	}
	o.answer, o.produces = a.models(a.r.GroupVersion().WithKind(a.r.List())), a.streams
	o.parameters = optionParameters(metav1.ListOptions{})
	if a.r.Custom {
		o.consumes = customTypes
	}
	return o
}

func (a *author) create(scope, subresource string, kind schema.GroupVersionKind) *operation {
	o := a.of(a.operation("create", subresource, "post", "post", "create", scope, ""), subresource, kind)
	if o == nil {
		return nil
	}
	o.description = a.phrase("create", subresource, a.article())
	o.parameters = optionParameters(metav1.CreateOptions{})
	o.body, o.required, o.consumes = o.answer, true, a.bodyTypes
	o.codes = map[int]string{200: ok, 201: created, 202: accepted}
	return o
}

func (a *author) get(scope, subresource string, kind schema.GroupVersionKind) *operation {
	o := a.of(a.operation("get", subresource, "get", "get", "read", scope, ""), subresource, kind)
	if o == nil {
		return nil
	}
	o.description = a.phrase("read", subresource, " the specified ")
	if a.r.Custom {
		o.parameters, o.consumes = optionParameters(metav1.GetOptions{}), customTypes
	}
	return o
}

func (a *author) update(scope, subresource string, kind schema.GroupVersionKind) *operation {
	o := a.of(a.operation("update", subresource, "put", "put", "replace", scope, ""), subresource, kind)
	if o == nil {
		return nil
	}
	o.description = a.phrase("replace", subresource, " the specified ")
	o.parameters = optionParameters(metav1.UpdateOptions{})
	o.body, o.required, o.consumes = o.answer, true, a.bodyTypes
	o.codes = map[int]string{200: ok, 201: created}
	return o
}

func (a *author) patch(scope, subresource string, kind schema.GroupVersionKind) *operation {
	o := a.of(a.operation("patch", subresource, "patch", "patch", "patch", scope, ""), subresource, kind)
	if o == nil {
		return nil
	}
	o.description = a.phrase("partially update", subresource, " the specified ")
	o.parameters = optionParameters(metav1.PatchOptions{})
	o.body, o.required, o.consumes = patchModel, true, a.patches
	if !a.r.Custom {
		o.codes = map[int]string{200: ok, 201: created}
	}
	return o
}

func (a *author) delete(scope string) *operation {
	o := a.operation("delete", "", "delete", "delete", "delete", scope, "")
	if o == nil {
		return nil
	}
	o.description = a.phrase("delete", "", a.article())
	o.parameters = optionParameters(metav1.DeleteOptions{})
	o.body, o.consumes = deleteOptions, a.bodyTypes
	if !returnsDeleted[a.r.GroupResource()] {
		o.answer = statusModel
	}
	o.codes = map[int]string{200: ok, 202: accepted}
	return o
}

func (a *author) deleteCollection(scope string) *operation {
	o := a.operation("deletecollection", "", "delete", "deletecollection", "delete", "Collection"+scope, "")
	if o == nil {
		return nil
	}
	o.description = "delete collection of " + a.r.Kind
	o.answer = statusModel
	if a.r.Custom {
		o.parameters, o.consumes = optionParameters(metav1.ListOptions{}), customTypes
		return o
	}
	o.body = deleteOptions
	o.parameters = withParameters(optionParameters(metav1.DeleteOptions{}), optionParameters(metav1.ListOptions{}),
		"watch", "allowWatchBookmarks")
	return o
}

const watchEvent = metaModels + "WatchEvent"

func (a *author) watch(scope string) *operation {
	o := a.operation("watch", "", "get", "watch", "watch", scope, "")
	o.description = "watch changes to an object of kind " + a.r.Kind +
		". deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the " +
		"'fieldSelector' parameter."
	o.answer, o.produces = watchEvent, a.streams
	o.parameters = optionParameters(metav1.ListOptions{})
	return o
}

func (a *author) watchList(scope, suffix string) *operation {
	o := a.operation("watch", "", "get", "watchlist", "watch", scope, "List"+suffix)
	o.description = "watch individual changes to a list of " + a.r.Kind +
		". deprecated: use the 'watch' parameter with a list operation instead."
	o.answer, o.produces = watchEvent, a.streams
	o.parameters = optionParameters(metav1.ListOptions{})
	return o
}

// returnsDeleted are the resources whose delete responds with the object instead of a Status. Namespaces do too, but
// kube-apiserver documents a Status for them.
var returnsDeleted = map[schema.GroupResource]bool{
	{Resource: "persistentvolumes"}: true, {Resource: "persistentvolumeclaims"}: true, {Resource: "pods"}: true,
	{Resource: "podtemplates"}: true, {Resource: "resourcequotas"}: true, {Resource: "services"}: true,
	{Resource: "serviceaccounts"}:                                  true,
	{Group: "resource.k8s.io", Resource: "deviceclasses"}:          true,
	{Group: "resource.k8s.io", Resource: "resourceclaims"}:         true,
	{Group: "resource.k8s.io", Resource: "resourceclaimtemplates"}: true,
	{Group: "resource.k8s.io", Resource: "resourceslices"}:         true,
	{Group: "storage.k8s.io", Resource: "csidrivers"}:              true,
	{Group: "storage.k8s.io", Resource: "csinodes"}:                true,
	{Group: "storage.k8s.io", Resource: "storageclasses"}:          true,
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:       true,
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}: true,
}
