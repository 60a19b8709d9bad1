package rbac

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

//go:embed defaults.yaml
var defaults []byte

// makeDefaults creates the default roles and bindings that do not exist.
func makeDefaults(ctx context.Context, store storage.Store) error {
	for _, document := range bytes.Split(defaults, []byte("\n---\n")) {
		key, obj, err := parseDefault(document)
		if err != nil {
			return fmt.Errorf("default roles: %w", err)
		}
		obj.SetUID(types.UID(uuid.NewString()))
		obj.SetCreationTimestamp(metav1.NewTime(time.Now()).Rfc3339Copy())
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/bootstrapping"] = "rbac-defaults"
		obj.SetLabels(labels)
		data, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		var there *storage.ConflictError
		if _, err := store.Put(ctx, key+obj.GetName(), data, 0); err != nil && !errors.As(err, &there) {
			return err
		}
	}
	return nil
}

// parseDefault returns an object and its storage prefix.
func parseDefault(document []byte) (string, metav1.Object, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(document, &meta); err != nil {
		return "", nil, err
	}
	meta.APIVersion = rbacv1.SchemeGroupVersion.String()
	if meta.Kind == "ClusterRoleBinding" {
		b := &rbacv1.ClusterRoleBinding{}
		err := yaml.UnmarshalStrict(document, b)
		b.TypeMeta = meta
		return prefix + "clusterrolebindings/", b, err
	}
	r := &rbacv1.ClusterRole{}
	err := yaml.UnmarshalStrict(document, r)
	r.TypeMeta = meta
	return prefix + "clusterroles/", r, err
}
