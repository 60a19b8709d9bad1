package blame

import (
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const (
	// maxShapes is how many different sets of key fields the entries may have for
	// one list. Two come of a list whose keys changed; the rest is hostile, and
	// would cost a search of the list each.
	maxShapes = 8
	// maxLenient is how many fields a key may have for items that lack some of
	// them to be found; it may have 16 subsets then.
	maxLenient = 4
)

// items finds the items of a list that elements of paths select. Each shape of
// key is indexed once, when it is first met.
type items struct {
	list   *node
	values map[string][]int // by the text of the element
	shapes map[string]*keys // by their joined names
	names  []string         // of all keys of the list, sorted
}

// keys is the index of a list by the fields of one shape of key.
type keys struct {
	byText  map[string][]int // by the text of the key of those fields that an item has
	subsets [][]string       // that items have, the largest first; all fields apart
}

func newItems(list *node) *items {
	it := &items{list: list, shapes: map[string]*keys{}}
	seen := map[string]bool{}
	for _, c := range list.cursors {
		for e := range c.below.Level() {
			key, _ := e.Key()
			for _, f := range key {
				if !seen[f.Name] {
					seen[f.Name] = true
					it.names = append(it.names, f.Name)
				}
			}
		}
	}
	return it
}

func (it *items) find(e fieldpath.Element) []int {
	switch e.Kind() {
	case fieldpath.KindIndex:
		if i, _ := e.Index(); i >= 0 && i < len(it.list.children) {
			return []int{i}
		}
	case fieldpath.KindValue:
		return it.byValue(e)
	case fieldpath.KindKey:
		key, _ := e.Key()
		return it.byKey(key)
	}
	return nil
}

func (it *items) byValue(e fieldpath.Element) []int {
	if it.values == nil {
		it.values = make(map[string][]int, len(it.list.children))
		for i, child := range it.list.children {
			if isScalar(child.value) {
				text := fieldpath.Value(child.value).Text()
				it.values[text] = append(it.values[text], i)
			}
		}
	}
	return it.values[e.Text()]
}

// byKey returns the items that have all fields of key, or else those that have
// most of them and lack the others. If there are several, those are preferred
// that lack the fields which only other keys of the list have: of the keys
// {port} and {port, protocol} the first selects the item without a protocol.
func (it *items) byKey(key []fieldpath.KeyField) []int {
	names := namesOf(key)
	shape := it.shape(names)
	if shape == nil {
		return nil
	}
	found := shape.byText[fieldpath.Key(key...).Text()]
	for _, subset := range shape.subsets {
		if len(found) > 0 {
			break
		}
		some := slices.DeleteFunc(slices.Clone(key), func(f fieldpath.KeyField) bool {
			return !slices.Contains(subset, f.Name)
		})
		found = shape.byText[fieldpath.Key(some...).Text()]
	}
	if len(found) < 2 || len(it.names) == len(names) {
		return found
	}
	var bare []int
	for _, i := range found {
		m, _ := it.list.children[i].value.(map[string]any)
		if !slices.ContainsFunc(it.names, func(name string) bool {
			_, has := m[name]
			return has && !slices.Contains(names, name)
		}) {
			bare = append(bare, i)
		}
	}
	if len(bare) > 0 {
		return bare
	}
	return found
}

// shape returns the index by the fields called names; nil when there are too many
// already.
func (it *items) shape(names []string) *keys {
	joined := strings.Join(names, "\x00")
	if shape, ok := it.shapes[joined]; ok || len(it.shapes) == maxShapes {
		return shape
	}
	shape := &keys{byText: map[string][]int{}}
	it.shapes[joined] = shape
	seen := map[string]bool{joined: true}
	for i, child := range it.list.children {
		key := it.list.keyOf(child.value, names)
		if len(key) == 0 || len(key) < len(names) && len(names) > maxLenient {
			continue
		}
		text := fieldpath.Key(key...).Text()
		shape.byText[text] = append(shape.byText[text], i)
		if has := namesOf(key); !seen[strings.Join(has, "\x00")] {
			seen[strings.Join(has, "\x00")] = true
			shape.subsets = append(shape.subsets, has)
		}
	}
	slices.SortStableFunc(shape.subsets, func(a, b []string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return slices.Compare(a, b)
	})
	return shape
}
