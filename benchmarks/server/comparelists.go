package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

// Size is the resident memory of a server.
type Size struct {
	Server  string `json:"server"`
	Objects int    `json:"objects"`
	// Empty and Full are without and with the objects, Etcd is that of the server's etcd with them, and Lists is the
	// maximum while they were listed.
	Empty int64 `json:"empty"`
	Full  int64 `json:"full"`
	Etcd  int64 `json:"etcd"`
	Lists int64 `json:"lists"`
}

// lister is a server whose Pods are listed.
type lister struct {
	*server
	over http.RoundTripper
	size Size
}

// compareLists measures lists of all servers by turns, and prints tables.
func (f flags) compareLists(ctx context.Context, out io.Writer, results *Comparison) error {
	numbers, err := numbersOf(f.lists)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(f.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	for i, n := range numbers {
		lists, sizes, err := f.measureLists(ctx, int(n), only)
		if err != nil {
			return err
		}
		results.Lists, results.Sizes = append(results.Lists, lists...), append(results.Sizes, sizes...)
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := markdown.Table(out, listRows(int(n), lists)); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	return markdown.Table(out, sizeRows(results.Sizes))
}

// listRows are the rows of a table. The ratio divides what the server of -against took for a list by what this one
// took.
func listRows(objects int, lists []List) [][]string {
	against := map[string]List{}
	for _, l := range lists {
		if l.Server == againstName {
			against[l.Form] = l
		}
	}
	rows := [][]string{{fmt.Sprintf("list of %d Pods", objects), "server", "median", "CPU", "ratio", "size", "memory"}}
	for _, l := range lists {
		row := []string{
			l.Form, l.Server, milliseconds(l.Took), milliseconds(l.CPU), "", mebibytes(l.Size), mebibytes(l.Peak),
		}
		if other, ok := against[l.Form]; ok {
			row[4] = ratio(other.CPU, l.CPU)
		}
		rows = append(rows, row)
	}
	return rows
}

func sizeRows(sizes []Size) [][]string {
	rows := [][]string{{"memory with Pods", "server", "without", "with", "its etcd", "while listed"}}
	for _, s := range sizes {
		rows = append(rows, []string{
			strconv.Itoa(s.Objects), s.Server, mebibytes(s.Empty), mebibytes(s.Full), mebibytes(s.Etcd), mebibytes(s.Lists),
		})
	}
	return rows
}

func (f flags) measureLists(
	ctx context.Context, n int, only *regexp.Regexp,
) (lists []List, sizes []Size, err error) {
	servers, err := f.startAll(ctx)
	defer func() { err = errors.Join(err, stopAll(servers)) }()
	if err != nil {
		return nil, nil, err
	}
	var all []*lister
	for _, s := range servers {
		progress(fmt.Sprintf("%d Pods in %s", n, s.Name))
		l := &lister{server: s, over: transport()}
		if err := l.setUp(ctx, f, n); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		all = append(all, l)
	}
	for _, form := range forms {
		if !only.MatchString(form.name) {
			continue
		}
		progress(fmt.Sprintf("list of %d Pods: %s", n, form.name))
		of := make([]List, len(all))
		for round := range f.rounds + 1 {
			for i := range all {
				i = (i + round) % len(all) // each one is the first by turns
				if err := all[i].measure(ctx, form, round == 0, &of[i]); err != nil {
					return nil, nil, fmt.Errorf("%s: %s: %w", all[i].Name, form.name, err)
				}
			}
		}
		lists = append(lists, of...)
	}
	for _, l := range all {
		sizes = append(sizes, l.size)
	}
	return lists, sizes, nil
}

// setUp fills a server, and starts a watch of its Pods, as in a cluster.
func (l *lister) setUp(ctx context.Context, f flags, n int) error {
	empty, err := l.usage(ctx, l.over)
	if err != nil {
		return err
	}
	if err := f.fill(ctx, l.server, n); err != nil {
		return err
	}
	full, err := l.usage(ctx, l.over)
	if err != nil {
		return err
	}
	etcd, err := l.etcdUsage(ctx)
	if err != nil {
		return err
	}
	l.size = Size{Server: l.Name, Objects: n, Empty: empty.memory, Full: full.memory, Etcd: etcd.memory}
	if f.unwatched {
		return nil
	}
	from, err := l.revision(ctx, l.over)
	if err != nil {
		return err
	}
	answer, err := l.request(ctx, transport(), http.MethodGet, pods+"?watch=1&timeoutSeconds=36000&resourceVersion="+from,
		"application/json", "", nil)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, answer.Body) }() // ends with the server
	// A list of one Pod waits until the watch cache has all of them.
	if answer, err = l.request(ctx, l.over, http.MethodGet, pods+"?limit=1", "application/json", "", nil); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if full, err = l.usage(ctx, l.over); err != nil {
		return err
	}
	l.size.Full = full.memory
	return nil
}

// measure lists some times, and adds what it took. The first lists are not counted: the memory is looked at while
// they are written.
func (l *lister) measure(ctx context.Context, form form, first bool, into *List) (err error) {
	into.Server, into.Form, into.Objects = l.Name, form.name, l.size.Objects
	if first {
		into.Size, err = l.watchMemory(ctx, form)
		into.Peak = max(0, l.size.Lists-l.size.Full)
		return err
	}
	count := max(1, min(5, 10_000/l.size.Objects))
	before, err := l.usage(ctx, l.over)
	if err != nil {
		return err
	}
	for range count {
		begin := time.Now()
		if _, err := l.list(ctx, l.over, form.query, form.accept); err != nil {
			return err
		}
		into.took = append(into.took, time.Since(begin))
	}
	after, err := l.usage(ctx, l.over)
	if err != nil {
		return err
	}
	into.cpu += after.cpu - before.cpu
	slices.Sort(into.took)
	into.Took, into.CPU = into.took[len(into.took)/2], into.cpu/time.Duration(len(into.took))
	return nil
}

// watchMemory lists once, and looks at the memory of the server several times a second.
func (l *lister) watchMemory(ctx context.Context, form form) (size int64, err error) {
	listed := make(chan error, 1)
	go func() {
		var err error
		size, err = l.list(ctx, l.over, form.query, form.accept)
		listed <- err
	}()
	over := transport()
	for done := false; !done; {
		select {
		case err = <-listed:
			done = true
		case <-time.After(100 * time.Millisecond):
		}
		now, usageErr := l.usage(ctx, over)
		if err = errors.Join(err, usageErr); err != nil {
			return 0, err
		}
		l.size.Lists = max(l.size.Lists, now.memory)
	}
	return size, nil
}
