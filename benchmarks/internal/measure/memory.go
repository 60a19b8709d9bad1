package measure

import (
	"bytes"
	"fmt"
	"runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// Retained is what decoded managed fields weigh while they are kept.
type Retained struct {
	Engine string `json:"engine"`
	// Bytes is the growth of the heap, after collections.
	Bytes int64 `json:"bytes"`
	// Objects is the growth of the number of objects in it.
	Objects int64 `json:"objects"`
}

// Memory decodes and keeps the managed fields of Pods of one Deployment with each
// engine. wire is the size of all FieldsV1 together.
func Memory(pods int) (results []Retained, wire int, err error) {
	lists, err := workloads.PodEntries(pods)
	if err != nil {
		return nil, 0, err
	}
	for _, list := range lists {
		for _, entry := range list {
			wire += len(entry.FieldsV1.GetRawBytes())
		}
	}
	for _, e := range engines.Both() {
		r, err := retained(e, lists)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", e.Name, err)
		}
		results = append(results, r)
	}
	return results, wire, nil
}

func retained(e engines.Engine, lists [][]metav1.ManagedFieldsEntry) (Retained, error) {
	kept := make([]any, len(lists))
	before := heap()
	// The engine gets a copy that then goes away, so that whatever it keeps of its
	// input counts.
	input := cloneBytes(lists)
	for i, list := range input {
		var err error
		if kept[i], err = e.KeepEntries(list); err != nil {
			return Retained{}, err
		}
	}
	input = nil
	after := heap()
	runtime.KeepAlive(kept)
	return Retained{
		Engine:  e.Name,
		Bytes:   int64(after.HeapAlloc) - int64(before.HeapAlloc),
		Objects: int64(after.HeapObjects) - int64(before.HeapObjects),
	}, nil
}

func cloneBytes(lists [][]metav1.ManagedFieldsEntry) [][]metav1.ManagedFieldsEntry {
	out := make([][]metav1.ManagedFieldsEntry, len(lists))
	for i, list := range lists {
		for _, entry := range list {
			entry = *entry.DeepCopy()
			entry.FieldsV1.SetRawBytes(bytes.Clone(entry.FieldsV1.GetRawBytes()))
			out[i] = append(out[i], entry)
		}
	}
	return out
}

// heap returns the state of the heap after collections: the second one takes what
// pools have let go of in the first.
func heap() (m runtime.MemStats) {
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m
}
