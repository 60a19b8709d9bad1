package multiplex_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/tenure-ssa/tenure/apiserver/internal/multiplex"
)

// FuzzFlow holds that no client gets more than it grants, and each what it asked for, whatever it grants and when.
func FuzzFlow(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		server := newServer(t, serve)
		random := rand.New(rand.NewPCG(seed, 3))
		grant := []uint32{0, 1 << 19, 1 << 20, 1 << 20, 1 << 20, 3 << 20}[random.IntN(6)] // most are shared
		initial := []uint32{10_000, 100_000, 1 << 20}[random.IntN(3)]
		p := newPeer(t, server, seed, grant, http2.Setting{ID: http2.SettingInitialWindowSize, Val: random.Uint32N(initial)})
		window := uint32(1 << 16)
		for i := range uint32(20) {
			p.open(2*i+1, plan{
				int(i), random.IntN(60_000), random.IntN(300_000), random.IntN(9000), 500 + random.IntN(20_000)})
		}
		open := func() (ids []uint32) {
			for id := range uint32(40) {
				if r := p.streams[id]; r != nil && !r.ended && !r.reset {
					ids = append(ids, id)
				}
			}
			return ids
		}
		// Pings mark how far the server has read: without them, a window that the peer shrinks would be exceeded by what is
		// on its way.
		for left := 300; len(open()) > 0; left-- {
			ids := open()
			id := ids[random.IntN(len(ids))]
			switch r := p.streams[id]; {
			case left < 0: // now all gets through
				if r.window < 1<<20 {
					p.grant(id, 1<<21)
				}
				// Clients wait until a half is used up.
				if p.widest-p.window >= p.widest/2 {
					p.grant(0, uint32(max(p.widest, 1<<17)-p.window))
				}
			case random.IntN(4) == 0:
				p.grant(id, 1+random.Uint32N(window))
			case random.IntN(4) == 0:
				p.grant(0, 1+random.Uint32N(window))
			case random.IntN(20) == 0:
				r.reset = true
				require.NoError(t, p.framer.WriteRSTStream(id, http2.ErrCodeCancel))
			case random.IntN(10) == 0:
				p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(p.initial) + random.Uint32N(window)})
			}
			p.ping(uint64(left))
			for _, r := range p.streams {
				r.silent = r.reset
			}
		}
		for id, r := range p.streams {
			if !r.reset {
				require.Len(t, r.body, r.plan.size(), "stream %d", id)
			}
		}
	})
}

// TestRoomLast holds that a stream goes on that gets a window of its own first, and then one of the connection.
func TestRoomLast(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<20)
	p.open(1, plan{1, 10, 80_000, 0, 1000})
	for p.streams[1].window > 0 {
		_, err := p.read()
		require.NoError(t, err)
	}
	p.open(3, plan{2, 10, 5 << 20, 0, 1000})
	p.grant(3, 5<<20)
	share := (65535 + 1<<20) / 2
	for len(p.streams[1].body)+len(p.streams[3].body) < share {
		_, err := p.read()
		require.NoError(t, err)
	}
	p.grant(1, 1<<20)
	p.ping(1)
	require.Len(t, p.streams[1].body, 65535, "the share is used up")
	p.grant(0, 1<<20)
	for !p.streams[1].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[1].body, 80_010)
	for !p.streams[3].ended { // the share is used up again and again
		_, err := p.read()
		require.NoError(t, err)
		if p.widest-p.window >= p.widest/2 {
			p.grant(0, uint32(p.widest-p.window))
		}
	}
	require.Len(t, p.streams[3].body, 5<<20+10)
}

// TestFair holds that streams take turns, at the connection and at its window: none is more than three turns ahead. All
// start at once, when the client makes their windows larger than 0. It grants more only when all wait for more.
func TestFair(t *testing.T) {
	const turn = 1 << 16
	for _, more := range []uint32{2000, 1 << 24} {
		var waiting sync.WaitGroup
		server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			s := take(t, w, r, never)
			defer s.End()
			at := 0
			s.Run(r.Context().Done(), func() (waits, ends bool) {
				if at == 0 {
					waiting.Done()
				}
				s.Append(content(0, at, at+3000))
				at += 3000
				return false, false
			})
		})
		p := newPeer(t, server, 1, 1<<20, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for _, id := range []uint32{1, 3, 5, 7} {
			waiting.Add(1)
			p.open(id, plan{})
		}
		waiting.Wait()
		p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		granted := int(p.widest / 2)       // the share of the streams
		for least := 0; least <= 5*turn; { // all of them have more than the share at the start
			_, err := p.read()
			require.NoError(t, err)
			sum, most := 0, 0
			least = 1 << 30
			for _, r := range p.streams {
				sum, least, most = sum+len(r.body), min(least, len(r.body)), max(most, len(r.body))
			}
			require.LessOrEqual(t, most-least, 3*turn)
			if sum == granted {
				p.grant(0, more)
				granted += int(min(int64(more), p.widest/2))
			}
		}
	}
}

// TestEndWhileParked holds that a stream that is to end sends what it has, in whatever pieces the client grants.
func TestEndWhileParked(t *testing.T) {
	for _, tail := range []int{0, 100} {
		server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			s := take(t, w, r, never)
			defer s.End()
			stop := make(chan struct{})
			s.Run(stop, func() (waits, ends bool) {
				s.Append(content(0, 0, 70_000))
				close(stop)
				return true, false
			})
			if tail > 0 {
				s.Write(content(0, 70_000, 70_000+tail))
			}
		})
		p := newPeer(t, server, 1, 1<<20)
		p.open(1, plan{})
		for n := uint64(0); !p.streams[1].ended; n++ {
			p.grant(1, 1+p.random.Uint32N(10))
			p.ping(n)
		}
		require.Len(t, p.streams[1].body, 70_000+tail)
	}
}

// What a stream has sent and was granted in all may be more than a window has.
func TestLongStream(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<20)
	p.open(1, plan{1, 10, 300_000, 0, 1000})
	r := p.streams[1]
	p.grant(1, uint32(1<<31-1-r.window))
	for !r.ended {
		_, err := p.read()
		require.NoError(t, err)
		if more := 1<<31 - 1 - r.window; more > 50_000 {
			p.grant(1, uint32(more))
		}
	}
	require.Len(t, r.body, 300_010)
}

// A window that SETTINGS make smaller may become negative: nothing is sent until it is positive again.
func TestShrunkWindow(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<21)
	p.open(1, plan{1, 10, 100_000, 0, 1000})
	for r := p.streams[1]; r.window > 0; {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[1].body, 65535)
	p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	p.grant(1, 60_000)
	require.Negative(t, p.streams[1].window)
	for n := range uint64(20) {
		p.ping(n)
	}
	require.Len(t, p.streams[1].body, 65535)
	p.grant(1, 40_000)
	for !p.streams[1].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[1].body, 100_010)
}

// TestStuck holds that a stream whose client grants nothing expires, and others go on.
func TestStuck(t *testing.T) {
	expired := make(chan struct{})
	server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		limits := multiplex.Limits{Stuck: time.Millisecond, Expire: func() {
			close(expired)
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now())
		}}
		if planOf(r).seed > 1 {
			limits = never
		}
		s := take(t, w, r, limits)
		defer s.End()
		at := 0
		s.Run(r.Context().Done(), func() (waits, ends bool) {
			if at += 10_000; at > planOf(r).body {
				return false, true
			}
			s.Append(content(planOf(r).seed, at-10_000, at))
			return false, false
		})
	})
	p := newPeer(t, server, 1, 1<<21)
	p.open(1, plan{seed: 1, body: 1 << 20})
	for len(p.streams[1].body) < 65535 {
		_, err := p.read()
		require.NoError(t, err)
	}
	p.streams[1].reset = true // by the server, soon
	p.open(3, plan{seed: 2, body: 60_000})
	for !p.streams[3].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[3].body, 60_000)
	<-expired
	for !p.streams[1].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
}
