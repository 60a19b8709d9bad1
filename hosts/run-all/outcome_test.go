package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	o := parse(`=== RUN   TestA
=== RUN   TestA/one
--- FAIL: TestA (0.01s)
    --- PASS: TestA/one (0.00s)
    --- FAIL: TestA/two (0.00s)
--- PASS: TestB (0.02s)
--- SKIP: TestC (0.00s)
--- FAIL: TestD (0.00s)
FAIL
`)
	require.Equal(t, &outcome{run: 4, subtests: 2, passed: 1, skipped: 1, failed: []string{"TestA/two", "TestD"}}, o)
	s := suite{name: "suite", differences: map[string]string{"TestD": "19"}}
	require.Equal(t, "| suite | 4 (2 subtests) | 1 | 1 | `TestA/two` (no number); `TestD` (19) |", o.row(s))
	require.Equal(t, []string{"TestA/two"}, o.unknown(s))

	o = parse(
		"\x1b[1mRan 361 of 361 Specs in 0.5 seconds\x1b[0m\n\x1b[1mFAIL!\x1b[0m -- \x1b[32m360 Passed\x1b[0m | \x1b[31m1 Failed\x1b[0m | 0 Pending | 0 Skipped\n" +
			"  \x1b[38;5;9m[FAIL]\x1b[0m a b\n--- FAIL: TestSource (0.6s)\n",
	)
	require.Equal(t, 361, o.run)
	require.Equal(t, 360, o.passed)
	require.Equal(t, 0, o.skipped)
	require.True(t, o.specs)
	require.Equal(t, []string{"a b"}, o.failed, "without colors, and without the test that runs the specs")

	o = parse(`Ran 2 of 3 Specs in 0.1 seconds
SUCCESS! -- 2 Passed | 0 Failed | 1 Pending | 0 Skipped
--- FAIL: TestOther (0.1s)
    --- FAIL: TestOther/one (0.1s)
FAIL	example.com/a	0.123s
Ran 5 of 5 Specs in 0.1 seconds
  [FAIL] c d
FAIL! -- 4 Passed | 1 Failed | 0 Pending | 0 Skipped
--- FAIL: TestSuite (0.1s)
FAIL	example.com/b	0.123s
`)
	require.Equal(t, &outcome{
		run: 7, passed: 6, skipped: 1, specs: true, failed: []string{"TestOther/one", "c d"},
	}, o, "two packages")

	o = parse(
		`I1122 07:00:00.000000  1 compare.go:266] "Tenure differs from upstream" difference="19" of="error" operation="apply"
I1122 07:00:00.000000  1 compare.go:266] "Tenure differs from upstream" difference="2" of="managedFields" operation="update"
I1122 07:00:00.000000  1 compare.go:266] "Tenure differs from upstream" difference="19" of="object" operation="apply"
--- PASS: TestA (0.0s)
`,
	)
	require.Equal(t, "19 (2 times), 2 (1 times)", o.shadowRow())
	require.Equal(t, "none", parse("--- PASS: TestA (0.0s)\n").shadowRow())
	o = parse("+++ Running case: test-cmd.record_command_canary \n+++ working dir: /\n+++ exit code: 1\n" +
		"+++ Running case: test-cmd.run_a \n+++ command: run_a\n\x1b[32mok\n\x1b(B\x1b[m+++ exit code: 0\n" +
		"+++ Running case: test-cmd.run_b \n+++ exit code: 1\nFAILED TESTS: run_b, \n")
	require.Equal(t, &outcome{run: 2, passed: 1, failed: []string{"run_b"}}, o, "scripts")
	require.Equal(t, "the scripts ended early, after run_a",
		parse("+++ Running case: test-cmd.run_a \n+++ exit code: 0\n").broken)

	require.NotEmpty(t, parse("FAIL\texample.com/x [build failed]\n").broken)
	require.NotEmpty(t, parse("--- PASS: TestA (0.0s)\npanic: gone\n").broken)
	require.NotEmpty(t, parse("--- PASS: TestA (0.0s)\nsignal: terminated\n").broken)
}
