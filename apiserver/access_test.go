package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// access are the roles and bindings of the server of TestAccess.
const access = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: patcher}
rules:
- {verbs: [patch, get], apiGroups: [""], resources: [configmaps]}
- {verbs: [update], apiGroups: [coordination.k8s.io], resources: [leases]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: applier}
rules:
- {verbs: [patch, create], apiGroups: [""], resources: [configmaps]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: granter}
rules:
- {verbs: [create, update, patch, get], apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings,
  clusterroles]}
- {verbs: [bind], apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [patcher]}
- {verbs: [escalate], apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [free]}
- {verbs: [list], apiGroups: [""], resources: [pods, configmaps]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: impersonator}
rules:
- {verbs: [impersonate], apiGroups: [""], resources: [users], resourceNames: [applier]}
- {verbs: [impersonate], apiGroups: [""], resources: [groups], resourceNames: [blue]}
- {verbs: [impersonate], apiGroups: [""], resources: [serviceaccounts]}
- {verbs: [impersonate], apiGroups: [authentication.k8s.io], resources: [userextras/scope], resourceNames: [dev]}
- {verbs: [create], apiGroups: [""], resources: [serviceaccounts/token]}
- {verbs: [create], apiGroups: [authentication.k8s.io], resources: [tokenreviews]}
- {verbs: [create], apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews, localsubjectaccessreviews]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: patcher, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: patcher}
subjects: [{kind: User, name: patcher}, {kind: ServiceAccount, name: robot}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: applier, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: applier}
subjects: [{kind: User, name: applier}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: granter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: granter}
subjects: [{kind: User, name: granter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: impersonator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: impersonator}
subjects: [{kind: User, name: impersonator}]
`

// guarded returns a server with RBAC. The token of a user is the user's name; the administrator's token is "admin".
func guarded(t *testing.T) *apiserver.Server {
	store := newStore(t)
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	users := map[string]*user.DefaultInfo{}
	for _, name := range []string{"patcher", "applier", "granter", "impersonator", "nobody"} {
		users[name] = &user.DefaultInfo{Name: name}
	}
	server, err := apiserver.New(t.Context(), apiserver.Options{
		Store: store, Token: "admin", Authenticator: bearertoken.New(tokenfile.New(users)), Authorizer: authorizer,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	for _, document := range strings.Split(access, "\n---\n") {
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
		path := "/apis/rbac.authorization.k8s.io/v1/"
		if o.GetNamespace() != "" {
			path += "namespaces/" + o.GetNamespace() + "/"
		}
		code, body := asked{token: "admin", method: "POST", path: path + strings.ToLower(o.GetKind()) + "s",
			body: o.Object}.of(server)
		require.Equal(t, http.StatusCreated, code, body)
	}
	return server
}

// asked is a request with its token.
type asked struct {
	token, method, path string
	headers             map[string]string
	body                any // a value that is encoded as JSON, or the text of the body
}

// of sends a request and returns the status code and the body of the response.
func (a asked) of(h http.Handler) (int, string) {
	text, ok := a.body.(string)
	if !ok && a.body != nil {
		data, err := json.Marshal(a.body)
		if err != nil {
			return 0, err.Error()
		}
		text = string(data)
	}
	r := httptest.NewRequest(a.method, a.path, strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	if a.method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range a.headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Paths in TestAccess.
const (
	core   = "/api/v1/namespaces/default/"
	grants = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
)

func intentOf(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {k: v}}"
}

func roleOf(name, verbs, resource string) string {
	return `{"metadata":{"name":"` + name + `"},"rules":[{"verbs":["` + verbs + `"],"apiGroups":[""],"resources":["` +
		resource + `"]}]}`
}

func bindingOf(name, kind, role string) string {
	return `{"metadata":{"name":"` + name + `"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind +
		`","name":"` + role + `"}}`
}

var accessRows = []struct {
	name string
	asked
	code    int
	message string // contained in the response
	why     string
}{
	{"no rule", asked{"nobody", "GET", core + "configmaps", nil, nil}, 403,
		`configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API group \"\" in the namespace ` +
			`\"default\"`, "what is not allowed is forbidden"},
	{"no rule for a path", asked{"nobody", "GET", "/metrics", nil, nil}, 403,
		`forbidden: User \"nobody\" cannot get path \"/metrics\"`, "paths have rules too"},
	{"a path for all who are known", asked{"nobody", "GET", "/version", nil, nil}, 200, "gitVersion", "system:discovery"},
	{"a verb that is no verb", asked{"nobody", "BREW", core + "configmaps/a", nil, nil}, 403, "forbidden",
		"a method is not served before it is allowed"},
	{"apply that creates, with patch only", asked{"patcher", "PATCH", core + "configmaps/new?fieldManager=m", nil,
		intentOf("new")}, 403,
		`configmaps \"new\" is forbidden: User \"patcher\" cannot create resource`,
		"apply that creates needs create beside patch"},
	{"apply that creates, tried out", asked{"patcher", "PATCH", core + "configmaps/new?fieldManager=m&dryRun=All", nil,
		intentOf("new")}, 403, "cannot create", "a dry run needs the same"},
	{"apply that creates", asked{"applier", "PATCH", core + "configmaps/new?fieldManager=m", nil, intentOf("new")}, 201,
		`"uid"`, "patch and create"},
	{"apply to what is there", asked{"patcher", "PATCH", core + "configmaps/new?fieldManager=m", nil, intentOf("new")},
		200,
		`"uid"`, "patch only"},
	{"update that creates, with update only",
		asked{"patcher", "PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/new", nil,
			`{"metadata":{"name":"new"}}`}, 403,
		`leases.coordination.k8s.io \"new\" is forbidden: User \"patcher\" cannot create resource`,
		"update that creates needs create beside update"},
	{"in another namespace", asked{"applier", "PATCH", "/api/v1/namespaces/kube-system/configmaps/new?fieldManager=m",
		nil, intentOf("new")}, 403, "cannot patch", "a RoleBinding is of its namespace"},
	{"a subresource", asked{"patcher", "PATCH", core + "configmaps/new/status?fieldManager=m", nil, intentOf("new")}, 403,
		"cannot patch resource \\\"configmaps/status\\\"", "it has rules of its own"},
	{"a path below a subresource", asked{"admin", "GET", core + "pods/p/status/x", nil, nil}, 404,
		"could not find the requested resource", "subresources have nothing below them"},
	{"a list by name", asked{"patcher", "GET", core + "configmaps?fieldSelector=metadata.name=new", nil, nil}, 403,
		"cannot list", "the verb is list all the same"},

	{"grant what one may", asked{"granter", "POST", grants + "roles", nil, roleOf("own", "list", "pods")}, 201, "own",
		"they list pods themselves"},
	{"grant what one may not", asked{"granter", "POST", grants + "roles", nil, roleOf("more", "delete", "pods")}, 403,
		`attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], ` +
			`Verbs:[\"delete\"]}`, "nobody may grant what they may not do"},
	{"leave the rules as they are", asked{"granter", "PATCH", grants + "roles/own?fieldManager=m", nil,
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: own, labels: {a: b}}}"}, 200, "own",
		"labels grant nothing"},
	{"escalate by a create", asked{"granter", "POST", grants + "roles", nil, roleOf("free", "delete", "pods")}, 403,
		"not currently held", "the request of a create has no name, whatever the name of the object is"},
	{"escalate", asked{"granter", "PUT", grants + "roles/free", nil, roleOf("free", "delete", "pods")}, 201, "free",
		"the verb is allowed for this name"},
	{"bind what one may bind", asked{"granter", "POST", grants + "rolebindings", nil,
		bindingOf("b", "ClusterRole", "patcher")}, 201, "patcher", "the verb bind is allowed for it"},
	{"bind what one may not", asked{"granter", "POST", grants + "rolebindings", nil,
		bindingOf("c", "ClusterRole", "cluster-admin")}, 403, "not currently held", "its rules are more than theirs"},
	{"bind what one has", asked{"granter", "POST", grants + "rolebindings", nil, bindingOf("d", "Role", "own")}, 201,
		"own",
		"its rules are theirs"},
	{"bind a Role that does not exist", asked{"granter", "POST", grants + "rolebindings", nil, bindingOf("e", "Role",
		"not-there")}, 404,
		`\"not-there\" not found`,
		"what it will be is not known: the answer is about the Role"},
	{"bind a ClusterRole that does not exist", asked{"granter", "POST", grants + "rolebindings", nil, bindingOf("e",
		"ClusterRole", "not-there")}, 404,
		`\"not-there\" not found`, "the same of the other kind"},
	{"the administrator binds what does not exist", asked{"admin", "POST", grants + "rolebindings", nil, bindingOf("f",
		"Role", "not-there")}, 201, "not-there", "system:masters may"},
	{"aggregate anything", asked{"granter", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", nil,
		`{"metadata":{"name":"agg"},"aggregationRule":{"clusterRoleSelectors":[{}]}}`}, 403,
		"must have cluster-admin privileges", "it may come to select everything"},
	{"the administrator grants", asked{"admin", "PUT", grants + "roles/free", nil, roleOf("free", "delete", "secrets")},
		200, "free", "system:masters may"},
	{"escalate what is there", asked{"granter", "PUT", grants + "roles/free", nil, roleOf("free", "create", "pods")}, 200,
		"free", "the verb is allowed for this name"},

	{"impersonate", asked{"impersonator", "GET", core + "configmaps/new",
		map[string]string{"Impersonate-User": "applier"}, nil}, 403, `User \"applier\" cannot get`,
		"it is the other who may or may not"},
	{"impersonate to apply", asked{"impersonator", "PATCH", core + "configmaps/as?fieldManager=m",
		map[string]string{"Impersonate-User": "applier", "Impersonate-Group": "blue", "Impersonate-Extra-Scope": "dev"},
		intentOf("as")}, 201, `"uid"`, "users, groups and extra values are allowed one by one"},
	{"impersonate another", asked{"impersonator", "GET", core + "configmaps/new",
		map[string]string{"Impersonate-User": "patcher"}, nil}, 403,
		`User \"impersonator\" cannot impersonate resource \"users\"`, "names are looked at"},
	{"impersonate a master", asked{"impersonator", "GET", core + "configmaps/new",
		map[string]string{"Impersonate-User": "applier", "Impersonate-Group": "system:masters"}, nil}, 403,
		`cannot impersonate resource \"groups\"`, "a group is allowed for itself"},
	{"impersonate nobody", asked{"impersonator", "GET", core + "configmaps/new",
		map[string]string{"Impersonate-Group": "blue"}, nil}, 400, "without impersonating a user", "a group is of a user"},
	{"impersonate an account", asked{"impersonator", "GET", core + "configmaps/new",
		map[string]string{"Impersonate-User": "system:serviceaccount:default:robot"}, nil}, 200, `"uid"`,
		"accounts are resources of their own"},

	{"who am I", asked{"nobody", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", nil, `{}`}, 201,
		`"username":"nobody","groups":["system:authenticated"]`, "everybody who is known may ask"},
	{"may I", asked{"patcher", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil,
		`{"spec":{"resourceAttributes":{"verb":"patch","resource":"configmaps","namespace":"default"}}}`}, 201,
		`"status":{"allowed":true`, "a rule allows it"},
	{"may I not", asked{"patcher", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil,
		`{"spec":{"resourceAttributes":{"verb":"patch","resource":"configmaps"}}}`}, 201, `"status":{"allowed":false}`,
		"no rule allows it in all namespaces"},
	{"may I what", asked{"patcher", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, `{"spec":{}}`},
		422, "exactly one of nonResourceAttributes or resourceAttributes must be specified", "a question asks something"},
	{"what may I", asked{"patcher", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", nil,
		`{"spec":{"namespace":"default"}}`}, 201, `{"verbs":["patch","get"],"apiGroups":[""],"resources":["configmaps"]}`,
		"rules of bindings in the namespace"},
	{"may they", asked{"impersonator", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", nil,
		`{"spec":{"user":"granter","nonResourceAttributes":{"verb":"get","path":"/version"}}}`}, 201, `"allowed":false`,
		"the groups are those of the question"},
	{"may whom", asked{"impersonator", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", nil,
		`{"spec":{"nonResourceAttributes":{"verb":"get","path":"/version"}}}`}, 422,
		"at least one of user or group must be specified", "a question is about somebody"},
	{"may they here", asked{"impersonator", "POST",
		"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", nil,
		`{"spec":{"user":"patcher","resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"default"}}}`},
		201, `"allowed":true`, "a question within one namespace"},
	{"read a question", asked{"admin", "GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", nil, nil}, 405,
		"does not allow this method", "questions are not stored"},
	{"whose token", asked{"impersonator", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", nil,
		`{"spec":{"token":"granter"}}`}, 201, `"authenticated":true,"user":{"username":"granter"`, "it is known"},
	{"nobody's token", asked{"impersonator", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", nil,
		`{"spec":{"token":"x"}}`}, 201, `"status":{"user":{},"error":"invalid bearer token"}`, "that is an answer too"},
}

func TestAccess(t *testing.T) {
	server := guarded(t)
	for _, c := range accessRows {
		t.Run(c.name, func(t *testing.T) {
			code, body := c.of(server)
			require.Equal(t, c.code, code, "%s\n%s", c.why, body)
			require.Contains(t, body, c.message, c.why)
		})
	}
}

// TestAccountTokens checks that the token of a ServiceAccount is valid until it expires or the ServiceAccount is
// deleted.
func TestAccountTokens(t *testing.T) {
	store := memory.New(memory.Options{})
	defer func() { require.NoError(t, store.Close()) }()
	var current clock
	current.set(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	server, err := apiserver.New(t.Context(), apiserver.Options{Store: store, Token: "admin", Now: current.get})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	const path = "/api/v1/namespaces/default/serviceaccounts"
	token := func(spec string) (int, string) {
		code, body := asked{token: "admin", method: "POST", path: path + "/robot/token",
			body: `{"spec":` + spec + `}`}.of(server)
		if code != http.StatusCreated {
			return code, body
		}
		var o authenticationv1.TokenRequest
		require.NoError(t, json.Unmarshal([]byte(body), &o))
		return code, o.Status.Token
	}
	whoami := func(token string) (int, string) {
		return asked{token: token, method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
			body: `{}`}.of(server)
	}
	code, body := token(`{}`)
	require.Equal(t, 404, code, body)
	code, body = asked{token: "admin", method: "POST", path: path, body: `{"metadata":{"name":"robot"}}`}.of(server)
	require.Equal(t, 201, code, body)
	code, good := token(`{"expirationSeconds":3600}`)
	require.Equal(t, 201, code)
	code, body = whoami(good)
	require.Equal(t, 201, code, body)
	require.Contains(t, body, `"username":"system:serviceaccount:default:robot"`)
	require.Contains(t, body, `"groups":["system:serviceaccounts","system:serviceaccounts:default",`+
		`"system:authenticated"]`)

	code, body = token(`{"expirationSeconds":1}`)
	require.Equal(t, 422, code, body)
	_, other := token(`{"audiences":["elsewhere"]}`)
	code, body = whoami(other)
	require.Equal(t, 401, code, "for another audience: %s", body)
	parts := strings.Split(good, ".")
	code, body = whoami("eyJhbGciOiJub25lIn0." + parts[1] + ".")
	require.Equal(t, 401, code, "not signed: %s", body)
	code, body = whoami(parts[0] + "." + parts[1] + "A." + parts[2])
	require.Equal(t, 401, code, "signed for something else: %s", body)

	_, fresh := token(`{}`)
	code, body = asked{token: "admin", method: "DELETE", path: path + "/robot"}.of(server)
	require.Equal(t, 200, code, body)
	code, body = asked{token: "admin", method: "POST", path: path, body: `{"metadata":{"name":"robot"}}`}.of(server)
	require.Equal(t, 201, code, body)
	code, body = whoami(fresh)
	require.Equal(t, 401, code, "another account of the name: %s", body)
}

// TestTokenReviewAudiences checks that a TokenReview accepts a token that has at least one of the requested audiences,
// and returns the audiences that both have.
func TestTokenReviewAudiences(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	h.must("POST", accounts, "", `{"metadata":{"name":"sa"}}`)
	const api = "https://kubernetes.default.svc"
	for _, row := range []struct {
		name, token, asked string // lists of audiences
		want               []any  // nil: not authenticated
	}{
		{"for whom it is", `"vault"`, `"vault"`, []any{"vault"}},
		{"for one of those who ask", `"vault"`, `"other","vault"`, []any{"vault"}},
		{"for the API, asked by another", ``, `"vault"`, nil},
		{"for another, asked by nobody in particular", `"vault"`, ``, nil},
		{"for the API, asked by nobody in particular", ``, ``, []any{api}},
	} {
		t.Run(row.name, func(t *testing.T) {
			request := h.must("POST", accounts+"/sa/token", "", `{"spec":{"audiences":[`+row.token+`]}}`)
			token, _, _ := unstructured.NestedString(request.Object, "status", "token")
			review := h.must("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "",
				`{"spec":{"token":"`+token+`","audiences":[`+row.asked+`]}}`)
			status := review.Object["status"].(map[string]any)
			require.Equal(t, row.want != nil, status["authenticated"] == true, status)
			if row.want != nil {
				require.Equal(t, row.want, status["audiences"])
			}
		})
	}
}

// TestFrontProxy shows difference 566.
func TestFrontProxy(t *testing.T) {
	server := guarded(t)
	code, body := asked{"", "GET", core + "configmaps", map[string]string{"X-Remote-User": "admin",
		"X-Remote-Group": "system:masters"}, nil}.of(server)
	require.Equal(t, http.StatusUnauthorized, code, body)
	code, body = asked{"nobody", "GET", core + "configmaps", map[string]string{"X-Remote-User": "admin",
		"X-Remote-Group": "system:masters"}, nil}.of(server)
	require.Equal(t, http.StatusForbidden, code, body)
	require.Contains(t, body, `User \"nobody\" cannot list`)
}
