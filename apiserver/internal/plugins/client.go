package plugins

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// client is the clientset that kube-apiserver's plugins get. They use it for one call: to read
// a Namespace that an informer does not have. A real Clientset would add the clients of all API
// groups to each program that has this server in it.
type client struct {
	kubernetes.Interface // nil
	namespaces           *namespaceIndexer
}

func (c *client) CoreV1() typedcorev1.CoreV1Interface { return &coreClient{namespaces: c.namespaces} }

type coreClient struct {
	typedcorev1.CoreV1Interface // nil
	namespaces                  *namespaceIndexer
}

func (c *coreClient) Namespaces() typedcorev1.NamespaceInterface {
	return &namespaceClient{namespaces: c.namespaces}
}

type namespaceClient struct {
	typedcorev1.NamespaceInterface // nil
	namespaces                     *namespaceIndexer
}

func (c *namespaceClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	obj, exists, err := c.namespaces.GetByKey(name)
	if err == nil && !exists {
		err = apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}
