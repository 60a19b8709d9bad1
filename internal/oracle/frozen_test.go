package oracle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestResultsStayAsTheyAre does writes each to the very object that the one before
// returned, which shares memory with what that was given, and so on to the first:
// none of them may be changed by a later write.
func TestResultsStayAsTheyAre(t *testing.T) {
	kept := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 23))
		data := make([]byte, 4000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		g := NewGen(data)
		w := &World{intents: map[string]map[string]any{}}
		require.NoError(t, w.SetSpec(g.Struct(3)))
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		type version struct {
			what any
			text string
		}
		var frozen []version
		freeze := func(what any) { frozen = append(frozen, version{what, JSON(what)}) }
		for range maxSteps {
			write := g.write(w)
			live := w.Live
			if live == nil {
				live = w.live(write.Version)
			}
			freeze(write.Object.Object)
			m, err := w.manager(write, now)
			require.NoError(t, err)
			now = now.Add(time.Second)
			// A write at another version than live's gets a copy, as a server converts.
			if live.GetAPIVersion() != write.Object.GetAPIVersion() {
				live = w.live(write.Version)
			}
			out, err := Do(m, live, write)
			if err != nil {
				continue
			}
			w.Live = out
			freeze(out.Object)
			kept++
		}
		for i, v := range frozen {
			require.Equal(t, v.text, JSON(v.what), "seed %d, object %d", seed, i)
		}
	}
	require.Greater(t, kept, 2000)
}
