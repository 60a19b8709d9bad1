package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/rbac"
	clusterroles "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased"
	clusterrolebindings "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased"
	roles "k8s.io/kubernetes/pkg/registry/rbac/role/policybased"
	rolebindings "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	certapproval "k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	certsigning "k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	certsubject "k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	upstream "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// A grantReference decides which requests are forbidden. It runs Kubernetes' own code on the roles and bindings of a
// world: the filters for authorization and impersonation, the REST storages that check for privilege escalation, over a
// storage that stores nothing, and the admission plugins for CertificateSigningRequests.
type grantReference struct {
	world      *grantWorld
	authorizer authorizer.Authorizer
	rules      validation.AuthorizationRuleResolver
	handler    http.Handler
	isAllowed  bool // whether authorization allowed the last request
}

func newGrantReference(w *grantWorld) *grantReference {
	r := &grantReference{
		world: w, authorizer: upstream.New(w, w, w, w), rules: validation.NewDefaultRuleResolver(w, w, w, w),
	}
	h := http.Handler(http.HandlerFunc(r.serve))
	h = filters.WithAuthorization(h, r.authorizer, legacyscheme.Codecs)
	h = impersonation.WithConstrainedImpersonation(h, r.authorizer, legacyscheme.Codecs)
	r.handler = filters.WithRequestInfo(h, &apirequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
	return r
}

// forbids reports whether a request of a user is forbidden.
func (r *grantReference) forbids(q grantRequest, as grantUser) bool {
	r.isAllowed = false
	request := q.request()
	info := &user.DefaultInfo{Name: as.name, Groups: as.groups}
	request = request.WithContext(apirequest.WithUser(request.Context(), info))
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request)
	return w.Code == http.StatusForbidden
}

// decision describes the last decision: the kind of request, and the check that decided.
func (r *grantReference) decision(q grantRequest, isForbidden bool) string {
	about := "objects"
	switch {
	case q.impersonated != nil:
		about = "impersonation"
	case strings.HasPrefix(q.path, csrPath):
		about = "signing"
	case strings.HasPrefix(q.path, grantAPI):
		about = "grant by " + q.method
	case !strings.Contains(q.path, "v1"):
		about = "path"
	}
	switch {
	case !isForbidden:
		return about + ": allowed"
	case r.isAllowed:
		return about + ": escalation"
	}
	return about + ": not authorized"
}

// serve checks an authorized request for privilege escalation.
func (r *grantReference) serve(w http.ResponseWriter, q *http.Request) {
	r.isAllowed = true
	if err := r.check(q); apierrors.IsForbidden(err) {
		w.WriteHeader(http.StatusForbidden)
	}
}

func (r *grantReference) check(q *http.Request) error {
	info, _ := apirequest.RequestInfoFrom(q.Context())
	body, err := io.ReadAll(q.Body)
	isWrite := info.Verb == "create" || info.Verb == "update" || info.Verb == "patch"
	if err != nil || len(body) == 0 || !info.IsResourceRequest || !isWrite {
		return err
	}
	ctx := apirequest.WithNamespace(q.Context(), info.Namespace)
	switch info.APIGroup {
	case "certificates.k8s.io":
		return r.checkSigning(ctx, info, body)
	case rbacv1.GroupName:
		return r.checkGrant(ctx, info, body)
	}
	isApply := strings.HasPrefix(q.Header.Get("Content-Type"), applyPatch)
	if info.Name != "a" && info.Subresource == "" && isApply {
		return r.checkCreate(ctx, info)
	}
	return nil
}

// checkCreate checks for permission to create the object that an update or an apply creates.
func (r *grantReference) checkCreate(ctx context.Context, info *apirequest.RequestInfo) error {
	asker, _ := apirequest.UserFrom(ctx)
	decision, _, _ := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: asker, Verb: "create", Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		Resource: info.Resource, Name: info.Name, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name,
		errors.New("cannot create"))
}

// unstored is the storage below the REST storages that check for privilege escalation. It has the live object, if one
// exists.
type unstored struct {
	rest.StandardStorage
	live, empty runtime.Object
	create      func() error
}

func (s *unstored) Create(
	_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	return obj, nil
}

func (s *unstored) Update(
	ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	_ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	live := s.live
	if live == nil {
		live = s.empty
	}
	obj, err := info.UpdatedObject(ctx, live)
	if err == nil && s.live == nil {
		err = s.create()
	}
	return obj, s.live == nil, err
}

// checkGrant checks a write of a role or binding for privilege escalation.
func (r *grantReference) checkGrant(ctx context.Context, info *apirequest.RequestInfo, body []byte) error {
	inner := &unstored{create: func() error { return r.checkCreate(ctx, info) }}
	var storage rest.CreaterUpdater
	var versioned, live runtime.Object
	w, key := r.world, [2]string{info.Namespace, info.Name}
	switch info.Resource {
	case "roles":
		storage = roles.NewStorage(inner, r.authorizer, r.rules)
		versioned, inner.empty = &rbacv1.Role{}, &rbac.Role{}
		if found := w.roles[key]; found != nil {
			live = found
		}
	case "clusterroles":
		storage = clusterroles.NewStorage(inner, r.authorizer, r.rules)
		versioned, inner.empty = &rbacv1.ClusterRole{}, &rbac.ClusterRole{}
		if found, err := w.GetClusterRole(ctx, info.Name); err == nil {
			live = found
		}
	case "rolebindings":
		storage = rolebindings.NewStorage(inner, r.authorizer, r.rules)
		versioned, inner.empty = &rbacv1.RoleBinding{}, &rbac.RoleBinding{}
		if found := w.roleBindings[key]; found != nil {
			live = found
		}
	case "clusterrolebindings":
		storage = clusterrolebindings.NewStorage(inner, r.authorizer, r.rules)
		versioned, inner.empty = &rbacv1.ClusterRoleBinding{}, &rbac.ClusterRoleBinding{}
		if found := w.clusterRoleBindings[info.Name]; found != nil {
			live = found
		}
	}
	if live != nil {
		live = live.DeepCopyObject()
		stored, _ := meta.Accessor(live)
		stored.SetUID("1") // the body of an update lacks the UID, the result of an apply has it
		inner.live = internalGrant(live)
	}
	if err := json.Unmarshal(body, versioned); err != nil {
		return err
	}
	if info.Verb == "patch" && live != nil {
		keepUnapplied(versioned, live)
	}
	obj := internalGrant(versioned)
	if info.Verb == "create" {
		_, err := storage.Create(ctx, obj, nil, &metav1.CreateOptions{})
		return err
	}
	_, _, err := storage.Update(ctx, info.Name, rest.DefaultUpdatedObjectInfo(obj), nil, nil, false,
		&metav1.UpdateOptions{})
	return err
}

// keepUnapplied adds to an applied object the fields of the live object that it lacks: an apply does not remove fields
// of other managers.
func keepUnapplied(applied, live runtime.Object) {
	m, _ := meta.Accessor(applied)
	kept, _ := meta.Accessor(live)
	m.SetUID(kept.GetUID())
	labels := maps.Clone(kept.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, m.GetLabels())
	m.SetLabels(labels)
	switch applied := applied.(type) {
	case *rbacv1.ClusterRole:
		if applied.AggregationRule == nil {
			applied.AggregationRule = live.(*rbacv1.ClusterRole).AggregationRule
		}
	case *rbacv1.RoleBinding:
		if len(applied.Subjects) == 0 {
			applied.Subjects = live.(*rbacv1.RoleBinding).Subjects
		}
	case *rbacv1.ClusterRoleBinding:
		if len(applied.Subjects) == 0 {
			applied.Subjects = live.(*rbacv1.ClusterRoleBinding).Subjects
		}
	}
}

func internalGrant(versioned runtime.Object) runtime.Object {
	obj, err := legacyscheme.Scheme.ConvertToVersion(versioned, rbac.SchemeGroupVersion)
	if err != nil {
		panic(fmt.Sprintf("%T: %v", versioned, err))
	}
	return obj
}

// checkSigning checks a write of a CertificateSigningRequest.
func (r *grantReference) checkSigning(ctx context.Context, info *apirequest.RequestInfo, body []byte) error {
	versioned := &certificatesv1.CertificateSigningRequest{}
	if err := json.Unmarshal(body, versioned); err != nil {
		return err
	}
	converted, err := legacyscheme.Scheme.ConvertToVersion(versioned, certificates.SchemeGroupVersion)
	if err != nil {
		return err
	}
	obj := converted.(*certificates.CertificateSigningRequest)
	asker, _ := apirequest.UserFrom(ctx)
	operation, live := admission.Create, runtime.Object(nil)
	if info.Verb != "create" {
		old := obj.DeepCopy()
		old.Status = certificates.CertificateSigningRequestStatus{}
		operation, live = admission.Update, old
	}
	kind := certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
	a := admission.NewAttributesRecord(obj, live, kind, "", info.Name,
		certificatesv1.SchemeGroupVersion.WithResource(info.Resource), info.Subresource, operation, nil, true, asker)
	approval, signing := certapproval.NewPlugin(), certsigning.NewPlugin()
	approval.SetUnconditionalAuthorizer(r.authorizer)
	signing.SetUnconditionalAuthorizer(r.authorizer)
	for _, plugin := range []admission.Interface{approval, signing, certsubject.NewPlugin()} {
		if !plugin.Handles(operation) {
			continue
		}
		if err := plugin.(admission.ValidationInterface).Validate(ctx, a, nil); err != nil {
			return err
		}
	}
	return nil
}
