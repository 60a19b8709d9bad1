package plugins

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

// An informer is a SharedIndexInformer without a goroutine: Plugins writes the objects to its store. The method set
// calls the handlers before it returns.
type informer struct {
	cache.SharedIndexInformer // never run
	handlers                  []cache.ResourceEventHandler
}

func newInformer(obj runtime.Object) *informer {
	return &informer{SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, obj, 0, cache.Indexers{})}
}

// newInformers returns the informers of the admission configurations, by plural name.
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

// set replaces the object with a name; a nil obj deletes it. If the informer already has this resourceVersion of the
// object, set does nothing.
func (i *informer) set(name string, obj metav1.Object) error {
	before, exists, err := i.GetStore().GetByKey(name)
	if err != nil {
		return err
	}
	switch {
	case obj == nil && !exists:
		return nil
	case obj == nil:
		err = i.GetStore().Delete(before)
	case exists && before.(metav1.Object).GetResourceVersion() == obj.GetResourceVersion():
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

// synced is the registration of a handler that has already been called for all objects.
type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// factory is the SharedInformerFactory for kube-apiserver's plugins. It has the informers of the admission
// configurations; its informers of all other kinds read the storage. Plugins use only the groups for which factory has
// a method.
type factory struct {
	informers.SharedInformerFactory // nil
	plugins                         *Plugins
}

// Start does nothing: informers have no goroutine.
func (f *factory) Start(<-chan struct{}) {}

// InformerName returns nil: informers have no metrics.
func (f *factory) InformerName() *cache.InformerName { return nil }

func (f *factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}

func (f *factory) Core() core.Interface             { return core.New(f, "", nil) }
func (f *factory) Networking() networking.Interface { return networking.New(f, "", nil) }
func (f *factory) Node() node.Interface             { return node.New(f, "", nil) }
func (f *factory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *factory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// InformerFor returns the informer of a kind.
func (f *factory) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return newInformer(obj) // a kind that this server does not have
	}
	r := f.plugins.options.Tables.Table().ResourceOf(kinds[0])
	switch {
	case r == nil:
		return newInformer(obj)
	case r.Group == admissionregistrationv1.GroupName && f.plugins.informers[r.Plural] != nil:
		return f.plugins.informers[r.Plural]
	}
	return &liveInformer{newInformer(obj), &live{resource: r}}
}

// liveInformer reads its objects from the storage.
type liveInformer struct {
	*informer
	indexer *live
}

func (i *liveInformer) GetIndexer() cache.Indexer { return i.indexer }
