package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/managedfields"
)

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Kind      string    `json:"kind"`
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Time      time.Time `json:"stageTimestamp"`
	URI       string    `json:"requestURI"`
	Agent     string    `json:"userAgent"`
	ObjectRef struct {
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Response json.RawMessage `json:"responseObject"`
}

// isWrite reports whether the event is a write that was carried out, of an object, its status or its scale.
func (e *auditEvent) isWrite() bool {
	return e.Stage == "ResponseComplete" && len(e.Response) > 0 &&
		slices.Contains([]string{"", "status", "scale"}, e.ObjectRef.Subresource) &&
		slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, e.Verb)
}

// manager returns the field manager of a write: that of the request, or what a server makes of the user agent.
func (e *auditEvent) manager() string {
	if u, err := url.ParseRequestURI(e.URI); err == nil {
		if manager := u.Query().Get("fieldManager"); manager != "" {
			return manager
		}
	}
	return managedfields.ManagerFromUserAgent(e.Agent)
}

// readAuditLogs observes the writes of audit logs.
func (w *watcher) readAuditLogs(files []string) error {
	for _, file := range files {
		if err := w.readAuditLog(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
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
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.Kind != "Event" {
		return fmt.Errorf("expected an Event of audit.k8s.io, got kind %q", e.Kind)
	}
	if !e.isWrite() {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(e.Response, &obj.Object); err != nil {
		return fmt.Errorf(".responseObject: %w", err)
	}
	// A Status is the answer to a write that failed, or to a deletion.
	if obj.Object == nil || obj.GetKind() == "Status" || obj.GetName() == "" {
		return nil
	}
	if e.ObjectRef.Subresource == "scale" {
		return w.observeScale(obj.Object, e.manager(), e.Time)
	}
	isDeleted := e.Verb == "delete" && obj.GetDeletionTimestamp() == nil
	return w.observe(cluster.Event{Object: obj, IsDeleted: isDeleted}, e.Time)
}
