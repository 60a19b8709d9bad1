package apimachinery

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// lastLogged is the time at which logUpdateError last wrote a line, in seconds of the Unix epoch.
var lastLogged atomic.Int64

// logUpdateError logs an error of UpdateNoErrors, at most once a second per process: an unreachable webhook must not
// fill the log.
func logUpdateError(obj runtime.Object, err error) {
	now := time.Now().Unix()
	if last := lastLogged.Load(); last == now || !lastLogged.CompareAndSwap(last, now) {
		return
	}
	var namespace, name string
	if accessor, err := meta.Accessor(obj); err == nil {
		namespace, name = accessor.GetNamespace(), accessor.GetName()
	}
	klog.ErrorS(err, "Managed fields not updated; those of the stored object are kept",
		"versionKind", obj.GetObjectKind().GroupVersionKind(), "namespace", namespace, "name", name)
}
