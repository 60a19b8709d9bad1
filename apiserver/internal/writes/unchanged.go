package writes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/finisher"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
)

// MaxUnchanged is the recommended size of a cache for [Handler.Unchanged], in applies. Each takes about 300 bytes.
const MaxUnchanged = 1 << 14

// A digest identifies a request: requests with equal digests get equal responses, if the object and admission do not
// change.
type digest [sha256.Size]byte

func (p *patcher) digest() digest {
	user, r := p.user, p.request
	head := fmt.Sprintf("%q %q %q %q %q %q\n", r.URL.Path, r.URL.RawQuery, r.UserAgent(), user.GetName(), user.GetUID(),
		user.GetGroups())
	return sha256.Sum256(append([]byte(head), p.body...))
}

// version identifies a version of an object. The zero version means that no object exists.
type version struct {
	uid             types.UID
	resourceVersion string
}

func versionOf(obj runtime.Object) version {
	if o, err := meta.Accessor(obj); err == nil {
		return version{o.GetUID(), o.GetResourceVersion()}
	}
	return version{}
}

// unlessUnchanged calls apply, which sets p.live. It skips apply if an earlier, equal request for this version of the
// object changed nothing and caused no warning. In this case, only a change of admission can lead to another response,
// so unlessUnchanged calls only admission. If admission changes the object, unlessUnchanged calls apply.
func (p *patcher) unlessUnchanged(
	ctx context.Context, options *metav1.UpdateOptions, apply func(context.Context) (runtime.Object, error),
) (runtime.Object, error) {
	digest := p.digest()
	if known, ok := p.Unchanged.Get(digest); ok {
		obj, err := finisher.FinishRequest(ctx, func() (runtime.Object, error) {
			return p.admitUnchanged(ctx, known.(version), options)
		})
		if obj != nil || err != nil {
			return obj, err
		}
	}
	warnings := &warningObserver{client: ctx}
	obj, err := apply(warning.WithWarningRecorder(ctx, warnings))
	if err == nil && p.live != (version{}) && versionOf(obj) == p.live && !warnings.any.Load() {
		p.Unchanged.Add(digest, p.live)
	}
	return obj, err
}

// admitUnchanged returns the live object if it has the known version and admission accepts it unchanged. It returns nil
// if apply must run.
func (c *call) admitUnchanged(
	ctx context.Context, known version, options *metav1.UpdateOptions,
) (runtime.Object, error) {
	live, err := c.Storage.(rest.Getter).Get(ctx, c.name, &metav1.GetOptions{})
	if err != nil || versionOf(live) != known {
		return nil, nil
	}
	obj := live.DeepCopyObject()
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	a := c.attributes(obj, live, c.name, admission.Update, options, nil)
	if err := c.mutate(ctx, a); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(obj, live) {
		return nil, nil
	}
	return live, rest.AdmissionToValidateObjectUpdateFunc(c.admit, a, c.Scope)(ctx, obj, live)
}

// A warningObserver forwards warnings to a client, and records whether there were any.
type warningObserver struct {
	client context.Context
	any    atomic.Bool
}

// AddWarning implements warning.Recorder.
func (w *warningObserver) AddWarning(agent, text string) {
	w.any.Store(true)
	warning.AddWarning(w.client, agent, text)
}
