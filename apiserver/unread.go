package apiserver

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// These rules limit the memory that a client uses if it does not read:
//
//   - For each watch, a store keeps only a position in the store's history, and no queue. This also applies to a store
//     on etcd. A watch holds up to ten events of up to 16 KiB, and three larger events: one is being written, one waits
//     in a channel, one waits to enter the channel. It also holds the values of the events that follow: up to 100
//     events with 256 KiB in total, or one larger event (storage/internal/objects/watch.go). Its connection takes about
//     50 KiB. All watches share the decoded object of an event. Watches with the same media type, version and
//     transformation (to a Table or PartialObjectMetadata) share the encoding of an event. On etcd, at most two watches
//     at a time read a page of the existing objects.
//   - The bytes of a write that waits for its client are counted for the server and for the user (type unread). If
//     Limits.UnreadPerUser is exceeded, the server ends a watch or list of the same user. If Limits.Unread is exceeded,
//     it ends a watch or list of the user with the most unread bytes. In both cases it ends the response whose client
//     has read nothing for the longest time. While the bytes do not exceed twice the limit, it spares clients that have
//     read something within the last second (patience). No write waits for other clients.
//   - Within Limits.Write, 30 s by default, a client must read one event of a watch, or the whole response of any other
//     request. If a client needs longer, the response ends: in HTTP/1.1 with its connection, in HTTP/2 with its stream.
//     The client of a watch then watches again, from the resourceVersion that it has read last.
//   - A watch ends with 410 Expired if the history of its store (HistoryBytes, HistoryRevisions) no longer has the
//     events that the watch must read next. This includes a watch that has not read all objects that existed at its
//     start. The client then lists again.

const (
	// patience is how long a response waits for its client before writes for other clients can end it.
	patience = time.Second
	// step is the number of bytes of an event after which a client is treated as having read something.
	step = 64 << 10
	// Writes of up to small bytes are not counted: net/http buffers them.
	small = 4 << 10
	// compressor is the memory that gzip uses while a client does not read, in bytes.
	compressor = 1 << 20
)

// unread counts the bytes that wait for clients.
type unread struct {
	limits Limits
	mu     sync.Mutex
	all    waiting
	users  map[string]*waiting
}

func newUnread(limits Limits) *unread {
	return &unread{limits: limits, all: waiting{writers: map[piece]int{}}, users: map[string]*waiting{}}
}

// piece is memory that waits for one or more clients. It is identified by its address.
type piece struct {
	first *byte
	size  int64
}

// waiting is the set of writes that wait for clients. There is one set for the server, and one for each user.
//
//	bytes == sum of piece.size over writers
type waiting struct {
	bytes   int64
	writers map[piece]int // the number of writers of each piece
	queue   list.List     // for a user: *unreadWriter, sorted by the last read of their clients, oldest first
}

func (w *waiting) add(p piece) {
	if w.writers[p]++; w.writers[p] == 1 {
		w.bytes += p.size
	}
}

func (w *waiting) remove(p piece) {
	if w.writers[p]--; w.writers[p] == 0 {
		delete(w.writers, p)
		w.bytes -= p.size
	}
}

// begin counts a write, and ends other writes while a limit is exceeded.
func (u *unread) begin(w *unreadWriter, p piece) {
	u.mu.Lock()
	defer u.mu.Unlock()
	user := u.users[w.user]
	if user == nil {
		user = &waiting{writers: map[piece]int{}}
		u.users[w.user] = user
	}
	u.all.add(p)
	user.add(p)
	w.piece, w.since = p, time.Now()
	w.element = user.queue.PushBack(w)
	for u.endOne(user, w, user.bytes-u.limits.UnreadPerUser, u.limits.UnreadPerUser) {
	}
	for u.endOne(u.most(w), w, u.all.bytes-u.limits.Unread, u.limits.Unread) {
	}
}

// most returns the user with the most bytes. It skips a user whose longest waiting write is w, because begin never ends
// w.
func (u *unread) most(w *unreadWriter) (most *waiting) {
	if u.all.bytes <= u.limits.Unread {
		return nil
	}
	for _, user := range u.users {
		if (most == nil || user.bytes > most.bytes) && user.queue.Front().Value != w {
			most = user
		}
	}
	return most
}

// endOne ends the longest waiting write of a user if a limit is exceeded. over is the number of bytes above the limit.
// endOne never ends the write that is passed as but. If over is at most limit, endOne also spares a write whose client
// has read something within patience. It returns whether it has ended a write. The caller holds mu.
func (u *unread) endOne(user *waiting, but *unreadWriter, over, limit int64) bool {
	if over <= 0 || user == nil {
		return false
	}
	first := user.queue.Front().Value.(*unreadWriter)
	if first == but || over <= limit && time.Since(first.since) < patience {
		return false
	}
	u.remove(first)
	first.end()
	return true
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

// withConn is the ConnContext of an http.Server.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// end makes a write that waits for its client fail with an error.
func (w *unreadWriter) end() {
	if conn, ok := w.request.Context().Value(connKey{}).(*tls.Conn); ok && w.request.ProtoMajor == 1 {
		_ = conn.NetConn().Close() // tls.Conn.Close would wait for the client too
		return
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(-time.Second))
}

// remove stops counting a write. The caller holds mu.
func (u *unread) remove(w *unreadWriter) {
	user := u.users[w.user]
	user.queue.Remove(w.element)
	w.element = nil
	user.remove(w.piece)
	u.all.remove(w.piece)
	if user.queue.Len() == 0 {
		delete(u.users, w.user)
	}
}

// update records that the client has read a step or, if the write is done, stops counting it.
func (u *unread) update(w *unreadWriter, isDone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case w.element == nil: // the write was ended
	case isDone:
		u.remove(w)
	default:
		w.since = time.Now()
		u.users[w.user].queue.MoveToBack(w.element)
	}
}

// unreadWriter writes a list or the events of a watch.
type unreadWriter struct {
	http.ResponseWriter
	request *http.Request
	unread  *unread
	user    string
	limit   time.Duration // time to write an event of a watch, without the time to wait for the next event; 0 for a list

	// The fields of the current write are guarded by unread.mu.
	piece   piece
	since   time.Time
	element *list.Element
}

func (u *unread) writer(w http.ResponseWriter, r *http.Request, limit time.Duration) *unreadWriter {
	user := ""
	if info, ok := apirequest.UserFrom(r.Context()); ok {
		user = tenantOf(info)
	}
	return &unreadWriter{ResponseWriter: w, request: r, unread: u, user: user, limit: limit}
}

func (w *unreadWriter) Write(data []byte) (written int, err error) {
	if w.limit > 0 {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.limit))
	}
	size := int64(len(data))
	if w.Header().Get("Content-Encoding") == "gzip" {
		size += compressor
	}
	if size <= small || len(data) == 0 { // a compressor may write nothing
		return w.ResponseWriter.Write(data)
	}
	w.unread.begin(w, piece{&data[0], size})
	defer w.unread.update(w, true)
	for written < len(data) {
		n, err := w.ResponseWriter.Write(data[written:min(written+step, len(data))])
		written += n
		if err != nil {
			return written, err
		}
		w.unread.update(w, false)
	}
	return written, nil
}

// Flush ends the event.
func (w *unreadWriter) Flush() {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.Flush()
	if w.limit > 0 {
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// Unwrap is for http.ResponseController.
func (w *unreadWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
