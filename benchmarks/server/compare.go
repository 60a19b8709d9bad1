package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Comparison is what -json prints of servers in processes of their own.
type Comparison struct {
	Starts  []Started `json:"starts,omitempty"`
	Writes  []Write   `json:"writes,omitempty"`
	Watches []Watches `json:"watches,omitempty"`
	Sizes   []Size    `json:"sizes,omitempty"`
	Lists   []List    `json:"lists,omitempty"`
}

// compare measures what was chosen on servers in processes of their own. It prints each table when it is complete.
func (f flags) compare(ctx context.Context, out io.Writer) (err error) {
	defer func() { err = errors.Join(err, f.host.remove()) }()
	var results Comparison
	if f.in != "" {
		data, err := os.ReadFile(f.in)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &results); err != nil {
			return fmt.Errorf("%s: %w", f.in, err)
		}
	}
	tables := out
	if f.asJSON {
		tables = os.Stderr
	}
	first := true
	for _, part := range []struct {
		chosen bool
		do     func(context.Context, io.Writer, *Comparison) error
	}{
		{f.starts, f.compareStarts},
		{f.onlyWrites, f.compareWrites},
		{f.watchers != "", f.compareWatches},
		{f.lists != "", f.compareLists},
	} {
		if !part.chosen {
			continue
		}
		if !first {
			fmt.Fprintln(tables)
		}
		first = false
		if err := part.do(ctx, tables, &results); err != nil {
			return err
		}
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(results); err != nil {
			return err
		}
	}
	if f.chart == "" {
		return nil
	}
	return results.draw(f.chart)
}
