package gmac

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	texts := []string{"", "a", "b", "\x00", "\x00\x00", long, long + "b", "b" + long}
	seen := map[Sum]string{}
	for _, text := range texts {
		sum := Of([]byte(text))
		require.Equal(t, sum, Of([]byte(text)), "the same text has the same sum")
		require.NotContains(t, seen, sum, "another text has another sum")
		seen[sum] = text
	}
}
