package blame

import (
	"encoding/json"
	"io"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// JSON writes reports as a JSON object with one member, objects, that holds them
// in order: see the tags of Report. Paths are strings as in conflicts.
// Characters that are not printable, such as those that control a terminal or the
// direction of text, are escaped.
func JSON(w io.Writer, reports ...*Report) error {
	if reports == nil {
		reports = []*Report{}
	}
	data, err := json.MarshalIndent(struct {
		Objects []*Report `json:"objects"`
	}{reports}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(printable.JSON(data), '\n'))
	return err
}

// MarshalJSON writes the field with its path as a string, such as
// .spec.containers[name="a"].image.
func (f Field) MarshalJSON() ([]byte, error) {
	type plain Field // has no MarshalJSON
	return json.Marshal(struct {
		Path string `json:"path"`
		plain
	}{f.Path.String(), plain(f)})
}

// MarshalJSON writes the entry with its absent paths as strings.
func (e Entry) MarshalJSON() ([]byte, error) {
	type plain Entry
	return json.Marshal(struct {
		plain
		Absent []string `json:"absent,omitempty"`
	}{plain(e), texts(e.Absent)})
}

func texts(paths []fieldpath.Path) []string {
	var out []string
	for _, p := range paths {
		out = append(out, p.String())
	}
	return out
}
