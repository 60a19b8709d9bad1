package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver/storage/etcdtest"
)

// TestServers loads three servers in separate processes that share an etcd, and kills and restarts one after the other.
// Each watcher, at each server, must see the history in etcd, which must have all acknowledged writes. A list at a
// server must have the writes that other servers acknowledged before, and must equal the history at its version.
func TestServers(t *testing.T) {
	e := etcdtest.Start(t)
	servers := startProcesses(t, served{Etcd: e.Endpoint}, 3)
	configs := configsOf(servers)
	l := newLoad(t, configs[0])
	l.excused = interrupted
	var followers []*follower
	var held []*informed
	for i, config := range configs {
		followers = append(followers, follow(t, i, l.from, configs...)...)
		held = append(held, inform(t, config))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := &others{load: l, configs: configs}
	var wait sync.WaitGroup
	wait.Go(func() { l.run(t, ctx, configs...) })
	for i := range servers {
		wait.Go(func() { o.pass(ctx, i) })
		wait.Go(func() { o.list(ctx, i) })
	}
	rounds := 0
	for end := time.Now().Add(duration(t)); rounds == 0 || time.Now().Before(end); rounds++ {
		l.more(t, 150)
		server := servers[rounds%len(servers)]
		server.kill()
		l.more(t, 150)
		server.restart()
	}
	l.more(t, 150)
	cancel()
	wait.Wait()

	versions := l.last(t, configs[0])
	h := readEtcd(t, e, l.from, versions[contended-1])
	l.check(t, h, configs...)
	requireSame(t, h, versions, followers)
	moves, told := 0, 0
	for _, f := range followers {
		moves += f.moves
	}
	for _, i := range held {
		i.requireState(t, h)
		told += len(i.events)
	}
	o.check(t, h)
	t.Logf("%d kills; %d watches that moved %d times; %d informers that told %d events; "+
		"%d objects created and deleted; %d lists", rounds, len(followers), moves, len(held), told, len(o.deleted),
		len(o.lists))
}

// others runs operations beside a load: it creates and deletes objects, and lists them.
type others struct {
	load    *load
	configs []*rest.Config

	lock             sync.Mutex
	created, deleted []write
	lists            []listed
	faults           []string
}

// listed is a list: its version, and the versions of its objects.
type listed struct {
	version int64
	objects map[string]string
}

func (o *others) fault(format string, args ...any) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// maps returns a client for each server, in order, beginning with first.
func (o *others) maps(first int) (all []typedcorev1.ConfigMapInterface) {
	for i := range o.configs {
		maps, err := newConfigMaps(o.configs[(first+i)%len(o.configs)])
		if err != nil {
			o.fault("%v", err)
		}
		all = append(all, maps)
	}
	return all
}

// passing is the prefix of the names of objects that are created and deleted.
const passing = "passing-"

// pass creates and deletes objects.
func (o *others) pass(ctx context.Context, server int) {
	all := o.maps(server)
	for n := 0; ctx.Err() == nil; n++ {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d-%d", passing, server, n)}}
		m.Data = map[string]string{"n": "1"}
		made, err := all[0].Create(context.Background(), m, metav1.CreateOptions{})
		if err == nil {
			o.lock.Lock()
			o.created = append(o.created, write{object: m.Name, version: made.ResourceVersion})
			o.lock.Unlock()
			err = all[0].Delete(context.Background(), m.Name, metav1.DeleteOptions{})
		}
		switch {
		case err == nil:
			o.lock.Lock()
			o.deleted = append(o.deleted, write{object: m.Name})
			o.lock.Unlock()
		case o.load.excused(err):
			all = append(all[1:], all[0])
		default:
			o.fault("%s: %v", m.Name, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// list lists at one server after writes at the others: alternately all objects in one list, and in pages from different
// servers.
func (o *others) list(ctx context.Context, server int) {
	all := o.maps(server)
	for n := 0; ctx.Err() == nil; n++ {
		wrote, ok := o.load.latest(server)
		list, err := listOf(all, n%2*4)
		switch {
		case errors.Is(err, errPages), err != nil && !o.load.excused(err):
			o.fault("a list at server %d: %v", server, err)
		case err != nil || !ok:
		case list.version < wrote.number() || number(list.objects[wrote.object]) < wrote.number():
			o.fault("the list at %d of server %d lacks %v: %v", list.version, server, wrote, list.objects)
		default:
			o.lock.Lock()
			o.lists = append(o.lists, list)
			o.lock.Unlock()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// errPages reports that pages of a list have different versions.
var errPages = errors.New("pages of two versions")

// listOf lists all objects, in pages if limit is not 0.
func listOf(servers []typedcorev1.ConfigMapInterface, limit int) (listed, error) {
	out := listed{objects: map[string]string{}}
	options := metav1.ListOptions{Limit: int64(limit)}
	for page := 0; ; page++ {
		list, err := servers[page%len(servers)].List(context.Background(), options)
		if err != nil {
			return out, err
		}
		if page > 0 && number(list.ResourceVersion) != out.version {
			return out, fmt.Errorf("%w: %s and %d", errPages, list.ResourceVersion, out.version)
		}
		out.version = number(list.ResourceVersion)
		for _, m := range list.Items {
			out.objects[m.Name] = m.ResourceVersion
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func number(version string) int64 {
	n, _ := strconv.ParseInt(version, 10, 64) // 0 for a version before all others
	return n
}

func (w write) number() int64 { return number(w.version) }

// latest returns the last acknowledged write of a server other than but.
func (l *load) latest(but int) (w write, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for i := len(l.acknowledged) - 1; i >= 0; i-- {
		if l.acknowledged[i].server != but {
			return l.acknowledged[i], true
		}
	}
	return w, false
}

// check compares the operations with a history.
func (o *others) check(t *testing.T, h *history) {
	require.Empty(t, o.faults)
	require.NotEmpty(t, o.deleted)
	require.NotEmpty(t, o.lists)
	for _, w := range o.created {
		e, ok := h.at(w.version)
		require.True(t, ok, "%v is not in the history", w)
		require.Equal(t, w.object, e.object)
		require.Equal(t, watch.Added, e.kind)
	}
	deleted := map[string]bool{}
	for _, e := range h.events {
		if e.kind == watch.Deleted {
			deleted[e.object] = true
		}
	}
	for _, w := range o.deleted {
		require.True(t, deleted[w.object], "the deletion of %s is not in the history", w.object)
	}
	slices.SortFunc(o.lists, func(a, b listed) int { return int(a.version - b.version) })
	next, state := 0, map[string]int64{} // maps objects to their versions; 0 if deleted
	for _, list := range o.lists {
		for ; next < len(h.events) && h.events[next].version <= list.version; next++ {
			e := h.events[next]
			if state[e.object] = e.version; e.kind == watch.Deleted {
				state[e.object] = 0
			}
		}
		for name, version := range state {
			require.Equal(t, version, number(list.objects[name]), "%s in the list at %d", name, list.version)
		}
		for name := range list.objects {
			require.True(t, state[name] > 0 || h.events[0].version > number(list.objects[name]), "%s at %d", name, list.version)
		}
	}
}
