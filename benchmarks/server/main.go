// The command server measures the API server and prints Markdown tables: how soon it
// answers, how many writes a second it takes over each of its stores and how long
// each takes, and what it weighs with many objects.
//
//	go run ./benchmarks/server [-run DURATION] [-clients N] [-objects N] [-store REGEXP] [-json]
//	go run ./benchmarks/server -store memory -cpuprofile FILE
//	go run ./benchmarks/server -writes [-rounds N] [-only REGEXP] [-floor N] [-store REGEXP] [-against SERVER] [-schemas]
//	go run ./benchmarks/server -watchers 1000,10000 [-rates 5,20] [-streams N] [-http1] [-floor N] [-store REGEXP] \
//		[-against SERVER]
//	go run ./benchmarks/server -lists 10000,100000 [-rounds N] [-only REGEXP] [-unwatched] [-store REGEXP] \
//		[-against SERVER]
//	go run ./benchmarks/server -starts [-rounds N] [-store REGEXP] [-against SERVER]
//	go run ./benchmarks/server -chart FILE [-in FILE] [-watchers NUMBERS] [-lists NUMBERS] [-against SERVER]
//
// With -starts, -writes, -watchers or -lists, servers run in processes of their own, by turns, and with the one of
// -against; their CPU and memory come from their metrics. -against build builds a kube-apiserver, once, and
// starts it on an etcd of its own; -against PATH starts the one at PATH; and -against URL measures one
// that runs already. Built-in kinds are validated as kube-apiserver does, unless -schemas is given.
// -floor measures a server that writes bytes to its watches, or to those who write, and does nothing else: what
// net/http takes. The events of the others have 9,708 bytes.
// -chart draws how the cost grows with watchers and objects: doc/server.svg. -in adds what an earlier run printed with
// -json.
//
// Clients and server share one process and two cores and speak HTTP/2 over TLS, as
// they do in a test. Start and memory are measured in processes of their own, so that
// nothing is warm. etcd is measured if it is in PATH.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

// cores is how many the measurements may use.
const cores = 2

type flags struct {
	run        time.Duration
	clients    int
	objects    int
	store      string
	cpuprofile string
	asJSON     bool
	part       string
	watchers   string
	rates      string
	accept     string
	against    string
	token      string
	etcd       string
	onlyWrites bool
	rounds     int
	only       string
	schemas    bool
	lists      string
	unwatched  bool
	starts     bool
	streams    int
	http1      bool
	floor      int
	chart      string
	in         string
	host       *host
}

// Results is what -json prints. Times are nanoseconds, sizes bytes.
type Results struct {
	Start  Start    `json:"start"`
	Loads  []Load   `json:"loads"`
	Memory []Memory `json:"memory"`
}

func main() {
	f := flags{host: &host{}}
	flag.DurationVar(&f.run, "run", 3*time.Second, "how long each load lasts")
	flag.IntVar(&f.clients, "clients", 8, "how many clients write at the same time")
	flag.IntVar(&f.objects, "objects", 10_000, "how many objects to weigh")
	flag.StringVar(&f.store, "store", "", "measure loads only on stores whose names match `REGEXP`, and nothing else")
	flag.StringVar(&f.cpuprofile, "cpuprofile", "", "write a CPU profile of the loads to `FILE`")
	flag.BoolVar(&f.asJSON, "json", false, "print JSON; times are nanoseconds")
	flag.StringVar(&f.watchers, "watchers", "", "measure watches, and nothing else: `NUMBERS` of watchers, with commas")
	flag.StringVar(&f.rates, "rates", "20", "`NUMBERS` of writes a second, with commas")
	flag.StringVar(&f.accept, "accept", "application/json", "the media `TYPE` of watches and lists")
	flag.StringVar(&f.against, "against", "", "measure another `SERVER`, too: a URL, whose certificate is not checked, "+
		"the path of a kube-apiserver, or build, which builds one")
	flag.StringVar(&f.token, "token", "", "the bearer `TOKEN` for the URL of -against")
	flag.StringVar(&f.etcd, "etcd", "", "the `URL` of the metrics of the etcd behind the URL of -against")
	flag.BoolVar(&f.onlyWrites, "writes", false, "measure the CPU of writes, and nothing else")
	flag.StringVar(&f.only, "only", "", "measure only writes, and forms of lists, whose names match `REGEXP`")
	flag.IntVar(&f.rounds, "rounds", 3, "how many times -starts, -writes and -lists measure each server, by turns")
	flag.BoolVar(&f.schemas, "schemas", false, "validate built-in kinds by their schemas alone")
	flag.StringVar(&f.lists, "lists", "", "measure lists of Pods, and nothing else: `NUMBERS` of Pods, with commas")
	flag.BoolVar(&f.unwatched, "unwatched", false, "measure lists of Pods that nobody watches")
	flag.BoolVar(&f.starts, "starts", false, "measure how long servers take to start, and nothing else")
	flag.IntVar(&f.streams, "streams", 100, "how many watches share a connection")
	flag.BoolVar(&f.http1, "http1", false, "watch over HTTP/1.1: a connection for each watch")
	flag.IntVar(&f.floor, "floor", 0,
		"measure a server that only writes events, or responses to writes, of `N` bytes, too")
	flag.StringVar(&f.chart, "chart", "", "draw the costs of watchers and objects to `FILE`")
	flag.StringVar(&f.in, "in", "", "add to the results that `FILE` has, in JSON")
	flag.StringVar(
		&f.part,
		"part",
		"",
		"measure one `PART` in this process and print it as JSON: what the command starts itself for",
	)
	flag.Parse()
	runtime.GOMAXPROCS(cores)
	if err := f.main(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func (f flags) main(ctx context.Context, out io.Writer) error {
	if f.clients < 1 || f.objects < 1 || f.rounds < 1 || f.streams < 1 || f.run <= 0 {
		return fmt.Errorf("-clients, -objects, -rounds, -streams and -run must be positive")
	}
	if name, ok := strings.CutPrefix(f.part, "serve:"); ok {
		return f.serve(ctx, name, os.Stdin, out)
	}
	if f.starts || f.onlyWrites || f.watchers != "" || f.lists != "" || f.chart != "" {
		return f.compare(ctx, out)
	}
	if f.part != "" {
		result, err := f.measurePart(ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(result)
	}
	results, err := f.measure(ctx)
	if err != nil {
		return err
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	return results.write(out, f.objects)
}

func (f flags) measure(ctx context.Context) (results Results, err error) {
	matching, err := regexp.Compile(f.store)
	if err != nil {
		return results, fmt.Errorf("-store: %w", err)
	}
	if f.store == "" {
		if results.Start, err = startInProcesses(ctx); err != nil {
			return results, err
		}
		for _, s := range []string{"memory", "bbolt"} {
			progress("memory with objects in " + s)
			var m Memory
			if err := f.inProcess(ctx, "memory:"+s, &m); err != nil {
				return results, err
			}
			results.Memory = append(results.Memory, m)
		}
	}
	err = profiled(f.cpuprofile, func() error { return f.measureLoads(ctx, matching, &results) })
	return results, err
}

func (f flags) measureLoads(ctx context.Context, matching *regexp.Regexp, results *Results) error {
	for _, s := range stores {
		if !matching.MatchString(s.name) {
			continue
		}
		loads, err := f.loads(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		results.Loads = append(results.Loads, loads...)
	}
	return nil
}

// profiled calls do, and writes a CPU profile of it to a file, unless path is empty.
func profiled(path string, do func() error) error {
	if path == "" {
		return do()
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

func progress(what string) { fmt.Fprintln(os.Stderr, "measuring", what) }
