// Command server compares the API server with kube-apiserver, and prints Markdown tables. They show how long a server
// and its etcd take from their start until the response to the first apply, how much memory the server then uses, and
// how much CPU time the server and its etcd use per request.
//
//	go run -tags grpcnotrace ./benchmarks/server -against stock   the API server beside kube-apiserver
//	go run ./benchmarks/server -server linked -against stock      kube-apiserver with Tenure, beside the stock one
//	go run ./benchmarks/server -against stock -definitions 1000   both with 1,000 CustomResourceDefinitions
//
// Releases of the command tenure are built with the tag grpcnotrace (doc/design.md, "The command"). Without this tag,
// the server is larger and needs more memory.
//
// The flags -server and -against name a server: "tenure", "stock" or "linked" (hosts/kube-apiserver builds and starts
// the last two), the path of a kube-apiserver, or the URL of a running server, whose certificate is not checked.
// Servers run in separate processes with two cores each, and are measured in turn. The ratio divides the CPU time of
// -against by the CPU time of -server; a second ratio includes etcd.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

func main() {
	var b bench
	serves := flag.Bool("serve", false, "serve until standard input ends: the command uses this flag to start itself")
	data := flag.String("data", "", "with -serve: keep the objects in a file in `FOLDER`")
	definitions := flag.Int("definitions", 0, "instead of requests, measure servers with `N` CustomResourceDefinitions")
	server := flag.String("server", "tenure", "the `SERVER` to measure")
	other := flag.String("against", "", "another `SERVER` to measure, for comparison")
	only := flag.String("only", "", "measure only requests whose names match `REGEXP`")
	flag.StringVar(&b.token, "token", "", "the bearer `TOKEN` for servers that are given as URLs")
	flag.IntVar(&b.rounds, "rounds", 3, "how many times each server is measured")
	flag.DurationVar(&b.run, "run", 3*time.Second, "the duration of each measurement")
	flag.IntVar(&b.clients, "clients", 8, "how many clients send requests at the same time")
	flag.Parse()
	b.names = []string{*server}
	if *other != "" {
		b.names = append(b.names, *other)
	}
	ctx, err := context.Background(), error(nil)
	if *serves {
		err = serve(ctx, *data)
	} else if *definitions > 0 {
		err = b.measureDefinitions(ctx, *definitions)
	} else if b.only, err = regexp.Compile(*only); err == nil {
		err = b.measure(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// serve runs Tenure's server in this process until its standard input ends.
func serve(ctx context.Context, data string) (err error) {
	var options apiserver.Options
	if data != "" {
		store, err := bbolt.Open(filepath.Join(data, "store"), bbolt.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		options.Store = store
	}
	running, err := apiserver.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	started := server{URL: running.URL(), Token: running.Config().BearerToken}
	if err := json.NewEncoder(os.Stdout).Encode(started); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// bench describes what is measured.
type bench struct {
	names   []string
	token   string
	rounds  int
	run     time.Duration
	clients int
	only    *regexp.Regexp
}

func (b *bench) measure(ctx context.Context) (err error) {
	servers, err := b.starts(ctx)
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop())
		}
	}()
	if err != nil {
		return err
	}
	fmt.Print("\n| request | server | a second | CPU | CPU of etcd | ratio | with etcd |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, load := range workloads {
		if !b.only.MatchString(load.name) {
			continue
		}
		byServer := make([]spent, len(servers))
		for round := range b.rounds {
			for i := range servers {
				i = (i + round) % len(servers) // in each round, another server is first
				if err := servers[i].measure(ctx, b, load, round == 0, &byServer[i]); err != nil {
					return fmt.Errorf("%s: %s: %w", b.names[i], load.name, err)
				}
			}
		}
		for i, s := range byServer {
			fmt.Printf("| %s | %s | %.0f | %s | %s |", load.name, b.names[i], float64(s.count)/s.elapsed.Seconds(),
				milliseconds(s.each(s.cpu)), milliseconds(s.each(s.etcd)))
			if i == 0 && len(byServer) > 1 {
				other := byServer[1]
				fmt.Printf(" %.1f× | %.1f×", float64(other.each(other.cpu))/float64(s.each(s.cpu)),
					float64(other.each(other.cpu+other.etcd))/float64(s.each(s.cpu+s.etcd)))
			} else {
				fmt.Print(" | ")
			}
			fmt.Println(" |")
		}
	}
	return nil
}

// starts starts the servers in turn, prints how long each start took, and returns the servers of the last round.
func (b *bench) starts(ctx context.Context) (servers []*server, err error) {
	programs, err := b.programs(ctx)
	if err != nil {
		return nil, err
	}
	took, memory := make([][]time.Duration, len(programs)), make([]int64, len(programs))
	for round := -1; round < b.rounds; round++ { // the first round builds missing programs and warms up
		for i, program := range programs {
			begin := time.Now()
			s, err := program.start(ctx)
			if err != nil {
				return servers, fmt.Errorf("%s: %w", b.names[i], err)
			}
			if round == b.rounds-1 {
				servers = append(servers, s)
			}
			if err = s.send(ctx, transport(), applyDeployment("first")); err == nil && round >= 0 {
				took[i] = append(took[i], time.Since(begin))
				_, memory[i], err = s.usage(ctx)
			}
			if round < b.rounds-1 {
				err = errors.Join(err, s.stop())
			}
			if err != nil {
				return servers, fmt.Errorf("%s: %w", b.names[i], err)
			}
		}
	}
	fmt.Print("| from the start to the first answered apply | median | longest | memory |\n| --- | ---: | ---: | ---: |\n")
	for i, name := range b.names {
		slices.Sort(took[i])
		median, longest := took[i][len(took[i])/2], slices.Max(took[i])
		fmt.Printf("| %s | %s | %s | %d MB |\n", name, milliseconds(median), milliseconds(longest), memory[i]/1e6)
	}
	next, err := next(ctx)
	fmt.Printf("| the second of tenure in one process | %s | | |\n", milliseconds(next))
	return servers, err
}

// next returns how long a second server in the same process takes to start.
func next(ctx context.Context) (took time.Duration, err error) {
	for range 2 {
		begin := time.Now()
		running, err := apiserver.Start(ctx, apiserver.Options{})
		if err != nil {
			return 0, err
		}
		s := &server{URL: running.URL(), Token: running.Config().BearerToken}
		err = s.send(ctx, transport(), applyDeployment("first"))
		took = time.Since(begin)
		if err = errors.Join(err, running.Close()); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
