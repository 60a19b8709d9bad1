package engines

import (
	"bytes"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdv4 "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/internal/oracle"
)

// Upstream returns the engine of k8s.io/apimachinery.
func Upstream() Engine {
	return Engine{
		Name:         "upstream",
		FieldManager: upstreamManager,
		DecodeSet: func(data []byte) (Set, error) {
			set := &smd.Set{}
			err := set.FromJSON(bytes.NewReader(data))
			return upstreamSet{set}, err
		},
		// Despite its name, this function decodes all entries, as every write does, and does nothing else.
		DecodeEntries: managedfields.ValidateManagedFields,
		Compile: func(models map[string]*spec.Schema) error {
			_, err := managedfields.NewTypeConverter(models, false)
			return err
		},
	}
}

// UpstreamV4 returns an engine that has only the codec of structured-merge-diff v4, which tools for older releases of
// Kubernetes still use.
func UpstreamV4() Engine {
	return Engine{
		Name: "upstream",
		DecodeSet: func(data []byte) (Set, error) {
			set := &smdv4.Set{}
			err := set.FromJSON(bytes.NewReader(data))
			return upstreamSet{set}, err
		},
	}
}

// upstreamSet is a set of any major version of structured-merge-diff.
type upstreamSet struct {
	set interface{ ToJSON() ([]byte, error) }
}

// MarshalJSON implements [Set].
func (s upstreamSet) MarshalJSON() ([]byte, error) { return s.set.ToJSON() }

// converters are the type converters by document. A server makes them at its start, so they are not measured.
var (
	convertersLock sync.Mutex
	converters     = map[schema.GroupVersion]managedfields.TypeConverter{}
)

func converterFor(k Kind) (managedfields.TypeConverter, error) {
	models, err := k.models()
	if err != nil {
		return nil, err
	}
	convertersLock.Lock()
	defer convertersLock.Unlock()
	if c, ok := converters[k.document()]; ok {
		return c, nil
	}
	c, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, err
	}
	converters[k.document()] = c
	return c, nil
}

func upstreamManager(k Kind) (FieldManager, error) {
	types, err := converterFor(k)
	if err != nil {
		return nil, err
	}
	reset := map[smd.APIVersion]smd.Filter{
		smd.APIVersion(k.GroupVersion().String()): smd.NewExcludeSetFilter(smd.NewSet(smd.MakePathOrDie(k.reset()))),
	}
	var convert runtime.ObjectConvertor = host{}
	var create runtime.ObjectCreater = host{}
	if k.Struct {
		convert, create = runtime.UnsafeObjectConvertor(scheme), scheme
	}
	build := managedfields.NewDefaultFieldManager
	if k.custom() {
		build = managedfields.NewDefaultCRDFieldManager
	}
	return build(types, convert, host{}, create, k.GroupVersionKind, k.GroupVersion(), k.Subresource, reset)
}

// host provides what a field manager needs for unstructured objects: there is one version, nothing has a default, and a
// new object has only an apiVersion and a kind.
type host struct{ oracle.AsItIs }

// ConvertToVersion returns the object itself.
func (host) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
