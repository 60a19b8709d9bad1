package verbs

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// respond writes an object in the form and media type that the client accepts.
func (c *Call) respond(code int, obj resources.Object) error {
	if c.respondStored(code, obj) {
		return nil
	}
	view, err := c.newView()
	if err != nil {
		return err
	}
	shown, err := view.object(obj)
	if err != nil {
		return err
	}
	c.send(code, shown)
	return nil
}

// respondList writes a list of objects.
func (c *Call) respondList(items []resources.Object, list metav1.ListMeta) error {
	view, err := c.newView()
	if err != nil {
		return err
	}
	shown, err := view.list(items, list)
	if err != nil {
		return err
	}
	c.send(http.StatusOK, shown)
	return nil
}

// respondStatus writes a Status. It is never converted to a Table or to metadata only.
func (c *Call) respondStatus(status *metav1.Status) {
	status.Kind, status.APIVersion = "Status", "v1"
	c.send(http.StatusOK, status)
}

func (c *Call) send(code int, obj runtime.Object) {
	c.writeWarnings()
	c.written = true
	response.Object(c.Writer, c.Request, c.accepted, code, obj)
}

// A view converts objects to the form that the client accepts: as they are, Table,
// PartialObjectMetadata or a list of these.
type view struct {
	ctx      context.Context
	strategy resources.Strategy       // of the objects
	as       *schema.GroupVersionKind // nil: as they are
	include  metav1.IncludeObjectPolicy
	headers  bool // whether a Table includes the column definitions
	now      func() time.Time
}

func (c *Call) newView() (*view, error) {
	v := &view{ctx: c.Request.Context(), strategy: c.Strategy, as: c.accepted.As, headers: true, now: c.Now}
	if v.as == nil || v.as.Kind != "Table" {
		return v, nil
	}
	options := &metav1.TableOptions{}
	if err := request.Options(c.Request, options); err != nil {
		return nil, err
	}
	if errs := metav1validation.ValidateTableOptions(options); len(errs) > 0 {
		return nil, apierrors.NewBadRequest("Unable to convert to Table as requested: " + errs[0].Error())
	}
	v.include = options.IncludeObject
	v.headers = !options.NoHeaders
	return v, nil
}

func (v *view) object(obj resources.Object) (runtime.Object, error) {
	switch {
	case v.as == nil:
		return obj, nil
	case v.as.Kind == "PartialObjectMetadata":
		return partial(obj, v.as.GroupVersion()), nil
	case v.as.Kind == "Table":
		return v.table([]resources.Object{obj}, metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()})
	}
	return nil, notAcceptable("you requested " + v.as.Kind + ", but the requested object is not a list")
}

func (v *view) list(items []resources.Object, list metav1.ListMeta) (runtime.Object, error) {
	switch {
	case v.as == nil:
		return v.strategy.List(items, list), nil
	case v.as.Kind == "PartialObjectMetadata":
		return nil, notAcceptable("you requested PartialObjectMetadata, but the requested object is a list")
	case v.as.Kind == "PartialObjectMetadataList":
		out := &metav1.PartialObjectMetadataList{ListMeta: list, Items: []metav1.PartialObjectMetadata{}}
		out.SetGroupVersionKind(v.as.GroupVersion().WithKind("PartialObjectMetadataList"))
		for _, item := range items {
			out.Items = append(out.Items, *partial(item, v.as.GroupVersion()))
		}
		return out, nil
	}
	return v.table(items, list)
}

// table returns objects as a Table.
func (v *view) table(items []resources.Object, list metav1.ListMeta) (runtime.Object, error) {
	columns := v.strategy.TableColumns()
	out := &metav1.Table{ListMeta: list, Rows: []metav1.TableRow{}}
	out.SetGroupVersionKind(v.as.GroupVersion().WithKind("Table"))
	if v.headers {
		out.ColumnDefinitions = columns.Definitions()
	}
	since := resources.SinceAt(v.now())
	for _, item := range items {
		if err := v.ctx.Err(); err != nil {
			return nil, err
		}
		row, err := v.row(columns, item, since)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// row returns an object as a row of a Table.
func (v *view) row(
	columns resources.Columns, obj resources.Object, since resources.Since,
) (row metav1.TableRow, err error) {
	if row.Cells, err = columns.Cells(obj, since); err != nil {
		return row, err
	}
	if c, ok := columns.(resources.RowConditioner); ok {
		row.Conditions = c.Conditions(obj)
	}
	switch v.include {
	case metav1.IncludeObject:
		row.Object.Object = obj
	case metav1.IncludeNone:
	default:
		row.Object.Object = partial(obj, v.as.GroupVersion())
	}
	return row, nil
}

func partial(obj resources.Object, gv schema.GroupVersion) *metav1.PartialObjectMetadata {
	out := meta.AsPartialObjectMetadata(obj)
	out.SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
	return out
}

func notAcceptable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: message,
	}}
}
