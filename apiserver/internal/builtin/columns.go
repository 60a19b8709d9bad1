package builtin

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Table returns the columns of the kind.
func (k *kind) Table() resources.Columns { return nameAndCreation{} }

// nameAndCreation are the columns of kinds that have no others.
type nameAndCreation struct{}

var swagger = metav1.ObjectMeta{}.SwaggerDoc()

func (nameAndCreation) Definitions() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: swagger["name"]},
		{Name: "Created At", Type: "date", Description: swagger["creationTimestamp"]},
	}
}

func (nameAndCreation) Cells(obj resources.Object) ([]any, error) {
	return []any{obj.GetName(), obj.GetCreationTimestamp().Time.UTC().Format(time.RFC3339)}, nil
}
