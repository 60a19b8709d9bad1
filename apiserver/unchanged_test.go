package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// TestUnchangedIsExact sends random requests to two servers, of which one remembers the applies that changed nothing:
// their responses are the same, whatever admission does in between.
func TestUnchangedIsExact(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var mode atomic.Int32 // of admission, of both servers
			server := func(remembers bool) *host {
				now, uids := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 0
				options := apiserver.Options{
					Now:    func() time.Time { return now },
					NewUID: func() types.UID { uids++; return types.UID(fmt.Sprint(uids)) },
					Hooks: admission.Hooks{
						Mutate: func(_ context.Context, w *admission.Write) error {
							if w.Operation == admission.Update && mode.Load() == 1 {
								w.Object.SetAnnotations(map[string]string{"by": "admission"})
							}
							return nil
						},
						Validate: func(context.Context, *admission.Write) ([]string, error) {
							switch mode.Load() {
							case 2:
								return []string{"take care"}, nil
							case 3:
								return nil, errors.New("not today")
							}
							return nil, nil
						},
					},
				}
				if !remembers {
					options.Hooks.Default = func(admission.Object) {}
				}
				return newHost(t, options)
			}
			hosts := []*host{server(true), server(false)}
			r := rand.New(rand.NewPCG(seed, 0))
			for range 120 {
				method, path, kind, body := randomWrite(r)
				switch r.IntN(12) {
				case 0:
					mode.Store(r.Int32N(4))
				case 1:
					mode.Store(0)
				}
				var responses []string
				for _, h := range hosts {
					w := h.ask(method, path, kind, body)
					body := generated.ReplaceAllString(w.Body.String(), "")
					responses = append(responses, fmt.Sprint(w.Code, w.Header()["Warning"], body))
				}
				require.Equal(t, responses[1], responses[0], "%s %s %s", method, path, body)
			}
			require.Positive(t, apiserver.Unchanged(hosts[0].Server))
			require.Zero(t, apiserver.Unchanged(hosts[1].Server))
		})
	}
}

// generated is what is generated in a dry run that creates.
var generated = regexp.MustCompile(`"(uid|creationTimestamp)":"[^"]*",`)

// randomWrite returns one of a few requests, most of which are applies, about one of two objects.
func randomWrite(r *rand.Rand) (method, path, kind, body string) {
	name := []string{"a", "b"}[r.IntN(2)]
	path = configMaps + "/" + name
	data := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"x":"%d"}}`, name,
		r.IntN(3)/2)
	switch r.IntN(20) {
	case 0:
		return http.MethodDelete, path, "", ""
	case 1:
		return http.MethodPatch, path + "?fieldManager=c", mergePatch, `{"data":{"y":"1"}}`
	case 2:
		return http.MethodPatch, path + "?fieldManager=c", mergePatch, `{"metadata":{"annotations":null}}`
	case 3:
		return http.MethodPatch, path + "?fieldManager=a&dryRun=All", applyPatch, data
	case 4, 5, 6: // a duplicate is a warning
		return http.MethodPatch, path + "?fieldManager=a", applyPatch, "kind: ConfigMap\napiVersion: v1\n" +
			"metadata: {name: " + name + "}\ndata: {x: '0', x: '1'}\n"
	}
	manager := []string{"a", "a", "b&force=true"}[r.IntN(3)]
	return http.MethodPatch, path + "?fieldManager=" + manager, applyPatch, data
}
