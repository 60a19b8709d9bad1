package view

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table is drawn over the one before: the cursor goes up as many lines as that had.
func TestRedraw(t *testing.T) {
	var screen strings.Builder
	drawn, err := Redraw(&screen, "one\ntwo\n", 0)
	require.NoError(t, err)
	require.Equal(t, 2, drawn)
	drawn, err = Redraw(&screen, "three\n", drawn)
	require.NoError(t, err)
	require.Equal(t, 1, drawn)
	require.Equal(t, "one\ntwo\n\x1b[2A\x1b[Jthree\n", screen.String())
}
