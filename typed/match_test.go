package typed

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// matched are lists whose items are told apart in different ways, and what makes an
// item of one of a few keys.
var matched = map[string]struct {
	list *List
	item func(r *rand.Rand, k int) any
}{
	"set": {
		&List{Kind: SetList, Elem: &Type{Scalar: Untyped}},
		func(_ *rand.Rand, k int) any {
			return []any{"x", "1", int64(1), int64(2), true, false}[k%6 : k%6+1][0]
		},
	},
	"texts": {
		&List{Kind: SetList, Elem: &Type{Scalar: String}},
		func(_ *rand.Rand, k int) any { return fmt.Sprint("item-", k) },
	},
	"keyed": {
		&List{Kind: KeyedList, Keys: []string{"port", "proto"}, Elem: &Type{Map: &Map{Fields: map[string]Field{
			"port":  {Type: &Type{Scalar: Numeric}},
			"proto": {Type: &Type{Scalar: String}, Default: "TCP"},
		}}}},
		func(r *rand.Rand, k int) any {
			item := map[string]any{"port": int64(k / 2), "other": r.IntN(9)}
			switch {
			case k%2 == 1:
				item["proto"] = "UDP"
			case r.IntN(2) == 0:
				item["proto"] = "TCP" // or by default
			}
			return item
		},
	},
}

// TestMatch compares a matcher with a search for each item by its canonical text, and the
// order of a merged list against the twin's.
func TestMatch(t *testing.T) {
	for name, row := range matched {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 7))
			text := func(item any) string {
				e, err := row.list.element(item)
				if err != nil {
					require.NoError(t, err)
				}
				return e.Text() + fmt.Sprint(e.Kind())
			}
			met := map[string]int{}
			for range 12_000 {
				// A list, and some of its items: mostly in order, now and then one that is
				// new, twice there, or out of its place.
				live := make([]any, r.IntN(30))
				for i := range live {
					live[i] = row.item(r, i)
				}
				var applied []any
				for _, item := range live {
					switch r.IntN(12) {
					case 0:
						applied = append(applied, row.item(r, 40+r.IntN(9)))
					case 1, 2, 3:
					default:
						applied = append(applied, item)
					}
				}
				if len(applied) > 1 && r.IntN(3) == 0 {
					i, j := r.IntN(len(applied)), r.IntN(len(applied))
					applied[i], applied[j] = applied[j], applied[i]
				}
				positions, distinct := map[string]int{}, true
				for i, item := range live {
					_, twice := positions[text(item)]
					distinct = distinct && !twice
					positions[text(item)] = i
				}
				names := map[string]bool{}
				for _, item := range applied {
					distinct = distinct && !names[text(item)]
					names[text(item)] = true
				}
				x := row.list.matcher()
				if !x.match(live, len(live), applied) {
					require.False(t, distinct, "of distinct items, all are matched")
					met["not distinct"]++
					continue
				}
				if !distinct {
					continue // of what it does not look at
				}
				met["matched"]++
				for i, item := range applied {
					want, ok := positions[text(item)]
					if !ok {
						want = -1
						met["new"]++
					}
					if x.position(i) != want {
						require.Equal(t, want, x.position(i))
					}
				}
				if len(live) == 0 || len(applied) == 0 {
					continue
				}
				merged, err := (&Type{List: row.list}).Merge(live, applied)
				require.NoError(t, err)
				var got []string
				for _, from := range x.order(len(live), len(applied)) {
					if from < 0 {
						got = append(got, text(applied[-1-from]))
					} else {
						got = append(got, text(live[from]))
					}
				}
				var want []string
				for _, item := range merged.([]any) {
					want = append(want, text(item))
				}
				if x.sorted {
					met["sorted"]++
				} else {
					met["reordered"]++
				}
				require.Equal(t, want, got)
			}
			for _, what := range []string{"matched", "new", "sorted", "reordered"} {
				require.Greater(t, met[what], 100, what)
			}
		})
	}
}

// TestReadKey compares items by the keys that a search reads with the items themselves, and
// what can be read with what can be hashed.
func TestReadKey(t *testing.T) {
	values := []any{nil, "", "TCP", "x", int64(0), int64(1), 1.0, 1.5, true, false, []any{}, map[string]any{}}
	keyed := matched["keyed"].list
	items := []any{nil, "TCP", []any{}, map[string]any{}}
	for _, port := range values {
		items = append(items, map[string]any{"port": port}, map[string]any{"proto": port})
		for _, proto := range values {
			items = append(items, map[string]any{"port": port, "proto": proto})
		}
	}
	for name, row := range map[string]struct {
		list  *List
		items []any
	}{
		"a set":      {matched["set"].list, values},
		"keyed":      {keyed, items},
		"no default": {&List{Kind: KeyedList, Keys: keyed.Keys, Elem: Deduced()}, items},
	} {
		t.Run(name, func(t *testing.T) {
			x := row.list.matcher()
			read, same := 0, 0
			for _, a := range row.items {
				key := make([]any, max(1, len(x.keys)))
				_, hashable := x.hash(a)
				require.Equal(t, hashable, x.readKey(a, key), "%v: what can be read can be hashed", a)
				if !hashable {
					continue
				}
				read++
				for _, b := range row.items {
					other := make([]any, len(key))
					if !x.readKey(b, other) {
						continue
					}
					require.Equal(t, row.list.sameItem(a, b, x.keys), sameKeys(key, other), "%v and %v", a, b)
					if sameKeys(key, other) {
						same++
					}
				}
			}
			require.NotZero(t, read)
			require.Greater(t, same, read, "some differ in Go, such as 1 and 1.0, or by a default")
		})
	}
}

// TestMatchThreeKeys: the keys of a few items with three key fields need more room than those of lists with two.
func TestMatchThreeKeys(t *testing.T) {
	list := &List{Kind: KeyedList, Keys: []string{"a", "b", "c"}, Elem: &Type{Map: &Map{Fields: map[string]Field{
		"a": {Type: &Type{Scalar: Numeric}}, "b": {Type: &Type{Scalar: Numeric}}, "c": {Type: &Type{Scalar: Numeric}},
	}}}}
	const n = maxSearched
	live, applied := make([]any, n), make([]any, n)
	for i := range n {
		live[i] = map[string]any{"a": int64(0), "b": int64(i / 2), "c": int64(i % 2)}
		applied[n-1-i] = live[i]
	}
	x := list.matcher()
	require.True(t, x.match(live, n, applied))
	for i := range n {
		require.Equal(t, n-1-i, x.position(i))
	}
}
