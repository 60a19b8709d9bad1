package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

// Started is how long a server takes from the start of its process, and of its etcd, to the answer to the first apply.
type Started struct {
	Server  string        `json:"server"`
	Median  time.Duration `json:"median"`
	Longest time.Duration `json:"longest"`
}

// compareStarts starts all servers by turns, and prints a table.
func (f flags) compareStarts(ctx context.Context, out io.Writer, results *Comparison) error {
	if f.asURL() {
		return errors.New("-starts: expected a path for -against, not a URL")
	}
	start, err := f.servers()
	if err != nil {
		return err
	}
	if f.against != "" {
		if _, err := f.host.build(ctx); err != nil {
			return err
		}
	}
	all, took := make([]Started, len(start)), make([][]time.Duration, len(start))
	for range f.rounds {
		for i, start := range start {
			name, d, err := f.started(ctx, start)
			if err != nil {
				return err
			}
			all[i].Server, took[i] = name, append(took[i], d)
		}
	}
	rows := [][]string{{
		"from the start of the process to the first answered apply", "median", fmt.Sprintf("longest of %d", f.rounds),
	}}
	for i := range all {
		slices.Sort(took[i])
		all[i].Median, all[i].Longest = took[i][len(took[i])/2], took[i][len(took[i])-1]
		rows = append(rows, []string{all[i].Server, milliseconds(all[i].Median), milliseconds(all[i].Longest)})
	}
	results.Starts = all
	return markdown.Table(out, rows)
}

func (f flags) started(
	ctx context.Context, start func(context.Context) (*server, error),
) (name string, took time.Duration, err error) {
	intent, err := intentOf("first")
	if err != nil {
		return "", 0, err
	}
	begin := time.Now()
	s, err := start(ctx)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	progress("the start of " + s.Name)
	err = s.write(ctx, transport(), http.MethodPatch, deployments+"first"+forced, string(types.ApplyPatchType),
		numbered(intent, 1))
	return s.Name, time.Since(begin), err
}
