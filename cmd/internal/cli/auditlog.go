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

// auditEvent has the fields of an audit.k8s.io/v1 Event that are read.
type auditEvent struct {
	Kind      string    `json:"kind"`
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Time      time.Time `json:"stageTimestamp"`
	URI       string    `json:"requestURI"`
	Agent     string    `json:"userAgent"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Response json.RawMessage `json:"responseObject"`
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

// readAuditLogs observes the writes that audit logs record. It prints the resources with writes that could not be
// observed because their events have no response body.
func (w *watcher) readAuditLogs(files []string) error {
	w.bodiless = map[string]bool{}
	for _, file := range files {
		if err := w.readAuditLog(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if names := slices.Sorted(maps.Keys(w.bodiless)); len(names) > 0 {
		w.env.NoteUnread(fmt.Errorf("not watched, because the audit log has no responseObject of their writes: %s; in "+
			"the audit policy, set the level RequestResponse for them", printable.Text(strings.Join(names, ", "))))
	}
	return nil
}

func (w *watcher) readAuditLog(file string) (err error) {
	in := w.env.Stdin
	if file != "-" {
		opened, err := os.Open(w.env.Path(file))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		in = opened
	}
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			if err := w.readAuditEvent([]byte(text)); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (w *watcher) readAuditEvent(line []byte) error {
	var e auditEvent
	if json.Unmarshal(line, &e) != nil {
		return errors.New("expected an Event of audit.k8s.io in JSON") // the line may hold a Secret
	}
	if e.Kind != "Event" {
		return fmt.Errorf("expected an Event of audit.k8s.io, got kind %q", e.Kind)
	}
	switch {
	case !e.isWrite():
		return nil
	case len(e.Response) == 0:
		w.bodiless[schema.GroupResource{Group: e.ObjectRef.Group, Resource: e.ObjectRef.Resource}.String()] = true
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(e.Response, &obj.Object); err != nil {
		return errors.New(".responseObject: expected an object")
	}
	// Failed writes and some deletions have a Status as their response.
	if obj.Object == nil || obj.GetKind() == "Status" || obj.GetName() == "" {
		return nil
	}
	switch {
	case e.ObjectRef.Subresource == "scale":
		return w.tell(e.Time, func() []fights.Finding { return w.tracker.ObserveScale(obj.Object, e.manager(), e.Time) })
	case e.Verb == "delete": // a second deletion changes nothing, but is not an idle write
		return w.observe(cluster.Event{Object: obj, IsDeleted: obj.GetDeletionTimestamp() == nil}, e.Time)
	}
	tree := secrets.Shown(obj.Object)
	return w.tell(e.Time, func() []fights.Finding { return w.tracker.ObserveWrite(tree, e.side(), e.Time) })
}
