package verbs

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// reader is the client of a stream. It reads each write after a while, or until the write deadline.
type reader struct {
	http.ResponseWriter
	takes time.Duration
	ended chan struct{}
}

var errDeadline = errors.New("deadline")

func (r *reader) Write(data []byte) (int, error) {
	select {
	case <-time.After(r.takes):
		return len(data), nil
	case <-r.ended:
		return 0, errDeadline
	}
}

func (r *reader) Flush() {}

func (r *reader) SetWriteDeadline(time.Time) error {
	close(r.ended)
	return nil
}

// TestExpiry holds that a write fails after the timeout, whatever was written before, and no other one.
func TestExpiry(t *testing.T) {
	const timeout, never = time.Second, time.Hour
	for _, test := range []struct {
		name, why string
		before    []time.Duration // what the writes before take
		idle      time.Duration   // after each of them
		takes     time.Duration
		fails     bool
	}{
		{name: "first write", why: "the timer of the start", takes: never, fails: true},
		{name: "after idle time", why: "the timer has fired, and does not run", before: []time.Duration{0}, idle: 5 * timeout,
			takes: never, fails: true},
		{name: "after a write", why: "the timer of that write runs", before: []time.Duration{0}, idle: timeout / 3,
			takes: never, fails: true},
		{name: "when the timer fires", why: "it must see the write or the write must start it",
			before: []time.Duration{0}, idle: timeout, takes: never, fails: true},
		{name: "slow writes", why: "the timeout is that of one write",
			before: []time.Duration{timeout / 2, timeout / 2, timeout / 2, timeout - 1, timeout - 1}, takes: timeout - 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{ended: make(chan struct{})}
				s := &stream{timeout: timeout, control: http.NewResponseController(r), writer: io.Writer(r)}
				s.watchWrites()
				defer s.end()
				for _, r.takes = range test.before {
					require.NoError(t, s.write([]byte("event")))
					time.Sleep(test.idle)
				}
				r.takes = test.takes
				begin := time.Now()
				err := s.write([]byte("event"))
				if !test.fails {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, errDeadline)
				require.InDelta(t, timeout, time.Since(begin), 1)
			})
		})
	}
}
