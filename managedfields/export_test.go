package managedfields

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// Cache is a cache with its own limit.
type Cache struct{ cache }

func NewCache(size int) *Cache { return &Cache{cache{limit: size}} }

func (c *Cache) Parse(data []byte) (*fieldpath.Set, error) { return c.parse(data) }

// Size is the total size of the entries in c, in bytes.
func (c *Cache) Size() (n int) {
	for _, generation := range []map[string]*fieldpath.Set{c.young, c.old} {
		for text := range generation {
			n += sizeOf(text)
		}
	}
	return n
}

// IsDecoded reports whether the fields of e were decoded.
func (e *Entry) IsDecoded() bool { return e.decoded }
