package verbs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/internal/watchcache"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// listChunk is the number of objects that a list reads, encodes and sends at once.
const listChunk = 500

// streamList responds to a list without a limit in chunks, so that its memory does not grow with
// the list, and to a page of all objects. It returns false, and has not responded, if the list
// can't be streamed: the start of a page has the token for the next one, which is known when
// enough selected objects were found.
func (c *Call) streamList(ctx context.Context, options *internalversion.ListOptions) (bool, error) {
	if !c.accepted.Streams() {
		return false, nil
	}
	s, err := c.selection(options)
	if err != nil || options.Limit > 0 && !s.isEverything() {
		return false, err
	}
	v, err := c.newView()
	if err != nil {
		return false, err
	}
	source, err := c.listSource(ctx, options, s)
	if err != nil {
		return false, err
	}
	defer source.release()
	l := &listStream{c: c, view: v, source: source, selection: c.watched(s)}
	l.meta = source.meta
	if l.parts, err = newListParts(c, v, l.meta); errors.Is(err, errParts) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	l.setForm()
	c.writeWarnings()
	l.out = response.NewStream(c.Writer, c.Request, c.accepted.MediaType)
	if err := l.run(ctx); err != nil {
		if l.out.Started() {
			// Only a broken connection tells the client that the list is incomplete.
			panic(http.ErrAbortHandler)
		}
		if errors.Is(err, errParts) {
			return false, nil
		}
		return false, err
	}
	c.written = true
	return true, nil
}

// A listStream is a list that is being sent.
type listStream struct {
	c         *Call
	view      *view
	source    *listSource
	selection watchcache.Selection
	parts     *listParts
	meta      metav1.ListMeta
	out       *response.Stream
	started   bool // an element was sent

	// Elements in protobuf come behind their size: they are sent if it is known, and spooled otherwise.
	isSized bool
	left    int64 // the size of elements that were not sent yet
	spool   spool

	// direct sends an item that need not be decoded and encoded for this list alone; nil if there is no way. It returns
	// false, and has sent nothing, if it can't.
	direct func(item, shown *watchcache.Item) (bool, error)
	raw    rawKind // not nil if JSON can be made of what is stored
	form   watchcache.Form
	// of protobuf that is made of what is stored
	isMeasured bool
	measure    watchcache.Measure
	// of a Table
	columns resources.Columns
	since   resources.Since
	buffer  []byte
	head    []byte // the start of an element in protobuf
}

func (l *listStream) run(ctx context.Context) error {
	defer func() { _ = l.spool.close() }()
	if err := l.start(ctx); err != nil {
		return err
	}
	if err := l.each(ctx, l.chunk); err != nil {
		return err
	}
	if l.parts.isProtobuf && !l.isSized {
		if _, err := l.out.Write(l.parts.sized(l.spool.size)); err != nil {
			return err
		}
		if err := l.spool.writeTo(l.out); err != nil {
			return err
		}
	}
	if l.left != 0 {
		return errParts
	}
	if _, err := l.out.Write(l.parts.tail); err != nil {
		return err
	}
	return l.out.Close()
}

// start sends what comes before the elements, unless that is not known yet.
func (l *listStream) start(ctx context.Context) (err error) {
	head := l.parts.head
	if l.parts.isProtobuf {
		if l.left, l.isSized, err = l.sizeOfAll(ctx); err != nil || !l.isSized {
			return err
		}
		head = l.parts.sized(l.left)
	}
	_, err = l.out.Write(head)
	return err
}

// each calls do for the items of the list, in chunks.
func (l *listStream) each(ctx context.Context, do func([]*watchcache.Item) error) error {
	for {
		items, err := l.source.next()
		if err != nil || len(items) == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(items); err != nil {
			return err
		}
	}
}

// chunk sends the selected items of a chunk.
func (l *listStream) chunk(items []*watchcache.Item) error {
	var objs []resources.Object
	for _, item := range items {
		if !l.selection.Contains(item.Key) {
			continue
		}
		shown := item
		if !l.selection.IsEverything() {
			shown = watchcache.NewItem(item.Record) // keeps the object that the selectors need
			if ok, err := l.selection.Matches(shown); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if l.direct != nil {
			if done, err := l.direct(item, shown); err != nil {
				return err
			} else if done {
				continue
			}
		}
		obj, err := l.decoded(item, shown)
		if err != nil {
			return err
		}
		if l.direct == nil {
			objs = append(objs, obj)
			continue
		}
		// It comes between items that are sent directly.
		if err := l.objects(obj); err != nil {
			return err
		}
	}
	return l.objects(objs...)
}

// objects sends objects.
func (l *listStream) objects(objs ...resources.Object) error {
	data, err := l.parts.elements(objs, l.meta)
	if err != nil || len(data) == 0 {
		return err
	}
	if l.parts.isProtobuf {
		return l.sized(data)
	}
	return l.element(data)
}

// sized sends a part of the elements in protobuf, or spools it.
func (l *listStream) sized(data []byte) error {
	if !l.isSized {
		return l.spool.add(data)
	}
	l.left -= int64(len(data))
	_, err := l.out.Write(data)
	return err
}

// element sends one or more elements in JSON.
func (l *listStream) element(data []byte) error {
	if l.started {
		if _, err := l.out.Write([]byte{','}); err != nil {
			return err
		}
	}
	l.started = true
	_, err := l.out.Write(data)
	return err
}

// A listSource reads the items of a list at one revision, in chunks.
type listSource struct {
	meta     metav1.ListMeta
	isCached bool // the items are those of the watch cache, if they are current
	next     func() ([]*watchcache.Item, error)
	rewind   func() // next starts again at the first item; nil if it can't
	release  func()
}

// listSource returns the items of a list: from the watch cache, if it runs and the list is of
// the current revision, or from the store.
func (c *Call) listSource(
	ctx context.Context, options *internalversion.ListOptions, s selection,
) (*listSource, error) {
	at, after, err := c.listStart(ctx, options, s.prefix)
	if err != nil {
		return nil, err
	}
	prefix := s.prefix
	if s.key != "" {
		prefix = s.key
	}
	if at == 0 && after == "" && options.Limit == 0 {
		if source, ok, err := c.cachedSource(ctx, options, prefix); ok || err != nil {
			return source, err
		}
	}
	// What is kept of current items is right for any revision at which they are listed: pages of a list use it.
	itemOf := watchcache.NewItem
	cache, release, isCached := c.Watches.Running(c.Resource.Prefix)
	source := &listSource{isCached: isCached, release: func() {}}
	if isCached {
		itemOf, source.release = cache.Item, release
	}
	read := storage.ListOptions{Revision: at, After: after, Limit: listChunk, SkipCount: true}
	if options.Limit > 0 {
		read.Limit, read.SkipCount = int(options.Limit), false
	}
	ended := false
	next := func() (items []*watchcache.Item, err error) {
		if ended {
			return nil, nil
		}
		page, err := c.Store.List(ctx, prefix, read)
		if err != nil {
			return nil, listError(err, options, s.prefix)
		}
		ended = page.Remaining == 0 || len(page.Records) == 0 || options.Limit > 0
		read.Revision = page.Revision
		source.meta.ResourceVersion = versionText(page.Revision)
		for _, record := range page.Records {
			read.After = record.Key
			items = append(items, itemOf(record))
		}
		if options.Limit > 0 && page.Remaining > 0 && len(items) > 0 {
			source.meta.Continue = continueToken(page.Revision, read.After, s.prefix)
			source.meta.RemainingItemCount = &page.Remaining
		}
		return items, nil
	}
	first, err := next() // for the revision
	if err != nil {
		source.release()
		return nil, err
	}
	source.next = func() ([]*watchcache.Item, error) {
		if first != nil {
			items := first
			first = nil
			return items, nil
		}
		return next()
	}
	return source, nil
}

// progressTimeout is how long a list waits for the watch cache; then it reads the store.
const progressTimeout = 3 * time.Second

// cachedSource returns the items of the watch cache, at the wanted revision or later. A list
// without a revision, or with any but 0, is consistent: it has all writes that the store had when
// it came. ok is false if the cache does not run, or can't tell.
func (c *Call) cachedSource(
	ctx context.Context, options *internalversion.ListOptions, prefix string,
) (source *listSource, ok bool, err error) {
	cache, release, ok := c.Watches.Running(c.Resource.Prefix)
	if !ok {
		return nil, false, nil
	}
	if options.ResourceVersion != "0" {
		current, err := c.Store.Revision(ctx)
		if err != nil {
			release()
			return nil, false, err
		}
		waiting, cancel := context.WithTimeout(ctx, progressTimeout)
		ok, err = cache.WaitFor(waiting, current)
		cancel()
		if !ok || err != nil {
			release()
			return nil, false, ctx.Err()
		}
	}
	snapshot := cache.Snapshot()
	after := ""
	return &listSource{
		meta: metav1.ListMeta{ResourceVersion: versionText(snapshot.Revision)}, isCached: true, release: release,
		next: func() (items []*watchcache.Item, err error) {
			snapshot.Items(prefix, after, func(item *watchcache.Item) bool {
				items, after = append(items, item), item.Key
				return len(items) < listChunk
			})
			return items, nil
		},
		rewind: func() { after = "" },
	}, true, nil
}
