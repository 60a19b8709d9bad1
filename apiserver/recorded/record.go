package recorded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Record sends the requests of a trace to a new server, and replaces the responses in the trace by the responses of
// this server. In the requests, it replaces generated values by the values that this server generated. It returns the
// differences from the earlier responses, by step.
func (r *Replayer) Record(ctx context.Context, trace *Trace) (differences map[int]string, err error) {
	differences = map[int]string{}
	err = r.Run(ctx, trace, Hooks{
		WithFaults: true,
		Clock: func(_ *Step, isLater bool) error {
			if isLater {
				time.Sleep(time.Second)
			}
			return nil
		},
		Done: func(number int, step *Step, answer *Answer) (bool, error) {
			if answer == nil {
				return true, nil
			}
			difference, err := r.recordStep(step, answer)
			if difference != "" {
				differences[number] = difference
			}
			return true, err
		},
	})
	return differences, err
}

// recordStep writes a response into its step, and learns the generated values that requests of later steps need.
func (r *Replayer) recordStep(step *Step, answer *Answer) (difference string, err error) {
	asked := step.Request
	asked.Path, asked.Query = r.translate(asked.Path), r.translate(asked.Query)
	if asked.Body != nil {
		body, err := json.Marshal(r.withEntries(asked.Body))
		if err != nil {
			return "", err
		}
		if err := utiljson.Unmarshal([]byte(r.translate(string(body))), &asked.Body); err != nil {
			return "", err
		}
	}
	difference = r.compare(step, answer).Difference // compare learns the generated values
	step.Request = asked
	step.Response = Answered{Code: answer.Code, Warnings: answer.Header.Values("Warning")}
	if err := utiljson.Unmarshal(answer.Body, &step.Response.Body); err != nil {
		return "", err
	}
	if step.Now != "" {
		date, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			return "", err
		}
		step.Now = clockOf(step.Response.Body, date).Format(time.RFC3339)
	}
	return difference, nil
}

// Learn remembers which generated values and managed fields entries of an object correspond to which values and entries
// of a recorded object.
func (r *Replayer) Learn(got, want map[string]any) {
	without := func(object map[string]any) map[string]any {
		object = maps.Clone(object)
		if metadata, ok := object["metadata"].(map[string]any); ok {
			metadata = maps.Clone(metadata)
			delete(metadata, "managedFields")
			object["metadata"] = metadata
		}
		return object
	}
	r.Difference(without(got), without(want))
	for _, e := range entriesIn(want) {
		for _, ours := range entriesIn(got) {
			if maps.Equal(keyOf(e), keyOf(ours)) {
				r.entries[fmt.Sprint(e)] = ours
			}
		}
	}
}

// entriesIn returns the managed fields of an object.
func entriesIn(object map[string]any) []any {
	metadata, _ := object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return entries
}

// keyOf returns the part of an entry that distinguishes it from other entries of its object.
func keyOf(entry any) map[string]any {
	key, _ := entry.(map[string]any)
	key = maps.Clone(key)
	delete(key, "fieldsV1")
	delete(key, "time")
	return key
}

// clockOf returns the server's clock at a write. date is the time of the response, which may be one second later than
// the write. If a managed fields entry has exactly this time, or if no entry has the time one second earlier, clockOf
// returns date. Otherwise it returns the earlier time.
func clockOf(written map[string]any, date time.Time) time.Time {
	u := unstructured.Unstructured{Object: written}
	for _, e := range u.GetManagedFields() {
		if e.Time != nil && e.Time.Equal(&metav1.Time{Time: date}) {
			return date
		}
	}
	for _, e := range u.GetManagedFields() {
		if e.Time != nil && e.Time.Time.Equal(date.Add(-time.Second)) {
			return e.Time.UTC()
		}
	}
	return date
}
