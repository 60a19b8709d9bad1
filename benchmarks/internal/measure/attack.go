package measure

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// AttackedCache is the size of the cache that is attacked, in bytes.
const AttackedCache = 4 << 20

// attackBatch is how many FieldsV1 are timed at once.
const attackBatch = 300

// Attacked is what an attack on a cache costs, and comes to.
type Attacked struct {
	Name string `json:"name"`
	// Upstream, Plain and Cached are the times to decode one FieldsV1: by
	// upstream, by Tenure without a cache, and through a cache.
	Upstream time.Duration `json:"upstreamNs"`
	Plain    time.Duration `json:"plainNs"`
	Cached   time.Duration `json:"cachedNs"`
	// Ratio is Cached divided by Plain, over pairs of runs.
	Ratio Quartiles `json:"ratio"`
	// Sent is how many bytes came to the cache.
	Sent int `json:"sent"`
	// Cache is what the cache holds after the attack, and Heap by how much the
	// heap has grown, the tables of common parts included.
	Cache fieldpath.CacheStats `json:"cache"`
	Heap  int64                `json:"heap"`
	// Kept is how often a bystander's FieldsV1, asked for after any ten of the
	// attacker's, was found in the cache, between 0 and 1.
	Kept float64 `json:"kept"`
}

// Attack sends ever new FieldsV1 to upstream, to Tenure's decoder and to a cache.
// No two of them get the same: the decoder has tables of its own.
func Attack(a workloads.Attack, o Options) (Attacked, error) {
	before := heap()
	upstream := engines.Upstream()
	cache := fieldpath.NewCache(AttackedCache)
	decoders := [...]func([]byte) error{
		func(data []byte) error { _, err := upstream.DecodeSet(data); return err },
		func(data []byte) error { _, err := fieldpath.Parse(data, fieldpath.Lenient); return err },
		func(data []byte) error { _, err := cache.Parse(data); return err },
	}
	r := Attacked{Name: a.Name}
	var costs [len(decoders)][]Cost
	var ratios []float64
	sent := 0
	batch := func() ([][]byte, error) {
		sent += attackBatch
		return a.Fields(sent, attackBatch)
	}
	for pair := range o.Pairs {
		for turn := range decoders {
			i := (pair + turn) % len(decoders)
			fields, err := batch()
			if err != nil {
				return Attacked{}, err
			}
			took, err := attack(fields, a.Times, decoders[i])
			if err != nil {
				return Attacked{}, fmt.Errorf("%s: %w", a.Name, err)
			}
			costs[i] = append(costs[i], Cost{Time: took})
			if i == len(decoders)-1 {
				r.Sent += a.Times * size(fields)
			}
		}
		ratios = append(ratios, float64(costs[2][pair].Time)/float64(costs[1][pair].Time))
	}
	fields, err := batch()
	if err == nil {
		r.Kept, err = kept(cache, fields, a.Times)
	}
	r.Sent += a.Times * size(fields)
	fields = nil
	r.Heap = int64(heap().HeapAlloc) - int64(before.HeapAlloc)
	r.Upstream, r.Plain, r.Cached = median(costs[0]).Time, median(costs[1]).Time, median(costs[2]).Time
	r.Ratio, r.Cache = QuartilesOf(ratios), cache.Stats()
	runtime.KeepAlive(cache)
	return r, err
}

// attack returns how long it takes to decode one of fields, each of which comes so
// many times.
func attack(fields [][]byte, times int, decode func([]byte) error) (time.Duration, error) {
	runtime.GC()
	start := time.Now()
	for _, data := range fields {
		for range times {
			if err := decode(data); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start) / time.Duration(times*len(fields)), nil
}

// kept sends fields to a cache, asks for a bystander's after any ten of them, and
// returns how often that was found. A bystander gets into the cache as anybody
// does.
func kept(cache *fieldpath.Cache, fields [][]byte, times int) (float64, error) {
	lists, err := workloads.PodEntries(1)
	if err != nil {
		return 0, err
	}
	bystander := lists[0][0].FieldsV1.GetRawBytes()
	asked, found := 0.0, uint64(0)
	for i, data := range fields {
		for range times {
			if _, err := cache.Parse(data); err != nil {
				return 0, err
			}
		}
		if i%10 == 0 {
			hits := cache.Stats().Hits
			if _, err := cache.Parse(bystander); err != nil {
				return 0, err
			}
			asked++
			found += cache.Stats().Hits - hits
		}
	}
	return float64(found) / asked, nil
}

func size(fields [][]byte) (sum int) {
	for _, data := range fields {
		sum += len(data)
	}
	return sum
}
