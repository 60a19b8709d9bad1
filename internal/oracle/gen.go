package oracle

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
)

// Gen makes random schemas, values, edits of values and writes from a string of bytes. When the bytes run out, it makes
// the simplest schemas and values. All fuzzers that compare Tenure with upstream use it. A string of at most eight
// bytes is the seed of a longer string, so that a fuzzer that changes one bit makes a completely different world.
//
// Lists and maps usually have 0 to 3 items. A [Profile] has the sizes of large lists and maps. A large list needs only
// a few bytes, because most of its items differ only in their keys.
type Gen struct {
	Profile
	// Validated means that a server validates values: no item of a list is null.
	Validated bool

	manager  string // the last manager
	data     []byte
	odd      bool // odd words, and clients that do unusual things
	nulls    bool // nulls are frequent
	strict   bool // no value is null, as in metadata, which a server decodes into Go structs
	fixed    bool // the type does not change
	served   bool // writes are sent to a server, which validates names and labels
	outlived bool // a version may cease to exist while entries of it remain
	size     int  // approximate size of most large lists in one world
	room     int  // number of items that large lists may still have in the current value
}

// NewGen returns a Gen that uses data.
func NewGen(data []byte) *Gen {
	g := &Gen{data: expanded(data)}
	if name := os.Getenv("PROFILE"); name != "" {
		p, ok := profiles[name]
		if !ok {
			panic(fmt.Sprintf("PROFILE is %q, expected one of %v", name, sortedKeys(profiles)))
		}
		g.Profile = p
		return g
	}
	switch g.Intn(10) {
	case 1, 2:
		g.Profile = profiles["edge"]
	case 3:
		g.Profile = profiles["alike"]
	}
	return g
}

// NewOddGen returns a Gen that uses data, for rare cases: names and texts that look like something else, one number in
// several Go types, managed fields that no server wrote.
func NewOddGen(data []byte) *Gen {
	g := NewGen(data)
	g.odd = true
	return g
}

// Profile determines sizes and numbers. The environment variable PROFILE selects one for all worlds. By default, most
// worlds are small, and some have the profiles edge and alike.
type Profile struct {
	Objects  int   // number of additional objects that are written in turn
	sizes    []int // of large lists
	items    int   // maximum number of items of all large lists in one value
	managers int   // number of additional managers
}

// Engines switch algorithms by size, usually at powers of two. So there are sizes just below and just above powers of
// two.
var profiles = map[string]Profile{
	"small": {},
	"edge":  {sizes: []int{5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 100, 129}, items: 260, managers: 40},
	"large": {sizes: []int{129, 500, 1000, 3000}, items: 3000, managers: 40},
	"alike": {sizes: []int{9, 17, 33, 65}, items: 70, Objects: 2},
}

// expanded returns data, or the longer string if data is a seed.
func expanded(data []byte) []byte {
	if len(data) == 0 || len(data) > 8 {
		return data
	}
	var seed [8]byte
	copy(seed[:], data)
	return Random(binary.LittleEndian.Uint64(seed[:]))
}

// Random returns 100 to 1999 bytes, always the same for one seed: enough for a type and some writes.
func Random(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 100+r.IntN(1900))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// Seeds returns the seeds of a fuzzer, which are random bytes. The environment variable SEEDS selects other seeds:
// SEEDS=1000:50000 makes 50,000 worlds, starting with seed 1000.
func Seeds() [][]byte {
	var out [][]byte
	var first, count uint64
	if _, err := fmt.Sscanf(os.Getenv("SEEDS"), "%d:%d", &first, &count); err == nil {
		for i := range count {
			out = append(out, binary.LittleEndian.AppendUint64(nil, (first+i)*0x9e3779b97f4a7c15))
		}
		return out
	}
	for i := range uint64(120) {
		out = append(out, Random(i))
	}
	return out
}

// below is Intn for large n.
func (g *Gen) below(n int) int {
	if n > 256 {
		return (g.Intn(256)<<8 | g.Intn(256)) % n
	}
	return g.Intn(max(n, 1))
}

// Done reports whether the bytes have run out.
func (g *Gen) Done() bool { return len(g.data) == 0 }

// Intn returns a number from 0 to n-1; 0 if the bytes have run out.
func (g *Gen) Intn(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	b := int(g.data[0])
	g.data = g.data[1:]
	return b % n
}

// Chance is true once in n times on average, and never if the bytes have run out.
func (g *Gen) Chance(n int) bool { return !g.Done() && g.Intn(n) == n-1 }

var (
	fieldNames = []string{"a", "b", "c", "spec", "items", "x/y"}
	keyNames   = []string{"name", "port", "proto"}
	texts      = []string{"", "a", "b", "<&>", "\"q\"", "1"}
	numbers    = []any{int64(0), int64(1), int64(-3), 1.5, float64(2)}

	plainNames   = []string{"a", "b", "c", "d"}
	plainNumbers = []any{int64(0), int64(1), int64(2), int64(3)}

	oddNames   = []string{"a", "b", "", ".", "f:a", "é", "name"}
	oddTexts   = []string{"", "a", "\u00e9", "\u2028", "\x7f", "{\"a\":1}", "1", "\x01"}
	oddNumbers = []any{int64(0), int64(1), float64(1), int64(2), float64(2), 1.5, 0.1, int64(100_000), 1e21, float64(0)}
)

func (g *Gen) name() string {
	if g.odd {
		return oddNames[g.Intn(len(oddNames))]
	}
	if g.served {
		return plainNames[g.Intn(len(plainNames))]
	}
	return fieldNames[g.Intn(len(fieldNames))]
}

func (g *Gen) text() string {
	if g.odd {
		return oddTexts[g.Intn(len(oddTexts))]
	}
	if g.served {
		return plainNames[g.Intn(len(plainNames))]
	}
	return texts[g.Intn(len(texts))]
}

func (g *Gen) number() any {
	if g.odd {
		return oddNumbers[g.Intn(len(oddNumbers))]
	}
	if g.served {
		return plainNumbers[g.Intn(len(plainNumbers))]
	}
	return numbers[g.Intn(len(numbers))]
}
