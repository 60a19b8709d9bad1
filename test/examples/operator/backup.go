// Package operator has a reconciler that reads objects of its users, adds a finalizer, sets a label, removes an
// annotation, and updates the objects. Its Go type formats durations and quantities differently from users, and lacks
// some fields. With controllerruntime.Options.MinimalUpdates, the reconciler owns only the fields that it has changed.
package operator

import (
	_ "embed"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// backupDefinition is the CustomResourceDefinition of Backup.
//
//go:embed backup.yaml
var backupDefinition []byte

var backupKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Backup"}

// Backup is the kind of the objects that users apply.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BackupSpec `json:"spec,omitempty"`
}

// BackupSpec is older than the CustomResourceDefinition: it lacks spec.compression.
type BackupSpec struct {
	Every    metav1.Duration   `json:"every"`
	Space    resource.Quantity `json:"space"`
	Parallel int32             `json:"parallel"`
}

// DeepCopyObject implements runtime.Object.
func (b *Backup) DeepCopyObject() runtime.Object {
	out := *b
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Space = b.Spec.Space.DeepCopy()
	return &out
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(backupKind, &Backup{})
	metav1.AddToGroupVersion(s, backupKind.GroupVersion())
	return s
}
