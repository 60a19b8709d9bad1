package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/ownership/excess"
)

// CheckOwnership reads lists of objects, and returns an [excess.Error] if managers own fields that p does not permit
// them to own. It is for the end of a test suite, on a server or with the fake clients of package fake; a test of an
// operator judges its operator alone:
//
//	p := &policy.Policy{Permissions: []policy.Permission{{
//		Managers: []string{"backups"}, Fields: []string{".metadata.finalizers", ".metadata.labels"},
//	}}}
//	require.NoError(t, controllerruntime.CheckOwnership(ctx, c, p, &backupv1.BackupList{}))
func CheckOwnership(ctx context.Context, c client.Client, p *policy.Policy, lists ...client.ObjectList) error {
	var found excess.Error
	for _, list := range lists {
		if err := c.List(ctx, list); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			gvk, err := c.GroupVersionKindFor(item)
			if err != nil {
				return err
			}
			item.GetObjectKind().SetGroupVersionKind(gvk) // items of typed lists have none
			fields, err := excess.Find(p, item)
			found = append(found, fields...)
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return found
	}
	return nil
}
