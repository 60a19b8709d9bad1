package fights_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/ownership/fights"
)

// TestRandomHistories has sides that write their own fields, sides that hand fields over, and sides that fight.
// Exactly the fields of the fights must be found.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, configMaps, time.Second, fights.Options{})
		c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
		fought := r.IntN(4)
		for i := range 200 {
			switch n := r.IntN(12); {
			case n < 4 && fought > 0:
				field := r.IntN(fought)
				side := []string{"red", "blue"}[r.IntN(2)]
				c.set(side, side, "data", fmt.Sprint("fought-", field))
			case n < 8:
				side := r.IntN(5)
				c.set(fmt.Sprint("side-", side), fmt.Sprint(r.IntN(3)), "data", fmt.Sprint("own-", side))
			default:
				c.set(fmt.Sprint("holder-", i/50), fmt.Sprint(i), "data", "handed-over")
			}
		}
		found := map[string]bool{}
		for _, f := range c.tracker.Findings(c.now) {
			if f.Kind == fights.Fight {
				found[f.Path.String()] = true
			}
		}
		want := map[string]bool{}
		for i := range fought {
			want[fmt.Sprintf(".data.fought-%d", i)] = true
		}
		require.Equal(t, want, found, "seed %d", seed)
	}
}

// TestWritesWithoutChange has requests that do not change the object's version. An audit log has them, a watch does
// not.
func TestWritesWithoutChange(t *testing.T) {
	update := fights.Side{Manager: "operator", Operation: metav1.ManagedFieldsOperationUpdate}
	patch := func(manager string) fights.Side { return fights.Side{Manager: manager} }
	lease := `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: ns},
		spec: {holderIdentity: h}}`
	for _, row := range []struct {
		name, why string
		kind      schema.GroupVersionKind
		object    string
		side      fights.Side
		step      time.Duration
		want      string
	}{
		{"updates", "each is a request to the server", configMaps, data("k", "v"), update, time.Second,
			"ns/ConfigMap/a: operator wrote 30 times and changed nothing except times"},
		{"applies", "a patch of who has applied is an apply", configMaps, data("k", "v"), patch("owner"), time.Second,
			"ns/ConfigMap/a: owner (apply) wrote 30 times and changed nothing except times"},
		{"patches", "a patch of who has not applied is an update", configMaps, data("k", "v"), patch("other"), time.Second,
			"ns/ConfigMap/a: other wrote 30 times and changed nothing except times"},
		{"of a subresource", "it is another side", configMaps, data("k", "v"),
			fights.Side{Manager: "owner", Subresource: "status"}, time.Second,
			"ns/ConfigMap/a: owner/status wrote 30 times and changed nothing except times"},
		{"applies every two minutes", "it is what GitOps tools do", configMaps, data("k", "v"), patch("owner"),
			2 * time.Minute, ""},
		{"of a Lease", "to be written is what it is for", leases, lease, update, time.Second, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, row.kind, row.step, fights.Options{})
			c.apply("owner", row.object)
			var last []fights.Finding
			for range 30 {
				last = c.tracker.ObserveWrite(c.live.Object, row.side, c.now)
				require.Empty(t, c.tracker.Observe(c.live.Object, c.now), "a watch may begin again")
				c.now = c.now.Add(row.step)
			}
			var got string
			for _, f := range c.tracker.Findings(c.now) {
				got += f.String()
			}
			require.Equal(t, row.want, got, row.why)
			require.Equal(t, row.want != "", len(last) == 1, "what is found is told as it is found")
		})
	}

	c := newCluster(t, configMaps, time.Second, fights.Options{})
	c.apply("owner", data("k", "v"))
	for i := range 30 {
		c.live.SetResourceVersion(fmt.Sprint("other-", i))
		require.Empty(t, c.tracker.ObserveWrite(c.live.Object, update, c.now), "there is another version each time")
	}
	require.Empty(t, fights.New(fights.Options{}).ObserveWrite(c.live.Object, update, c.now), "the object is new")
}

// TestWriterOfRemoval: an audit log names the manager that removed a field, even if this manager has no entry.
func TestWriterOfRemoval(t *testing.T) {
	c := newCluster(t, configMaps, time.Second, fights.Options{})
	observed := fights.New(fights.Options{})
	c.apply("owner", data("k", "v"))
	for range 4 {
		c.set("a", "1", "data", "extra")
		observed.ObserveWrite(c.live.Object, fights.Side{Manager: "a"}, c.now)
		c.remove("b", "data", "extra")
		observed.ObserveWrite(c.live.Object, fights.Side{Manager: "b"}, c.now)
	}
	found := observed.Findings(c.now)
	require.Len(t, found, 1)
	require.Equal(t, `ns/ConfigMap/a: .data.extra: a sets "1", b sets (absent); put back 6 times`, found[0].String())
}

// wrote is a write of a field, for the naive twin.
type wrote struct {
	side, value string
	at          time.Time
}

// naiveFlap implements the definition in doc.go for the writes of one field: it returns the side of the last turn
// that flaps, and the number of its reverts in the window.
func naiveFlap(writes []wrote, now time.Time) (side string, reverts int) {
	for end := len(writes); end > 0; {
		begin := end - 1
		for begin > 0 && writes[begin-1].side == writes[begin].side {
			begin--
		}
		turn := writes[begin:end]
		reverts = 0
		for i := len(turn) - 1; i >= 2 && turn[i].value == turn[i-2].value; i-- {
			if now.Sub(turn[i].at) <= 10*time.Minute {
				reverts++
			}
		}
		if reverts >= 3 {
			return turn[0].side, reverts
		}
		end = begin
	}
	return "", 0
}

// TestFlapsAtRandom compares the flaps and idle writers that are found in random histories with a naive
// implementation.
func TestFlapsAtRandom(t *testing.T) {
	flaps, idlers := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := newCluster(t, configMaps, time.Second, fights.Options{IdleWrites: 4})
		c.apply("owner", data("k", "v"))
		fields, idle := map[string][]wrote{}, map[string][]time.Time{}
		values := 2 + int(seed%2)
		for range 60 {
			side, name, value := fmt.Sprint("side-", r.IntN(8)/7), fmt.Sprint("f", r.IntN(2)), fmt.Sprint(r.IntN(values))
			if r.IntN(3) == 0 {
				idle[side] = append(idle[side], c.now)
				c.tracker.ObserveWrite(c.live.Object, fights.Side{Manager: side}, c.now)
				c.now = c.now.Add(time.Second)
			}
			if w := fields[name]; len(w) == 0 || w[len(w)-1].value != value {
				fields[name] = append(w, wrote{side, value, c.now})
				c.set(side, value, "data", name)
			}
			c.now = c.now.Add(time.Duration(r.IntN(80)) * time.Second)
		}
		want, got := map[string]int{}, map[string]int{}
		for name, writes := range fields {
			if side, reverts := naiveFlap(writes, c.now); reverts > 0 {
				want[".data."+name+" "+side] = reverts
				flaps++
			}
		}
		for side, times := range idle {
			times = slices.DeleteFunc(times, func(when time.Time) bool { return c.now.Sub(when) > 10*time.Minute })
			if len(times) >= 4 {
				want[side] = len(times)
				idlers++
			}
		}
		for _, f := range c.tracker.Findings(c.now) {
			switch f.Kind {
			case fights.Flap:
				got[f.Path.String()+" "+f.Sides[0].Manager] = f.Returns
			case fights.IdleWriter:
				got[f.Sides[0].Manager] = f.Returns
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
	require.Greater(t, flaps, 10)
	require.Greater(t, idlers, 10)
}
