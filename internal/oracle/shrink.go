package oracle

import (
	"fmt"
	"slices"
)

// Shrink returns a history that fails too, with fewer and smaller writes: none of them, and no field or item of their
// objects, can be left out. It replays at most as many histories as tries says, and returns what it has then. It may
// change the writes of h.
func (d *Definition) Shrink(h History, tries int) History {
	fails := func(writes []Write) bool {
		if tries--; tries < 0 {
			return false
		}
		again := d.Replay(writes) // which may fail before its end
		if again.Err != nil {
			h = again
		}
		return again.Err != nil
	}
	for size := 0; size != len(fmt.Sprint(h.Writes)); {
		size = len(fmt.Sprint(h.Writes))
		for i := len(h.Writes) - 2; i >= 0; i = min(i, len(h.Writes)) - 1 {
			fails(slices.Delete(slices.Clone(h.Writes), i, i+1))
		}
		for _, write := range h.Writes {
			reduce(write.Object.Object, nil, func() bool { return fails(h.Writes) })
		}
	}
	return h
}

// reduce leaves out what it can of a value, in place, as long as the history fails; set replaces a list.
func reduce(v any, set func(any), fails func() bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			old := v[name]
			if delete(v, name); !fails() {
				v[name] = old
				reduce(old, func(now any) { v[name] = now }, fails)
			}
		}
	case []any:
		for i, item := range slices.Backward(v) {
			less := slices.Delete(slices.Clone(v), i, i+1)
			if set(less); fails() {
				v = less
			} else {
				set(v)
				reduce(item, func(now any) { v[i] = now }, fails)
			}
		}
	}
}
