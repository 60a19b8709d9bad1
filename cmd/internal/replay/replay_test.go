package replay

import (
	"os"
	"testing"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

func TestDebug(t *testing.T) {
	p := os.Getenv("TRACES")
	if p == "" {
		t.Skip()
	}
	traces, err := Load(p)
	if err != nil {
		t.Fatal(err)
	}
	n := map[Outcome]int{}
	skips := map[string]int{}
	shown := 0
	for _, tr := range traces {
		for _, r := range Run(tr, openapi.Builtin()) {
			n[r.Outcome]++
			if r.Outcome == Skipped {
				skips[r.Detail]++
			}
			if r.Outcome == Differed && shown < 12 {
				shown++
				t.Logf("%s step %d %s: %s", r.Trace, r.Step, r.Kind, r.Detail)
			}
		}
	}
	t.Log(n, skips)
}
