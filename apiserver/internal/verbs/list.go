package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	fieldselection "k8s.io/apimachinery/pkg/selection"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/watchcache"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// A selection is the set of objects of a list, watch or deletecollection request.
type selection struct {
	labels labels.Selector
	fields fields.Selector
	// prefix is the storage prefix. key, if not empty, is the key of the only selected object.
	prefix string
	key    string
	// namespace is that of prefix.
	namespace string
}

// selection returns the selection of a request.
func (c *Call) selection(options *internalversion.ListOptions) (selection, error) {
	s := selection{labels: options.LabelSelector, fields: options.FieldSelector}
	if s.labels == nil {
		s.labels = labels.Everything()
	}
	if s.fields == nil {
		s.fields = fields.Everything()
	}
	transformed, err := s.fields.Transform(c.Strategy.ConvertFieldLabel)
	if err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	s.fields = transformed
	// The deprecated watch paths contain the name of the object.
	if len(c.Info.Parts) > 1 {
		name, exact := s.fields.RequiresExactMatch("metadata.name")
		switch {
		case s.fields.Empty():
			s.fields = fields.OneTermEqualSelector("metadata.name", c.Info.Name)
		case !exact || name != c.Info.Name:
			return s, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	namespace := c.Info.Namespace
	if !c.Resource.Namespaced {
		namespace = ""
	} else if namespace == "" {
		if name, ok := s.fields.RequiresExactMatch("metadata.namespace"); ok && !strings.Contains(name, "/") {
			namespace = name
		}
	}
	s.prefix, s.namespace = c.Resource.KeysIn(namespace), namespace
	if name, ok := s.fields.RequiresExactMatch("metadata.name"); ok && (namespace != "" || !c.Resource.Namespaced) &&
		name != "" && !strings.Contains(name, "/") {
		s.key = c.Resource.Key(namespace, name)
	}
	return s, nil
}

// isEverything reports whether all objects under the prefix are selected.
func (s selection) isEverything() bool { return s.labels.Empty() && s.fields.Empty() }

// watched returns the selection of a watch. It leaves out the requirements of the field selector
// that the prefix or the key meets.
func (c *Call) watched(s selection) watchcache.Selection {
	out := watchcache.Selection{
		Scope: s.prefix, Strategy: c.Strategy, Decode: c.decodeRecord, Labels: s.labels, Fields: s.fields,
	}
	if raw := c.rawKind(); raw != nil {
		out.Read = raw.ReadSelectable
	}
	if s.key != "" {
		out.Scope = s.key
	}
	for _, r := range s.fields.Requirements() {
		isNamed := s.key != "" && r.Field == "metadata.name" && r.Operator != fieldselection.NotEquals
		isPlaced := c.Resource.Namespaced && r.Field == "metadata.namespace" && r.Operator != fieldselection.NotEquals &&
			r.Value == s.namespace
		if !isNamed && !isPlaced {
			return out
		}
	}
	out.Fields = fields.Everything()
	return out
}

// list handles a list request.
func (c *Call) list() error {
	options, err := request.List(c.Request)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	if done, err := c.streamList(ctx, options); done || err != nil {
		return err
	}
	items, meta, err := c.listPage(ctx, options)
	if err != nil {
		return err
	}
	return c.respondList(items, meta)
}

// listPage returns one page of the selected objects.
func (c *Call) listPage(
	ctx context.Context, options *internalversion.ListOptions,
) ([]resources.Object, metav1.ListMeta, error) {
	var meta metav1.ListMeta
	s, err := c.selection(options)
	if err != nil {
		return nil, meta, err
	}
	at, after, err := c.listStart(ctx, options, s.prefix)
	if err != nil {
		return nil, meta, err
	}
	prefix := s.prefix
	if s.key != "" {
		prefix = s.key
	}
	var items []resources.Object
	watched := c.watched(s)
	for {
		page, err := c.Store.List(ctx, prefix, storage.ListOptions{Revision: at, After: after, Limit: int(options.Limit)})
		if err != nil {
			return nil, meta, listError(err, options, s.prefix)
		}
		at = page.Revision
		for i, record := range page.Records {
			if err := ctx.Err(); err != nil {
				return nil, meta, err
			}
			after = record.Key
			if s.key != "" && record.Key != s.key {
				continue
			}
			item := watchcache.NewItem(record)
			if ok, err := watched.Matches(item); err != nil {
				return nil, meta, fmt.Errorf("%s: %w", record.Key, err)
			} else if !ok {
				continue
			}
			obj, err := item.Decoded(c.Strategy, c.decodeRecord)
			if err != nil {
				return nil, meta, fmt.Errorf("%s: %w", record.Key, err)
			}
			items = append(items, obj)
			if options.Limit > 0 && int64(len(items)) == options.Limit {
				if rest := page.Remaining + int64(len(page.Records)-i-1); rest > 0 && s.key == "" {
					meta.Continue = continueToken(at, after, s.prefix)
					if s.isEverything() {
						meta.RemainingItemCount = &rest
					}
				}
				meta.ResourceVersion = versionText(at)
				return items, meta, nil
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 || s.key != "" {
			meta.ResourceVersion = versionText(at)
			return items, meta, nil
		}
	}
}

// decodeListed decodes a stored object. It reads the cache but does not fill it: a list would
// evict everything else.
func (c *Call) decodeListed(record storage.Record) (resources.Object, error) {
	return c.decodeRecord(c.Strategy, record)
}

// decodeRecord is decodeListed for any strategy. It implements [watchcache.Decoder].
func (s *Server) decodeRecord(strategy resources.Strategy, record storage.Record) (resources.Object, error) {
	if obj, ok := s.Objects.Get(state{strategy, record.Key, record.Revision}); ok {
		return obj.(cached).obj, nil
	}
	obj, err := s.decodeStored(strategy, record.Value, record.Revision)
	if err != nil {
		return nil, damaged(record.Key, record.Value, err)
	}
	return obj, nil
}

// listStart returns the revision of a list, 0 for the current one, and the key after which it
// starts.
func (c *Call) listStart(
	ctx context.Context, options *internalversion.ListOptions, prefix string,
) (at int64, after string, err error) {
	if options.Continue != "" {
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return 0, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		at, after, err := parseContinue(options.Continue, prefix)
		if err != nil {
			return 0, "", apierrors.NewBadRequest("invalid continue token: " + err.Error())
		}
		return max(at, 0), after, nil
	}
	wanted, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return 0, "", apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	match := options.ResourceVersionMatch
	if match == "" && wanted > 0 && options.Limit > 0 {
		match = metav1.ResourceVersionMatchExact
	}
	if match == metav1.ResourceVersionMatchExact {
		at = wanted
	}
	if wanted > 0 {
		current, err := c.Store.Revision(ctx)
		if err != nil {
			return 0, "", err
		}
		if wanted > current {
			return 0, "", tooLarge(wanted, current)
		}
	}
	return at, "", nil
}

// listError replaces storage.ErrCompacted by an API error. The error of a paginated list has a
// continue token for the rest of the list at the current revision, which is inconsistent with
// the first pages.
func listError(err error, options *internalversion.ListOptions, prefix string) error {
	switch {
	case !errors.Is(err, storage.ErrCompacted):
		return err
	case options.Continue == "":
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	_, last, parseErr := parseContinue(options.Continue, prefix)
	if parseErr != nil {
		return parseErr
	}
	expired := apierrors.NewResourceExpired("The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list.")
	expired.ErrStatus.Continue = continueToken(atPresent, last, prefix)
	return expired
}

// atPresent is the revision of a continue token for the current revision.
const atPresent = -1

// continueToken returns the token to continue a list after a key.
func continueToken(revision int64, last, prefix string) string {
	token, _ := apistorage.EncodeContinue(last+"\x00", prefix, revision) // an error: not the prefix of the key
	return token
}

// parseContinue returns the revision and the last key of a continue token.
func parseContinue(token, prefix string) (revision int64, last string, err error) {
	start, revision, err := apistorage.DecodeContinue(token, prefix)
	return revision, strings.TrimSuffix(start, "\x00"), err
}
