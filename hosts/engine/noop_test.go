package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

var gadgetKind = schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Gadget"}

// gadget has a field that is atomic, and of which the server sets a default.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Text  string `json:"text,omitempty"`
		Count int64  `json:"count,omitempty"`
		Ref   *ref   `json:"ref,omitempty"`
	} `json:"spec"`
}

type ref struct {
	Version string `json:"version,omitempty"`
	Path    string `json:"path"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if g.Spec.Ref != nil {
		r := *g.Spec.Ref
		out.Spec.Ref = &r
	}
	return &out
}

// gadgetHost is what a server gives to field managers of gadgets.
type gadgetHost struct{}

func (gadgetHost) Convert(_, _, _ any) error { return errors.New("not called") }
func (gadgetHost) ConvertToVersion(obj runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return obj, nil
}
func (gadgetHost) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("not called")
}
func (gadgetHost) Default(obj runtime.Object) {
	if r := obj.(*gadget).Spec.Ref; r != nil && r.Version == "" {
		r.Version = "v1"
	}
}
func (gadgetHost) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &gadget{TypeMeta: metav1.TypeMeta{APIVersion: "shop.example/v1", Kind: "Gadget"}}, nil
}

var gadgetTypes = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	scalar := func(kind string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{kind}}}
	}
	word := scalar("string")
	words := object(nil)
	words.AdditionalProperties = &spec.SchemaOrBool{Schema: &word}
	atomic := object(map[string]spec.Schema{"version": word, "path": word})
	atomic.Extensions = spec.Extensions{"x-kubernetes-map-type": "atomic"}
	root := object(map[string]spec.Schema{
		"apiVersion": word, "kind": word,
		"metadata": object(map[string]spec.Schema{
			"name": word, "uid": word, "resourceVersion": word, "creationTimestamp": word, "labels": words, "annotations": words,
		}),
		"spec": object(map[string]spec.Schema{"text": word, "count": scalar("integer"), "ref": atomic}),
	})
	root.Extensions = spec.Extensions{"x-kubernetes-group-version-kind": []any{
		map[string]any{"group": gadgetKind.Group, "version": gadgetKind.Version, "kind": gadgetKind.Kind},
	}}
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"gadget": &root}, false)
})

// gadgetServer stores one gadget. Its clock is set by hand.
type gadgetServer struct {
	t        testing.TB
	now      time.Time
	writers  map[string]Writer // by subresource
	known    *noOps            // nil: nothing is remembered
	stored   *gadget
	revision int
	merged   int // applies that were merged
}

func newGadgetServer(t testing.TB, remembers bool) *gadgetServer {
	s := &gadgetServer{t: t, now: time.Unix(1_800_000_000, 0), writers: map[string]Writer{}}
	clock := func() time.Time { return s.now }
	if remembers {
		s.known = newNoOps(100, clock)
	}
	converter, err := gadgetTypes()
	require.NoError(t, err)
	for _, subresource := range []string{"", "status"} {
		w, err := apimachinery.NewDefaultFieldManager(converter, gadgetHost{}, gadgetHost{}, gadgetHost{}, gadgetKind,
			gadgetKind.GroupVersion(), subresource, nil, func(o *fieldmanager.Options) { o.Clock = clock })
		require.NoError(t, err)
		s.writers[subresource] = newNumbered(w, subresource)
	}
	return s
}

// store stores an object, unless it is as it is stored, but for times of entries.
func (s *gadgetServer) store(obj runtime.Object) {
	g := obj.(*gadget)
	if s.stored != nil {
		same := g.DeepCopyObject().(*gadget)
		for i, e := range s.stored.ManagedFields {
			if i < len(same.ManagedFields) {
				same.ManagedFields[i].Time = e.Time
			}
		}
		if textOf(s.t, same) == textOf(s.t, s.stored) {
			return
		}
	}
	s.revision++
	s.stored = g.DeepCopyObject().(*gadget)
	s.stored.ResourceVersion = strconv.Itoa(s.revision)
}

func (s *gadgetServer) create(uid string) {
	obj, err := gadgetHost{}.New(gadgetKind)
	require.NoError(s.t, err)
	g := obj.(*gadget)
	g.Name, g.UID = "a", types.UID(uid)
	s.stored = nil
	s.store(g)
}

func (s *gadgetServer) update(manager string, change func(*gadget)) {
	now := s.stored.DeepCopyObject().(*gadget)
	change(now)
	out, err := s.writers[""].Update(s.stored.DeepCopyObject(), now, manager)
	require.NoError(s.t, err)
	s.store(out)
}

type applyRequest struct {
	subresource, manager string
	force                bool
	text                 string
}

// apply applies, stores, and returns what the field manager returned.
func (s *gadgetServer) apply(r applyRequest) (runtime.Object, error) {
	w := s.writers[r.subresource]
	live := s.stored.DeepCopyObject()
	before := textOf(s.t, live)
	intent := NewIntent(Request{Writer: w, Intent: []byte(r.text), Manager: r.manager, Force: r.force}, lenient, strict)
	intent.known = s.known
	merge := func() (runtime.Object, error) {
		s.merged++
		tree := map[string]any{}
		if err := intent.Decode([]byte(r.text), &tree); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return w.Apply(live, &unstructured.Unstructured{Object: tree}, r.manager, r.force)
	}
	var out runtime.Object
	var err error
	if s.known == nil {
		out, err = merge()
	} else {
		out, err = intent.Apply(live, merge)
	}
	require.Equal(s.t, before, textOf(s.t, live), "live is not changed")
	if err == nil {
		s.store(out)
	}
	return out, err
}

func textOf(t testing.TB, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func intentOf(spec string) string {
	return `{"apiVersion":"shop.example/v1","kind":"Gadget","metadata":{"name":"a"},"spec":` + spec + `}`
}

// withoutDefault is what the server changes as long as no default is set.
var withoutDefault = intentOf(`{"text":"x","ref":{"path":"p"}}`)

// TestNoOps checks when an apply is known to change nothing: each case applies once, does something, and applies again
// what changed nothing before.
func TestNoOps(t *testing.T) {
	mine := applyRequest{manager: "m", force: true, text: withoutDefault}
	for name, test := range map[string]struct {
		between func(s *gadgetServer)
		again   applyRequest
		known   bool
	}{
		"nothing happens": {again: mine, known: true},
		"time passes":     {between: func(s *gadgetServer) { s.now = s.now.Add(time.Hour) }, again: mine, known: true},
		"another manager writes another field": {
			between: func(s *gadgetServer) { s.update("other", func(g *gadget) { g.Spec.Count = 1 }) }, again: mine,
		},
		"another manager writes a field of the intent": {
			between: func(s *gadgetServer) { s.update("other", func(g *gadget) { g.Spec.Text = "y" }) }, again: mine,
		},
		"another manager takes a field by force": {
			between: func(s *gadgetServer) {
				_, err := s.apply(applyRequest{manager: "other", force: true, text: intentOf(`{"text":"y"}`)})
				require.NoError(s.t, err)
			},
			again: mine,
		},
		"another manager comes to own the same": {
			between: func(s *gadgetServer) {
				_, err := s.apply(applyRequest{manager: "other", text: intentOf(`{"text":"x"}`)})
				require.NoError(s.t, err)
			},
			again: mine,
		},
		"the managed fields are dropped": {
			between: func(s *gadgetServer) {
				s.update("other", func(g *gadget) { g.ManagedFields = []metav1.ManagedFieldsEntry{{}} })
			},
			again: mine,
		},
		"the object is created again": {between: func(s *gadgetServer) { s.create("uid-2") }, again: mine},
		"the object is created again with the same revision": {
			between: func(s *gadgetServer) { s.revision--; s.create("uid-2") }, again: mine,
		},
		"without force":       {again: applyRequest{manager: "m", text: withoutDefault}},
		"by another manager":  {again: applyRequest{manager: "n", force: true, text: withoutDefault}},
		"another subresource": {again: applyRequest{subresource: "status", manager: "m", force: true, text: withoutDefault}},
		"another text":        {again: applyRequest{manager: "m", force: true, text: withoutDefault + "\n"}},
		"another intent":      {again: applyRequest{manager: "m", force: true, text: intentOf(`{"text":"z"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			var results [2]string
			for i, remembers := range []bool{false, true} {
				s := newGadgetServer(t, remembers)
				s.create("uid-1")
				for range 2 { // the first one changes the object, the second one nothing
					_, err := s.apply(mine)
					require.NoError(t, err)
					s.now = s.now.Add(time.Second)
				}
				if test.between != nil {
					test.between(s)
				}
				merged := s.merged
				out, err := s.apply(test.again)
				if remembers {
					require.Equal(t, test.known, s.merged == merged)
				}
				results[i] = textOf(t, out) + fmt.Sprint(err) + textOf(t, s.stored)
			}
			require.Equal(t, results[0], results[1], "what is remembered makes no difference")
		})
	}
}

// TestNoOpsThatAreNotRemembered checks what is merged each time.
func TestNoOpsThatAreNotRemembered(t *testing.T) {
	t.Run("a custom resource", func(t *testing.T) {
		converter, err := gadgetTypes()
		require.NoError(t, err)
		e := &Engine{mode: Tenure}
		for _, isCustom := range []bool{false, true} {
			w, err := e.NewFieldManager(nil, isCustom, converter, gadgetHost{}, gadgetHost{}, gadgetHost{}, gadgetKind,
				gadgetKind.GroupVersion(), "", nil)
			require.NoError(t, err)
			r := Request{Writer: w}
			stored := &gadget{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1"}}
			_, ok := r.key(stored, digest{})
			require.NotEqual(t, isCustom, ok)
		}
	})
	t.Run("an intent with a warning", func(t *testing.T) {
		s := newGadgetServer(t, true)
		s.create("uid-1")
		for range 3 {
			_, err := s.apply(applyRequest{manager: "m", text: `{"kind":"Gadget",` + withoutDefault[1:]})
			require.NoError(t, err)
		}
		require.Equal(t, 3, s.merged, "a key occurs twice, which a server warns of each time")
	})
	t.Run("a conflict", func(t *testing.T) {
		s := newGadgetServer(t, true)
		s.create("uid-1")
		s.update("other", func(g *gadget) { g.Spec.Text = "y" })
		for range 3 {
			_, err := s.apply(applyRequest{manager: "m", text: withoutDefault})
			require.True(t, apierrors.IsConflict(err), "%v", err)
		}
		require.Equal(t, 3, s.merged)
	})
	t.Run("an object that is not stored", func(t *testing.T) {
		for _, g := range []*gadget{
			{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, {ObjectMeta: metav1.ObjectMeta{UID: "u"}},
			{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "0"}},
		} {
			r := Request{Writer: newNumbered(nil, "")}
			_, ok := r.key(g, digest{})
			require.False(t, ok, "%v", g)
		}
	})
	t.Run("an entry that would change its place", func(t *testing.T) {
		s := newGadgetServer(t, true)
		s.create("uid-1")
		mine := applyRequest{manager: "m", force: true, text: withoutDefault}
		_, err := s.apply(mine)
		require.NoError(t, err)
		s.now = s.now.Add(10 * time.Second)
		_, err = s.apply(applyRequest{manager: "n", text: intentOf(`{"count":1}`)})
		require.NoError(t, err)
		s.now = s.now.Add(-5 * time.Second) // another server may be fast
		_, err = s.apply(mine)
		require.NoError(t, err)
		merged := s.merged
		_, err = s.apply(mine)
		require.NoError(t, err)
		require.Equal(t, merged, s.merged)
		s.now = s.now.Add(time.Minute)
		out, err := s.apply(mine)
		require.NoError(t, err)
		require.Equal(t, merged+1, s.merged)
		require.Equal(t, "n", out.(*gadget).ManagedFields[0].Manager)
	})
	t.Run("an entry of the present second", func(t *testing.T) {
		s := newGadgetServer(t, true)
		s.create("uid-1")
		for range 3 {
			_, err := s.apply(applyRequest{manager: "m", text: withoutDefault})
			require.NoError(t, err)
		}
		require.Equal(t, 3, s.merged, "it can't be told whether the apply dates it")
	})
}

// TestNoOpsAreExact applies and updates at random, to two servers of which one remembers.
func TestNoOpsAreExact(t *testing.T) {
	known := 0
	for seed := range uint64(12) {
		a, b := newGadgetServer(t, true), newGadgetServer(t, false)
		a.create("uid-1")
		b.create("uid-1")
		left, right := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))
		for i := range 100 {
			require.Equal(t, step(b, right), step(a, left), "seed %d, step %d", seed, i)
		}
		known += b.merged - a.merged
	}
	require.Greater(t, known, 200, "this is what the test is for")
}

// step does something at random, and returns what comes out.
func step(s *gadgetServer, random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	s.now = s.now.Add(time.Duration(random.IntN(3)) * 700 * time.Millisecond)
	switch random.IntN(8) {
	case 0:
		text, count := pick("x", "y"), random.Int64N(2)
		s.update(pick("u", "v"), func(g *gadget) { g.Spec.Text, g.Spec.Count = text, count })
	case 1:
		if random.IntN(4) == 0 {
			s.create(fmt.Sprint("uid-", s.revision))
		}
	default:
		r := applyRequest{
			subresource: pick("", "", "", "status"), manager: pick("m", "m", "n", "kubectl"), force: random.IntN(3) > 0,
			text: intentOf(pick(`{"text":"x","ref":{"path":"p"}}`, `{"text":"x","ref":{"path":"p"}}`, `{"ref":{"path":"p"}}`,
				`{"text":"y"}`, `{"text":"x","ref":{"path":"p","version":"v1"}}`, `{"text":"x","count":1}`)),
		}
		got := ""
		for range 1 + random.IntN(5) {
			out, err := s.apply(r)
			got += textOf(s.t, out) + fmt.Sprint(err)
			s.now = s.now.Add(time.Duration(random.IntN(3)) * 700 * time.Millisecond)
		}
		return got + textOf(s.t, s.stored)
	}
	return textOf(s.t, s.stored)
}

// TestNoOpsAreBounded checks that old ones are forgotten.
func TestNoOpsAreBounded(t *testing.T) {
	s := newGadgetServer(t, true)
	s.known = newNoOps(2, s.known.now)
	s.create("uid-1")
	for range 3 {
		_, err := s.apply(applyRequest{manager: "m", text: intentOf(`{"count":1}`)})
		require.NoError(t, err)
		s.now = s.now.Add(time.Second)
	}
	require.Equal(t, 2, s.merged)
	for i := range 3 { // other spellings of the same intent
		_, err := s.apply(applyRequest{manager: "m", text: intentOf(`{"count":1}`) + fmt.Sprintf("%*s", i+1, "")})
		require.NoError(t, err)
	}
	_, err := s.apply(applyRequest{manager: "m", text: intentOf(`{"count":1}`)})
	require.NoError(t, err)
	require.Equal(t, 6, s.merged)
}
