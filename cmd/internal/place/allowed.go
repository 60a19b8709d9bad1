package place

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MayWrite reports whether the user may apply an intent to the target. It is true where that can't be asked.
func (t *Target) MayWrite(ctx context.Context, p Place, subresource string) bool {
	c, ok := p.(*Cluster)
	if !ok {
		return true
	}
	verbs := []string{"patch"}
	if t.Object == nil {
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		attributes := map[string]any{
			"verb": verb, "group": t.served.Group, "version": t.served.Version, "resource": t.served.Resource.Resource,
			"subresource": subresource, "namespace": t.Namespace, "name": t.Name,
		}
		review, err := c.Client.Review(ctx, attributes)
		if isAllowed, found, _ := unstructured.NestedBool(review, "status", "allowed"); err == nil && found && !isAllowed {
			return false
		}
	}
	return true
}
