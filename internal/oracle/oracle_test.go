package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// FuzzWrites has upstream and Tenure do the same random writes to objects of
// the same random types.
func FuzzWrites(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, Run(data))
	})
}

// FuzzOddWrites is FuzzWrites with what comes up seldom.
func FuzzOddWrites(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, RunOdd(data))
	})
}

// FuzzCanonical has Tenure, in Canonical semantics, come to what upstream comes to
// when everybody uses the same words.
func FuzzCanonical(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, RunCanonical(data))
	})
}

// FuzzPlans compares the plan of every apply with the apply itself.
func FuzzPlans(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := RunPlans(data)
		require.NoError(t, err)
	})
}

// FuzzAgain applies every intent twice, and checks the other laws of applies.
func FuzzAgain(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := RunAgain(data)
		require.NoError(t, err)
	})
}

// FuzzFailing has conversions fail during writes.
func FuzzFailing(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := RunFailing(data)
		require.NoError(t, err)
	})
}

// The random worlds have writes during which conversions fail.
func TestConversionsFail(t *testing.T) {
	total := 0
	for _, seed := range Seeds() {
		failed, err := RunFailing(seed)
		require.NoError(t, err)
		total += failed
	}
	require.Greater(t, total, 300)
}

// The random worlds have enough applies that are not refused.
func TestAppliesAgain(t *testing.T) {
	total := 0
	for _, seed := range Seeds() {
		applied, err := RunAgain(seed)
		require.NoError(t, err)
		total += applied
	}
	require.Greater(t, total, 500)
}

// The random worlds have plans of every outcome, so that FuzzPlans says something
// about each.
func TestPlansOfEveryOutcome(t *testing.T) {
	total := map[plans.Outcome]int{}
	for _, seed := range Seeds() {
		seen, err := RunPlans(seed)
		require.NoError(t, err)
		for outcome, n := range seen {
			total[outcome] += n
		}
	}
	for outcome := plans.Unchanged; outcome <= plans.Conflict; outcome++ {
		require.GreaterOrEqual(t, total[outcome], 10, outcome)
	}
}

// FuzzMoves moves ownership in random objects.
func FuzzMoves(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := RunMoves(data)
		require.NoError(t, err)
	})
}

// The random worlds have objects in which something can be moved.
func TestMovesAreMade(t *testing.T) {
	total := 0
	for _, seed := range Seeds() {
		moved, err := RunMoves(seed)
		require.NoError(t, err)
		total += moved
	}
	require.Greater(t, total, 300)
}
