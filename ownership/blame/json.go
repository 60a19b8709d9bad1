package blame

import (
	"encoding/json"
	"io"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// JSON writes reports as a JSON object with one member, objects, that holds them in order: see the tags of Report.
// Paths are strings as in conflicts. Characters that are not printable, such as those that control a terminal or the
// direction of text, are escaped.
func JSON(w io.Writer, reports ...*Report) error {
	if reports == nil {
		reports = []*Report{}
	}
	data, err := json.MarshalIndent(map[string][]*Report{"objects": reports}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(printable.JSON(data), '\n'))
	return err
}
