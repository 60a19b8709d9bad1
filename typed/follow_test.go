package typed

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// followed are lists whose items are told apart in different ways, and what makes an
// item of one of a few keys.
var followed = map[string]struct {
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

// TestFollow holds a follower against looking for each item by its canonical text.
func TestFollow(t *testing.T) {
	for name, row := range followed {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 7))
			text := func(item any) string {
				e, err := row.list.element(item)
				require.NoError(t, err)
				return e.Text() + fmt.Sprint(e.Kind())
			}
			count := map[string]int{}
			for range 12_000 {
				// A list, and some of its items, mostly in order, now and then one that
				// is not there, twice there, or out of its place.
				n := r.IntN(30)
				live := make([]any, n)
				for i, k := range r.Perm(max(n, 6))[:n] {
					live[i] = row.item(r, k)
				}
				var applied []any
				for _, item := range live {
					if r.IntN(3) > 0 {
						applied = append(applied, item)
					}
				}
				for r.IntN(3) == 0 {
					switch k := r.IntN(40); {
					case r.IntN(2) == 0:
						applied = append(applied, row.item(r, k))
					case n > 0:
						live[r.IntN(n)] = row.item(r, k)
					}
				}
				if r.IntN(6) == 0 {
					r.Shuffle(len(applied), func(i, j int) { applied[i], applied[j] = applied[j], applied[i] })
				}
				if r.IntN(6) == 0 {
					applied = nil
					for _, i := range r.Perm(n) {
						applied = append(applied, live[i])
					}
				}

				at := map[string][]int{}
				for i, item := range live {
					at[text(item)] = append(at[text(item)], i)
				}
				times := map[string]int{}
				var want []int
				inOrder, distinct := n >= len(applied), true
				for i, item := range applied {
					found := at[text(item)]
					if times[text(item)]++; times[text(item)] > 1 {
						distinct = false
					}
					switch {
					case n == len(applied):
						inOrder = inOrder && text(live[i]) == text(item)
						want = append(want, i)
					case len(found) != 1 || i > 0 && len(want) > 0 && found[0] <= want[len(want)-1]:
						inOrder = false
					default:
						want = append(want, found[0])
					}
				}
				permuted := distinct && n == len(applied)
				for _, item := range live {
					permuted = permuted && len(at[text(item)]) == 1 && times[text(item)] == 1
				}

				f := follower{list: row.list, keys: row.list.sortedKeys()}
				require.Equal(t, distinct, f.checkDistinct(applied), "%v", applied)
				f = follower{list: row.list, keys: row.list.sortedKeys()}
				got := f.follow(live, n, applied)
				require.Equal(t, inOrder, got, "%v in %v", applied, live)
				if got {
					count["in order"]++
					if len(applied) > maxFollowed && n > len(applied) {
						count["many"]++
					}
					for i := range applied {
						require.Equal(t, want[i], f.at(i), "%v in %v", applied, live)
					}
				}
				if n != len(applied) {
					continue
				}
				f = follower{list: row.list, keys: row.list.sortedKeys()}
				require.Equal(t, permuted, f.permute(live, applied), "%v in %v", applied, live)
				if permuted {
					count["permuted"]++
					for i, item := range applied {
						require.Equal(t, text(item), text(live[f.at(i)]))
					}
				}
			}
			require.Greater(t, count["in order"], 300)
			if name != "set" { // which has six items
				require.Greater(t, count["many"], 300)
			}
			require.Greater(t, count["permuted"], 100)
		})
	}
}

// TestFollowCannotHash has items that are left to the slow path.
func TestFollowCannotHash(t *testing.T) {
	set := &List{Kind: SetList, Elem: &Type{Scalar: Untyped}}
	keyed := followed["keyed"].list
	for name, row := range map[string]struct {
		list *List
		item any
	}{
		"a fraction": {set, 1.5}, "a null": {set, nil}, "a list": {set, []any{}},
		"no map": {keyed, "x"}, "no key": {keyed, map[string]any{"proto": "UDP"}},
	} {
		f := follower{list: row.list, keys: row.list.sortedKeys()}
		_, ok := f.hash(row.item)
		require.False(t, ok, name)
		require.False(t, f.checkDistinct([]any{row.item}), name)
		list := make([]any, 0, maxFollowed+2)
		for i := range maxFollowed + 1 {
			if row.list == set {
				list = append(list, int64(i))
			} else {
				list = append(list, map[string]any{"port": int64(i)})
			}
		}
		f = follower{list: row.list, keys: row.list.sortedKeys()}
		require.False(t, f.follow(append(list, row.item), len(list)+1, list), name)
		f = follower{list: row.list, keys: row.list.sortedKeys()}
		require.False(t, f.permute(append(list[:len(list):len(list)], row.item), append(list[:len(list):len(list)], int64(-1))), name)
	}
}
