package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

// write prints the results as tables.
func (r Results) write(w io.Writer, objects int) error {
	var tables [][][]string
	if r.Start.First > 0 {
		tables = append(tables, [][]string{
			{"from Start to the first answered apply", "median", "longest of 11"},
			{"first server of a process", milliseconds(r.Start.First), milliseconds(r.Start.FirstLongest)},
			{"the next one", milliseconds(r.Start.Next), milliseconds(r.Start.NextLongest)},
		})
	}
	if len(r.Loads) > 0 {
		rows := [][]string{{"write", "store", "a second", "p50", "p99", "CPU"}}
		for _, l := range r.Loads {
			rows = append(
				rows,
				[]string{
					l.Write,
					l.Store,
					fmt.Sprintf("%.0f", l.Rate),
					milliseconds(l.P50),
					milliseconds(l.P99),
					hundredths(l.CPU),
				},
			)
		}
		tables = append(tables, rows)
	}
	if len(r.Memory) > 0 {
		rows := [][]string{
			{
				fmt.Sprintf("memory with %d Pods", objects),
				"heap without",
				"with",
				"a Pod",
				"as stored",
				"process",
				"list of all",
			},
		}
		for _, m := range r.Memory {
			rows = append(rows, []string{
				m.Store, mebibytes(m.Empty), mebibytes(m.Full), kibibytes((m.Full - m.Empty) / int64(objects)),
				kibibytes(m.Values / int64(objects+1)), mebibytes(m.Resident), milliseconds(m.List),
			})
		}
		tables = append(tables, rows)
	}
	for i, rows := range tables {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := markdown.Table(w, rows); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

func hundredths(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func kibibytes(n int64) string { return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10)) }
