// Package operator has a reconciler that reads objects of its users, adds a finalizer, sets a label, removes an
// annotation, and updates them. Its Go type writes durations and quantities in another way than users do, and does not
// know all fields. With controllerruntime.Options.MinimalUpdates, it owns what it changed and nothing else.
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

// Backup is what users apply.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BackupSpec `json:"spec,omitempty"`
}

// BackupSpec is older than the definition, which has spec.compression too.
type BackupSpec struct {
	Every    metav1.Duration   `json:"every"`
	Space    resource.Quantity `json:"space"`
	Parallel int32             `json:"parallel"`
}

// DeepCopyObject is runtime.Object's.
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
