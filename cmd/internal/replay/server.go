package replay

import (
	"context"
	"strings"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// RunServer replays one trace on an API server of its own, over HTTP: the code, the warnings and the
// whole response of each step, managed fields included, must be as recorded, except for what a server
// generates. The reasons of skips are the exceptions of package recorded, and an earlier step that
// differed. The server has the Validation of options.
func RunServer(ctx context.Context, t *Trace, options apiserver.Options) ([]Result, error) {
	results, err := recorded.Replay(ctx, t, options)
	if err != nil {
		return nil, err
	}
	out := make([]Result, len(t.Steps))
	for i := range t.Steps {
		out[i] = Result{Trace: t.Name, Step: i, Kind: kindOf(&t.Steps[i])}
		switch {
		case i >= len(results):
			out[i].Outcome, out[i].Detail = Skipped, "an earlier step differed"
		case results[i].Exception != recorded.NoException:
			out[i].Outcome, out[i].Detail = Skipped, string(results[i].Exception)
		case results[i].Difference != "":
			out[i].Outcome, out[i].Detail = Differed, strings.TrimSpace(results[i].Difference)
		case t.Steps[i].Request.Method == "CRD":
			out[i].Outcome, out[i].Detail = Skipped, string(skipSchemaChange)
		}
	}
	return out, nil
}
