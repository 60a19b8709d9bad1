package plugins

import (
	"context"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// An informer is a SharedIndexInformer that has no goroutine: Plugins writes the objects to
// its store, and its handlers have been called when a write returns.
type informer struct {
	cache.SharedIndexInformer // never run
	handlers                  []cache.ResourceEventHandler
}

func newInformer(obj runtime.Object) *informer {
	return &informer{SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, obj, 0, cache.Indexers{})}
}

// newInformers returns the informers of the configurations, by plural name.
func newInformers() map[string]*informer {
	return map[string]*informer{
		"mutatingwebhookconfigurations":   newInformer(&admissionregistrationv1.MutatingWebhookConfiguration{}),
		"validatingwebhookconfigurations": newInformer(&admissionregistrationv1.ValidatingWebhookConfiguration{}),

		"mutatingadmissionpolicies":         newInformer(&admissionregistrationv1.MutatingAdmissionPolicy{}),
		"mutatingadmissionpolicybindings":   newInformer(&admissionregistrationv1.MutatingAdmissionPolicyBinding{}),
		"validatingadmissionpolicies":       newInformer(&admissionregistrationv1.ValidatingAdmissionPolicy{}),
		"validatingadmissionpolicybindings": newInformer(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}),
	}
}

// set replaces the object of a name; nil deletes it. It does nothing for the revision that the
// informer has.
func (i *informer) set(name string, obj resources.Object) error {
	before, exists, err := i.GetStore().GetByKey(name)
	if err != nil {
		return err
	}
	switch {
	case obj == nil && !exists:
		return nil
	case obj == nil:
		err = i.GetStore().Delete(before)
	case exists && before.(resources.Object).GetResourceVersion() == obj.GetResourceVersion():
		return nil
	default:
		err = i.GetStore().Update(obj)
	}
	if err != nil {
		return err
	}
	for _, h := range i.handlers {
		switch {
		case obj == nil:
			h.OnDelete(before)
		case exists:
			h.OnUpdate(before, obj)
		default:
			h.OnAdd(obj, false)
		}
	}
	return nil
}

// AddEventHandler adds a handler, and calls it for each object.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	for _, obj := range i.GetStore().List() {
		h.OnAdd(obj, true)
	}
	return synced{}, nil
}

// HasSynced returns true: Load has read the objects.
func (i *informer) HasSynced() bool { return true }

// synced is the registration of a handler that has been called for all objects.
type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// factory is the SharedInformerFactory that kube-apiserver's plugins get. It has informers for
// configurations and Namespaces only; as with client, a real one would have all.
type factory struct {
	informers.SharedInformerFactory // nil
	plugins                         *Plugins
}

// Start has nothing to do.
func (f *factory) Start(<-chan struct{}) {}

// InformerName returns nil: there are no metrics.
func (f *factory) InformerName() *cache.InformerName { return nil }

func (f *factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}

func (f *factory) Core() core.Interface { return core.New(f, "", nil) }

// InformerFor returns an informer of the plugins. It has no objects of other types.
func (f *factory) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	switch obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return f.plugins.informers["mutatingwebhookconfigurations"]
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		return f.plugins.informers["validatingwebhookconfigurations"]
	case *corev1.Namespace:
		return &namespaceInformer{newInformer(obj), f.plugins.namespaces()}
	}
	return newInformer(obj)
}

// namespaceInformer reads Namespaces from the store.
type namespaceInformer struct {
	*informer
	indexer *namespaceIndexer
}

func (i *namespaceInformer) GetIndexer() cache.Indexer { return i.indexer }

// namespaceIndexer is the Indexer of namespaceInformer. Plugins get single Namespaces only.
type namespaceIndexer struct {
	cache.Indexer // empty
	plugins       *Plugins
}

func (p *Plugins) namespaces() *namespaceIndexer {
	return &namespaceIndexer{newInformer(&corev1.Namespace{}).GetIndexer(), p}
}

func (i *namespaceIndexer) GetByKey(name string) (any, bool, error) {
	namespaces := i.plugins.options.Tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	if strings.Contains(name, "/") || name == "" {
		return nil, false, nil
	}
	record, _, err := i.plugins.options.Store.Get(context.Background(), namespaces.Key("", name), 0)
	if err != nil || record == nil {
		return nil, false, err
	}
	obj, err := i.plugins.decode(namespaces, record)
	return obj, err == nil, err
}
