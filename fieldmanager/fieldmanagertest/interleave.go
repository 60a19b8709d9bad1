package fieldmanagertest

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/internal/trees"
)

// defaultLimit is the default maximum number of orders to run.
const defaultLimit = 1000

// Sample limits the number of orders to run.
type Sample struct {
	// Limit is the maximum number of orders to run; 0 means 1000. If there are more orders, a random sample is run,
	// drawn from all orders with equal probability.
	Limit int
	// Seed determines the sample.
	Seed uint64
}

// Order is one order of the writes, and its result.
type Order struct {
	// Writes are the names of the writes in this order: the manager, with a number if the manager has several writes,
	// such as alice.2.
	Writes []string
	// Errs are the errors of Writes; nil for each that succeeded.
	Errs []error
	// Object and Owners are positions in the lists Objects and Owners of the [Interleaving].
	Object, Owners int

	sequences []int // for each of Writes, the index of its sequence
}

// Interleaving is the result of running writes in all orders.
type Interleaving struct {
	// Total is the number of possible orders. It is larger than len(Orders) if these are a sample.
	Total *big.Int
	// Orders are the orders that were run, sorted by their sequences: orders that begin with a write of the first
	// sequence come first.
	Orders []Order
	// Objects are the distinct final objects of the orders, as YAML without times, in the order of their first
	// occurrence. Owners are the distinct managed fields.
	Objects, Owners []string
	// Diverging are two orders that differ only in two neighbouring writes and have different results; nil if all
	// results are equal. If Orders is a sample, it may lack these two orders.
	Diverging *[2]Order
	// Interrupted means that the run ended before all orders were run.
	Interrupted bool
}

// refused reports whether a write failed with an error other than a conflict.
func refused(err error) bool { return err != nil && !apierrors.IsConflict(err) }

// Converges reports whether all orders that were run result in the same object and the same owners.
func (r *Interleaving) Converges() bool { return len(r.Objects) <= 1 && len(r.Owners) <= 1 }

// Interleave runs the writes of all sequences in every order that preserves the order within each sequence. Each run
// starts from the current object. A write that fails does not change the object, and its sequence continues. Interleave
// does not change the object of the harness.
func (h *Harness) Interleave(sample Sample, sequences ...[]Write) *Interleaving {
	h.t.Helper()
	return h.server.interleave(h.state, sample, sequences, "", RunOptions{})
}

func (s *server) interleave(st state, sample Sample, sequences [][]Write, step string, o RunOptions) *Interleaving {
	limit := sample.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	w := &interleaver{
		s: s, start: st, sequences: sequences, labels: labelsOf(sequences),
		report:  &Interleaving{Total: countOrders(sequences)},
		objects: map[string]int{}, owners: map[string]int{},
	}
	orders := allOrders(nil, sequences)
	if w.report.Total.Cmp(big.NewInt(int64(limit))) <= 0 {
		limit = int(w.report.Total.Int64())
	} else {
		orders = slices.Values(drawOrders(sequences, limit, sample.Seed, o))
	}
	for order := range orders {
		if o.isEnded() {
			break
		}
		o.report(step, len(w.report.Orders), limit)
		w.report.Orders = append(w.report.Orders, w.run(order))
	}
	o.report(step, len(w.report.Orders), limit)
	w.report.Interrupted = len(w.report.Orders) < limit
	w.report.Diverging = w.nearest()
	return w.report
}

// labelsOf returns the names of the writes: the manager, with a number if the manager has several writes.
func labelsOf(sequences [][]Write) [][]string {
	count, met := map[string]int{}, map[string]int{}
	for _, sequence := range sequences {
		for _, w := range sequence {
			count[w.manager]++
		}
	}
	out := make([][]string, len(sequences))
	for i, sequence := range sequences {
		for _, w := range sequence {
			label := w.manager
			if met[label]++; count[w.manager] > 1 {
				label = fmt.Sprintf("%s.%d", label, met[label])
			}
			out[i] = append(out[i], label)
		}
	}
	return out
}

// countOrders returns (n₁+n₂+…)! / (n₁! n₂! …).
func countOrders(sequences [][]Write) *big.Int {
	total, n := big.NewInt(1), 0
	for _, sequence := range sequences {
		n += len(sequence)
		total.Mul(total, new(big.Int).Binomial(int64(n), int64(len(sequence))))
	}
	return total
}

// allOrders yields every order that begins with begin and continues with the writes of sequences. The orders are
// sorted. It does not return them as a list, because all orders may not fit into memory.
func allOrders(begin []int, sequences [][]Write) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		isWhole := true
		for i, sequence := range sequences {
			if len(sequence) == 0 {
				continue
			}
			isWhole = false
			rest := slices.Clone(sequences)
			rest[i] = sequence[1:]
			for order := range allOrders(append(slices.Clip(begin), i), rest) {
				if !yield(order) {
					return
				}
			}
		}
		if isWhole {
			yield(begin)
		}
	}
}

// drawOrders returns n different random orders, sorted. To make all orders equally likely, it shuffles a list that has
// the index of each sequence once for each write: 0 0 1 for a sequence of two writes and a sequence of one write.
func drawOrders(sequences [][]Write, n int, seed uint64, o RunOptions) [][]int {
	var first []int // the first order, such as 0 0 1
	for i, sequence := range sequences {
		first = append(first, slices.Repeat([]int{i}, len(sequence))...)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	drawn := map[string][]int{}
	for len(drawn) < n && !o.isEnded() {
		order := slices.Clone(first)
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		drawn[fmt.Sprint(order)] = order
	}
	return slices.SortedFunc(maps.Values(drawn), slices.Compare)
}

// interleaver runs orders one after another.
type interleaver struct {
	s         *server
	start     state
	sequences [][]Write
	labels    [][]string

	report          *Interleaving
	objects, owners map[string]int
}

// run runs one order and records its result.
func (w *interleaver) run(order []int) Order {
	out := Order{sequences: order}
	st, next := w.start, make([]int, len(w.sequences))
	for _, i := range order {
		var result Result
		st, result = w.s.do(st, w.sequences[i][next[i]])
		out.Writes = append(out.Writes, w.labels[i][next[i]])
		out.Errs = append(out.Errs, result.Err)
		next[i]++
	}
	object, owners := lasting(st.live)
	out.Object = place(w.objects, &w.report.Objects, object)
	out.Owners = place(w.owners, &w.report.Owners, owners)
	return out
}

// place returns the position of text in list. If list lacks text, place appends it.
func place(places map[string]int, list *[]string, text string) int {
	i, ok := places[text]
	if !ok {
		i = len(*list)
		places[text] = i
		*list = append(*list, text)
	}
	return i
}

// lasting renders an object, and its managed fields, without times and counters.
func lasting(live map[string]any) (object, owners string) {
	if live == nil {
		return "", ""
	}
	live = trees.Copy(live).(map[string]any)
	metadata := live["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	for _, name := range []string{"managedFields", "creationTimestamp", "resourceVersion"} {
		delete(metadata, name)
	}
	// Without times, entries are sorted by their other fields.
	entries := make([]string, 0, len(list))
	for _, entry := range list {
		if timed, ok := entry.(map[string]any); ok {
			delete(timed, "time")
		}
		entries = append(entries, renderYAML([]any{entry}))
	}
	slices.Sort(entries)
	return renderYAML(live), strings.Join(entries, "")
}

// nearest returns two orders that differ only in two neighbouring writes and have different results; nil if all results
// are equal. It prefers orders with different objects to orders with different owners. It takes two orders with
// different results, and transforms one into the other with a bubble sort, which swaps two neighbours at a time. At
// least one swap changes the result.
func (w *interleaver) nearest() *[2]Order {
	differ := func(a, b Order) bool { return a.Owners != b.Owners }
	if len(w.report.Objects) > 1 {
		differ = func(a, b Order) bool { return a.Object != b.Object }
	}
	orders := w.report.Orders
	other := slices.IndexFunc(orders, func(o Order) bool { return differ(orders[0], o) })
	if other < 0 {
		return nil
	}
	last, to := orders[0], orders[other]
	for k := range to.sequences {
		for j := k + slices.Index(last.sequences[k:], to.sequences[k]); j > k; j-- {
			order := slices.Clone(last.sequences)
			order[j-1], order[j] = order[j], order[j-1]
			next := w.run(order)
			if differ(orders[0], next) {
				return &[2]Order{last, next}
			}
			last = next
		}
	}
	return &[2]Order{last, to}
}
