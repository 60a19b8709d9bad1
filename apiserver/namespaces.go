package apiserver

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// makeNamespaces makes the namespaces that every server has.
func (s *Server) makeNamespaces(ctx context.Context) error {
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		n := &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: s.options.NewUID(), CreationTimestamp: metav1.NewTime(s.options.Now()).Rfc3339Copy(),
				Labels: map[string]string{corev1.LabelMetadataName: name},
			},
			Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		}
		data, err := json.Marshal(n)
		if err != nil {
			return err
		}
		var there *storage.ConflictError
		if _, err := s.store.Put(ctx, resources.PrefixOf("", "namespaces")+name, data, 0); err != nil && !errors.As(err, &there) {
			return err
		}
	}
	return nil
}

// startControllers starts what the server does by itself.
func (s *Server) startControllers() {}
