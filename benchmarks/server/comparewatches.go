package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

// compareWatches measures watches of all servers by turns, and prints a table.
func (f flags) compareWatches(ctx context.Context, out io.Writer, results *Comparison) error {
	numbers, err := numbersOf(f.watchers)
	if err != nil {
		return err
	}
	rates, err := numbersOf(f.rates)
	if err != nil {
		return err
	}
	start, err := f.servers()
	if err != nil {
		return err
	}
	if f.floor > 0 {
		start = append(start, func(ctx context.Context) (*server, error) { return f.startServer(ctx, floorName) })
	}
	for _, n := range numbers {
		for _, rate := range rates {
			for _, start := range start {
				w, err := f.measureWatches(ctx, start, int(n), rate)
				if err != nil {
					return err
				}
				results.Watches = append(results.Watches, w)
			}
		}
	}
	return markdown.Table(out, watchRows(results.Watches))
}

// watchRows are the rows of a table. The ratio divides what the server of -against took for an event by what this
// one took.
func watchRows(results []Watches) [][]string {
	type load struct {
		watchers int
		rate     float64
	}
	against := map[load]Watches{}
	for _, w := range results {
		if w.Server == againstName {
			against[load{w.Watchers, w.Wanted}] = w
		}
	}
	rows := [][]string{{
		"watchers", "writes a second", "server", "sent", "bytes", "CPU an event", "ratio", "p50", "p99", "a watcher", "lost",
	}}
	for _, w := range results {
		row := []string{
			strconv.Itoa(w.Watchers), fmt.Sprintf("%.0f", w.Wanted), w.Server, fmt.Sprintf("%.1f", w.Rate),
			strconv.Itoa(w.Event), fmt.Sprintf("%.1f µs", float64(w.CPU.Nanoseconds())/1e3), "",
			milliseconds(w.P50), milliseconds(w.P99), kibibytes(w.Watcher), strconv.Itoa(w.Lost),
		}
		if other, ok := against[load{w.Watchers, w.Wanted}]; ok {
			row[6] = ratio(other.CPU, w.CPU)
		}
		rows = append(rows, row)
	}
	return rows
}

func (f flags) measureWatches(
	ctx context.Context, start func(context.Context) (*server, error), n int, rate float64,
) (w Watches, err error) {
	s, err := start(ctx)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	progress(fmt.Sprintf("%d watchers of %s, %.0f writes a second", n, s.Name, rate))
	return f.watches(ctx, s, n, rate, f.accept)
}
