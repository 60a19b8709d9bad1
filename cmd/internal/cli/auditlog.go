package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/fights"
)

// auditEvent contains the fields of an audit.k8s.io/v1 Event that watch uses.
type auditEvent struct {
	Kind      string    `json:"kind"`
	ID        string    `json:"auditID"`
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Time      time.Time `json:"stageTimestamp"`
	URI       string    `json:"requestURI"`
	Agent     string    `json:"userAgent"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Response json.RawMessage `json:"responseObject"`

	object *unstructured.Unstructured // the decoded Response
}

// isWrite reports whether the event is a write to a stored object, its status or its scale.
func (e *auditEvent) isWrite() bool {
	return e.Stage == "ResponseComplete" && e.Status.Code < http.StatusBadRequest && !e.query().Has("dryRun") &&
		slices.Contains([]string{"", "status", "scale"}, e.ObjectRef.Subresource) &&
		slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, e.Verb) &&
		!slices.Contains([]string{"authentication.k8s.io", "authorization.k8s.io"}, e.ObjectRef.Group)
}

// query returns the parameters of the request.
func (e *auditEvent) query() url.Values {
	u, err := url.ParseRequestURI(e.URI)
	if err != nil {
		return nil
	}
	return u.Query()
}

// manager returns the field manager of a write: the name in the request, or the name that a server derives from the
// user agent.
func (e *auditEvent) manager() string {
	return cmp.Or(e.query().Get("fieldManager"), managedfields.ManagerFromUserAgent(e.Agent))
}

// namespace returns the namespace that contains the object; "" if the object is cluster-scoped.
func (e *auditEvent) namespace() string {
	if e.ObjectRef.Group == "" && e.ObjectRef.Resource == "namespaces" {
		return "" // the reference has the Namespace's own name
	}
	return e.ObjectRef.Namespace
}

// side returns the writer. For a patch, the operation is empty, because the event does not contain the patch's type.
func (e *auditEvent) side() fights.Side {
	side := fights.Side{Manager: e.manager(), Subresource: e.ObjectRef.Subresource}
	switch e.Verb {
	case "create", "update":
		side.Operation = metav1.ManagedFieldsOperationUpdate
	case "apply":
		side.Operation = metav1.ManagedFieldsOperationApply
	}
	return side
}

// auditLog is an audit log that is being read. An API server writes an event when the request ends, so the events are
// nearly sorted by time: no event is more than maxDelay older than an event before it.
type auditLog struct {
	name   string
	lines  *bufio.Reader
	line   int
	latest time.Time // the time of the latest write
}

const maxDelay = 10 * time.Second

// readAuditLogs observes the writes that audit logs record, merged by time. An event that is in several logs is
// observed once. At the end, readAuditLogs prints the resources with writes that it could not observe because their
// events have no response body.
//
// The next event is always read from the log that is furthest behind: the log whose last write so far has the earliest
// time. An event is observed as soon as all logs are more than maxDelay past its time. So memory holds only the events
// of a period of about maxDelay.
func (w *watcher) readAuditLogs(files []string) (err error) {
	var logs []*auditLog
	for i, file := range files {
		in := w.env.Stdin
		switch {
		case slices.Contains(files[:i], file):
			continue
		case file != "-":
			opened, openErr := os.Open(w.env.Path(file))
			if openErr != nil {
				return fmt.Errorf("%s: %w", file, openErr)
			}
			defer func() { err = errors.Join(err, opened.Close()) }()
			in = opened
		}
		logs = append(logs, &auditLog{name: file, lines: bufio.NewReader(in)})
	}
	w.bodiless = map[string]bool{}
	var pending []*auditEvent // sorted by time
	for len(logs) > 0 {
		oldest := slices.MinFunc(logs, func(a, b *auditLog) int { return a.latest.Compare(b.latest) })
		e, err := w.nextWrite(oldest)
		switch {
		case errors.Is(err, io.EOF):
			logs = slices.DeleteFunc(logs, func(l *auditLog) bool { return l == oldest })
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", oldest.name, oldest.line, err)
		default:
			pending = insertEvent(pending, e)
		}
		for len(pending) > 0 && !slices.ContainsFunc(logs, func(l *auditLog) bool {
			return l.latest.Sub(pending[0].Time) <= maxDelay
		}) {
			if err := w.observeWrite(pending[0]); err != nil {
				return err
			}
			pending = pending[1:]
		}
	}
	if names := slices.Sorted(maps.Keys(w.bodiless)); len(names) > 0 {
		w.env.NoteUnread(fmt.Errorf("not watched, because the audit log has no responseObject of their writes: %s; in "+
			"the audit policy, set the level RequestResponse for them", printable.Text(strings.Join(names, ", "))))
	}
	return nil
}

// insertEvent adds an event to events that are sorted by time, unless they already contain it.
func insertEvent(events []*auditEvent, e *auditEvent) []*auditEvent {
	i := len(events)
	for i > 0 && events[i-1].Time.After(e.Time) {
		i--
	}
	for j := i - 1; j >= 0 && events[j].Time.Equal(e.Time); j-- {
		if e.ID != "" && events[j].ID == e.ID {
			return events
		}
	}
	return slices.Insert(events, i, e)
}

// nextWrite returns the next event of a log that is a write and contains an object. At the end of the log, it returns
// io.EOF.
func (w *watcher) nextWrite(l *auditLog) (*auditEvent, error) {
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return nil, err
		}
		l.line++
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		e, err := w.readAuditEvent([]byte(text))
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		if late := l.latest.Sub(e.Time); late > maxDelay {
			return nil, fmt.Errorf("expected events sorted by stageTimestamp, got one that is %s older than an "+
				"earlier one; sort the log, or pass the log of each API server with its own --audit-log",
				late.Round(time.Second))
		}
		if e.Time.After(l.latest) {
			l.latest = e.Time
		}
		return e, nil
	}
}

// readAuditEvent decodes an event. It returns nil if the event is not a write, if it contains no object, or if the
// object is not in the command line's namespace.
func (w *watcher) readAuditEvent(line []byte) (*auditEvent, error) {
	e := &auditEvent{}
	if json.Unmarshal(line, e) != nil {
		return nil, errors.New("expected an Event of audit.k8s.io in JSON") // the line may hold a Secret
	}
	if e.Kind != "Event" {
		return nil, fmt.Errorf("expected an Event of audit.k8s.io, got kind %q", e.Kind)
	}
	switch {
	case !e.isWrite():
		return nil, nil
	case w.namespace != "" && e.namespace() != w.namespace:
		return nil, nil
	case len(e.Response) == 0:
		w.bodiless[schema.GroupResource{Group: e.ObjectRef.Group, Resource: e.ObjectRef.Resource}.String()] = true
		return nil, nil
	}
	e.object = &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(e.Response, &e.object.Object); err != nil {
		return nil, errors.New(".responseObject: expected an object")
	}
	// Failed writes and some deletions have a Status as their response.
	if e.object.Object == nil || e.object.GetKind() == "Status" || e.object.GetName() == "" {
		return nil, nil
	}
	e.Response = nil
	return e, nil
}

// observeWrite passes a write to the tracker.
func (w *watcher) observeWrite(e *auditEvent) error {
	switch {
	case e.ObjectRef.Subresource == "scale":
		return w.tell(e.Time, func() []fights.Finding {
			return w.tracker.ObserveScale(e.object.Object, e.manager(), e.Time)
		})
	case e.Verb == "delete": // a second deletion changes nothing, but is not an idle write
		return w.observe(cluster.Event{Object: e.object, IsDeleted: e.object.GetDeletionTimestamp() == nil}, e.Time)
	}
	tree := secrets.Shown(e.object.Object)
	return w.tell(e.Time, func() []fights.Finding { return w.tracker.ObserveWrite(tree, e.side(), e.Time) })
}
