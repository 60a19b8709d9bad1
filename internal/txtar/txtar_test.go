package txtar_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/txtar"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		text string
		want txtar.Archive
		why  string
	}{
		{"", txtar.Archive{}, "nothing"},
		{"a\nb", txtar.Archive{Comment: []byte("a\nb\n")}, "a comment alone, which gets a line break"},
		{"a\n-- b c --\nd\n\n--  e  --\r\n-- f --", txtar.Archive{Comment: []byte("a\n"), Files: []txtar.File{
			{Name: "b c", Data: []byte("d\n\n")}, {Name: "e"}, {Name: "f"},
		}}, "names may have spaces; files may be empty"},
		{"-- --\n--  --\n -- a --\n--a--\n-- a -- \n",
			txtar.Archive{Comment: []byte("-- --\n--  --\n -- a --\n--a--\n-- a -- \n")}, "lines that begin no file"},
	} {
		got := txtar.Parse([]byte(row.text))
		require.Equal(t, row.want, *got, row.why)
		require.Equal(t, got, txtar.Parse(txtar.Format(got)), row.why)
	}
}
