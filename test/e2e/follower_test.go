package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// A follower watches one of several servers. When this server is killed, the follower continues with the next one, from
// the last resourceVersion that it received.
type follower struct {
	configs   []*rest.Config
	server    int    // the index of the server that it watches
	mediaType string // the media type that it accepts
	object    string // the only object that it watches; "" for all
	from      string

	until chan string // receives the last version to wait for
	saw   chan *history
	moves int
}

// forms are the forms in which followers watch.
var forms = []struct{ mediaType, object string }{
	{"application/json", ""},
	{"application/vnd.kubernetes.protobuf", ""},
	{"application/vnd.kubernetes.protobuf", objectName(3)},
}

// follow starts a follower in each form, at a server.
func follow(t *testing.T, server int, from string, configs ...*rest.Config) (all []*follower) {
	for _, form := range forms {
		f := &follower{
			configs: configs, server: server, mediaType: form.mediaType, object: form.object, from: from,
			until: make(chan string, 1), saw: make(chan *history, 1),
		}
		all = append(all, f)
		go func() { f.saw <- f.run(t) }()
	}
	return all
}

// requireSame waits until followers have seen the last write of each object, and compares their histories with want.
func requireSame(t *testing.T, want *history, versions []string, all []*follower) {
	for _, f := range all {
		last := len(versions) - 1
		if f.object != "" {
			for i := range contended {
				if objectName(i) == f.object {
					last = i
				}
			}
		}
		f.until <- versions[last]
	}
	for _, f := range all {
		got := <-f.saw
		who := fmt.Sprintf("a watch of %s %s that moved %d times", f.mediaType, f.object, f.moves)
		want.requireSame(t, got, 0, f.object, who)
	}
}

// errEnded reports a watch that ended because its server was killed.
var errEnded = errors.New("the watch ended")

func (f *follower) run(t *testing.T) *history {
	h := newHistory()
	last := ""
	for {
		done, err := f.watch(t.Context(), h, &last)
		if done {
			return h
		}
		if t.Context().Err() != nil || isStatus(err) && !unavailable(err) {
			h.fault("the watch at %s ended: %v", f.from, err)
			return h
		}
		f.server, f.moves = f.server+1, f.moves+1
		time.Sleep(20 * time.Millisecond)
	}
}

// watch watches one server. done is true if it has seen the last version.
func (f *follower) watch(ctx context.Context, h *history, last *string) (done bool, err error) {
	config := rest.CopyConfig(f.configs[f.server%len(f.configs)])
	config.AcceptContentTypes = f.mediaType
	maps, err := newConfigMaps(config)
	if err != nil {
		return false, err
	}
	options := metav1.ListOptions{ResourceVersion: f.from, AllowWatchBookmarks: true}
	if f.object != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", f.object).String()
	}
	w, err := maps.Watch(ctx, options)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		if _, ok := h.at(*last); ok {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case *last = <-f.until:
		case event, ok := <-w.ResultChan():
			if !ok {
				return false, errEnded
			}
			if event.Type == watch.Error {
				err := apierrors.FromObject(event.Object)
				if apierrors.HasStatusCause(err, "ClientWatchDecoding") {
					return false, errEnded // in the middle of an event
				}
				return false, err
			}
			m := event.Object.(*corev1.ConfigMap)
			f.from = m.ResourceVersion
			if event.Type != watch.Bookmark {
				h.add(event.Type, m.Name, m.ResourceVersion, m.Data)
			}
		}
	}
}
