package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// rawKind is implemented by strategies that can return list items without decoding.
type rawKind interface {
	Raw(stored []byte, revision string) []byte
}

// rawKind returns the strategy if JSON can be made of stored objects without decoding them.
func (c *Call) rawKind() rawKind {
	raw, ok := c.Strategy.(rawKind)
	if !ok || c.Hooks.Default != nil || c.accepted.MediaType != runtime.ContentTypeJSON {
		return nil
	}
	return raw
}

// rawHead returns what comes before an item that Raw returned, without its '{', in an object
// with apiVersion and kind.
func rawHead(gvk schema.GroupVersionKind) []byte {
	return []byte(`{"kind":"` + gvk.Kind + `","apiVersion":"` + gvk.GroupVersion().String() + `",`)
}

// listRaw responds to a list of all objects in JSON without decoding them. It returns false,
// and has not responded, if the list needs decoded objects.
func (c *Call) listRaw(ctx context.Context, options *internalversion.ListOptions) (bool, error) {
	raw := c.rawKind()
	if raw == nil || c.accepted.As != nil || c.accepted.Pretty {
		return false, nil
	}
	s, err := c.selection(options)
	if err != nil || !s.isEverything() {
		return false, err
	}
	at, after, err := c.listStart(ctx, options, s.prefix)
	if err != nil {
		return false, err
	}
	page, err := c.Store.List(ctx, s.prefix, storage.ListOptions{Revision: at, After: after, Limit: int(options.Limit)})
	if err != nil {
		return false, listError(err, options, s.prefix)
	}
	meta := metav1.ListMeta{ResourceVersion: versionText(page.Revision)}
	if n := len(page.Records); n > 0 && page.Remaining > 0 {
		meta.Continue = continueToken(page.Revision, page.Records[n-1].Key, s.prefix)
		meta.RemainingItemCount = &page.Remaining
	}
	head, err := json.Marshal(struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
	}{metav1.TypeMeta{Kind: c.Resource.List(), APIVersion: c.Resource.GroupVersion().String()}, meta})
	if err != nil {
		return false, err
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	out.WriteString(`,"items":[`)
	for i, record := range page.Records {
		item := raw.Raw(record.Value, versionText(record.Revision))
		if item == nil {
			return false, nil
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(item)
	}
	out.WriteString("]}\n")
	c.writeWarnings()
	c.written = true
	response.Bytes(c.Writer, c.Request, c.accepted.MediaType, http.StatusOK, out.Bytes())
	return true, nil
}
