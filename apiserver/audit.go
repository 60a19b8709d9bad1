package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/verbs"
)

// Audit records requests as kube-apiserver does, in events of audit.k8s.io. The zero Audit records nothing.
//
// Bodies are recorded as JSON, whatever clients send and accept. Watches have no bodies, and one event when
// they end.
type Audit struct {
	// Policy decides what is recorded of a request. That of a policy file is
	// policy.NewPolicyRuleEvaluator of k8s.io/apiserver/pkg/audit/policy.
	Policy audit.PolicyRuleEvaluator
	// Sink gets the events, several at a time if requests end at the same time. A log is NewBackend of
	// k8s.io/apiserver/plugin/pkg/audit/log.
	Sink audit.Sink
}

// auditID is the header that names the events of a request.
const auditID = "Audit-Id"

// audited records one request. A nil audited records nothing.
type audited struct {
	sink    audit.Sink
	config  audit.RequestAuditConfig
	event   auditinternal.Event
	now     func() time.Time
	request bytes.Buffer
	w       *recordedWriter
	media   string // of the body of the request
}

// recordedWriter keeps the body of a response.
type recordedWriter struct {
	http.ResponseWriter
	body bytes.Buffer
	keep bool
}

func (w *recordedWriter) Write(data []byte) (int, error) {
	if w.keep {
		w.body.Write(data)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w *recordedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recordedBody is the body of a request whose bytes are kept when they are read.
type recordedBody struct {
	io.Reader
	io.Closer
}

// audit begins to record a request of a user, if the policy wants it. It wraps the writer and the body.
func (s *Server) audit(w *startedWriter, r *http.Request, info *apirequest.RequestInfo, as user.Info) *audited {
	o := s.options.Audit
	if o.Sink == nil || o.Policy == nil {
		return nil
	}
	ctx := apirequest.WithUser(r.Context(), as)
	config := o.Policy.EvaluatePolicyRule(verbs.Attributes(ctx, info))
	if config.Level == auditinternal.LevelNone {
		return nil
	}
	a := &audited{sink: o.Sink, config: config, now: s.options.Now}
	a.begin(w, r, info, as)
	a.send(auditinternal.StageRequestReceived)
	return a
}

func (a *audited) begin(w *startedWriter, r *http.Request, info *apirequest.RequestInfo, as user.Info) {
	id := r.Header.Get(auditID)
	if id == "" {
		id = uuid.NewString()
	}
	w.Header().Set(auditID, id)
	a.event = auditinternal.Event{
		Level: a.config.Level, AuditID: types.UID(id), RequestURI: r.URL.RequestURI(), Verb: info.Verb,
		User:      authenticationv1.UserInfo{Username: as.GetName(), UID: as.GetUID(), Groups: as.GetGroups()},
		UserAgent: r.UserAgent(), RequestReceivedTimestamp: metav1.NewMicroTime(a.now()),
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		a.event.SourceIPs = []string{host}
	}
	if info.IsResourceRequest {
		a.event.ObjectRef = &auditinternal.ObjectReference{
			Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
			APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		}
	}
	if a.config.Level.GreaterOrEqual(auditinternal.LevelRequest) && info.IsResourceRequest && r.Body != nil {
		a.media, _, _ = mime.ParseMediaType(r.Header.Get("Content-Type"))
		r.Body = recordedBody{io.TeeReader(r.Body, &a.request), r.Body}
	}
	a.w = &recordedWriter{
		ResponseWriter: w.ResponseWriter,
		keep: a.config.Level.GreaterOrEqual(auditinternal.LevelRequestResponse) && info.IsResourceRequest &&
			info.Verb != "watch",
	}
	w.ResponseWriter = a.w
}

// end records the response.
func (a *audited) end(w *startedWriter) {
	if a == nil {
		return
	}
	code := int32(w.code)
	if code == 0 {
		code = http.StatusOK
	}
	a.event.ResponseStatus = &metav1.Status{Code: code}
	a.event.RequestObject = a.object(a.media, a.request.Bytes())
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	a.event.ResponseObject = a.object(media, a.w.body.Bytes())
	if code >= http.StatusBadRequest && a.event.ResponseObject != nil {
		status := &metav1.Status{}
		if json.Unmarshal(a.event.ResponseObject.Raw, status) == nil && status.Status != "" {
			a.event.ResponseStatus = status
		}
	}
	a.send(auditinternal.StageResponseComplete)
}

// object returns a body as JSON; nil for none, and for one that can't be decoded.
func (a *audited) object(media string, body []byte) *runtime.Unknown {
	if len(body) == 0 {
		return nil
	}
	body, err := builtin.ToJSON(media, body)
	if err != nil {
		return nil
	}
	if a.config.OmitManagedFields {
		body = withoutManagedFields(body)
	}
	return &runtime.Unknown{Raw: bytes.TrimSpace(body), ContentType: runtime.ContentTypeJSON}
}

// withoutManagedFields returns an object or a list without managed fields.
func withoutManagedFields(body []byte) []byte {
	u := &unstructured.Unstructured{}
	if json.Unmarshal(body, &u.Object) != nil {
		return body // an array, of a JSON Patch
	}
	u.SetManagedFields(nil)
	if items, ok := u.Object["items"].([]any); ok {
		for _, item := range items {
			if tree, ok := item.(map[string]any); ok {
				(&unstructured.Unstructured{Object: tree}).SetManagedFields(nil)
			}
		}
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return body
	}
	return data
}

// send sends an event of a stage, unless the policy omits it.
func (a *audited) send(stage auditinternal.Stage) {
	if slices.Contains(a.config.OmitStages, stage) {
		return
	}
	event := a.event
	event.Stage, event.StageTimestamp = stage, metav1.NewMicroTime(a.now())
	a.sink.ProcessEvents(&event)
}
