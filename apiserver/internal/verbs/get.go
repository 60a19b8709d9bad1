package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// get handles a get request.
func (c *Call) get() error {
	options, err := request.Get(c.Request)
	if err != nil {
		return err
	}
	wanted, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return err
	}
	obj, _, current, err := c.read(c.Request.Context(), c.Info.Name)
	if err != nil {
		return err
	}
	if wanted > current {
		return tooLarge(wanted, current)
	}
	if obj == nil {
		return apierrors.NewNotFound(c.Resource.GroupResource(), c.Info.Name)
	}
	return c.respond(200, obj)
}

// read returns the current object, its record and the storage revision. The object and the
// record are nil if it does not exist.
func (c *Call) read(ctx context.Context, name string) (resources.Object, *storage.Record, int64, error) {
	record, current, err := c.Store.Get(ctx, c.key(name), 0)
	if err != nil || record == nil {
		return nil, nil, current, err
	}
	obj, err := c.decode(record.Key, record.Value, record.Revision)
	return obj, record, current, err
}

func (c *Call) key(name string) string { return c.Resource.Key(c.Info.Namespace, name) }

// Cached is the number of decoded objects to cache, so that an object that is updated
// repeatedly or watched by many clients is decoded once for each revision.
const Cached = 1024

// state is the key of the cache: one revision of one object, as one resource serves it. It
// contains the strategy, so that a resource whose definition changed does not find objects of
// the old definition.
type state struct {
	strategy resources.Strategy
	key      string
	revision int64
}

// cached is a value of the cache. encoded is true if the record is the JSON of the object, without its resourceVersion:
// what was decoded may have got defaults.
type cached struct {
	obj     resources.Object
	encoded bool
}

// decode decodes a stored object, or returns it from the cache. Callers must not change it.
func (c *Call) decode(key string, value []byte, revision int64) (resources.Object, error) {
	s := state{c.Strategy, key, revision}
	if obj, ok := c.Objects.Get(s); ok {
		return obj.(cached).obj, nil
	}
	obj, err := c.decodeUncached(value, revision)
	if err != nil {
		return nil, damaged(key, value, err)
	}
	c.Objects.Add(s, cached{obj: obj})
	return obj, nil
}

// damaged returns the error of decoding a record, with the key of one that is no JSON.
func damaged(key string, value []byte, err error) error {
	if json.Valid(value) {
		return err
	}
	return fmt.Errorf("stored object %s: %w", key, err)
}

func (c *Call) decodeUncached(value []byte, revision int64) (resources.Object, error) {
	return c.decodeStored(c.Strategy, value, revision)
}

// decodeStored decodes a stored object at the version of a strategy.
func (s *Server) decodeStored(strategy resources.Strategy, value []byte, revision int64) (resources.Object, error) {
	obj, err := strategy.DecodeStored(value)
	if err != nil {
		return nil, err
	}
	if s.Hooks.Default != nil {
		s.Hooks.Default(obj)
	}
	obj.SetResourceVersion(versionText(revision))
	return obj, nil
}

// parseVersion parses a resourceVersion. An empty one is 0.
func parseVersion(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		if _, wide := strconv.ParseUint(text, 10, 64); wide == nil {
			return 0, apierrors.NewBadRequest("invalid resource version: " + text)
		}
		_, err = strconv.ParseUint(text, 10, 64)
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(n), nil
}

// tooLarge returns the error for a resourceVersion that the storage has not reached. Clients
// retry.
func tooLarge(wanted, current int64) error {
	return apistorage.NewTooLargeResourceVersionError(uint64(wanted), uint64(current), 1)
}
