package ownership

import (
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Move is one move of ownership: Transfer, Release, Adopt, Drop or Rename.
//
// Where it says From, a Key with nothing but a Manager stands for all entries of
// that name, whatever their operation, version and subresource; a Subresource or an
// APIVersion narrows that down. With an Operation it stands for the one entry of that
// key, or for an Update without an APIVersion for those of all versions. [Selects]
// tells.
//
// Where it says To, a Key without an Operation is that of an applier; through
// which subresource, if it does not say, is for the entry to say from which the
// fields come.
//
// Fields are chosen by paths, each of which stands for itself and all that is below
// it. Every path must be that of something to move. No fields are an error, and not
// everything; All stands for that.
type Move interface {
	do(s *state) error
}

// Transfer moves fields from one manager to another.
type Transfer struct {
	Fields   *fieldpath.Set
	All      bool
	From, To managedfields.Key
}

// Release takes fields from a manager. What nobody else owns is owned by nobody
// afterwards: it stays in the object, and no apply ever removes it.
type Release struct {
	Fields *fieldpath.Set
	All    bool
	From   managedfields.Key
}

// Adopt makes a manager an owner of what is in the object already, along with who
// owns it.
type Adopt struct {
	Fields *fieldpath.Set
	All    bool
	To     managedfields.Key
	// Version is the API version (group/version) of the adoption, for a manager that
	// has no entry yet; live's when it is empty.
	APIVersion string
}

// Drop takes everything from a manager that is gone.
type Drop struct {
	From managedfields.Key
}

// Rename gives the entries of a manager to another name, operation by operation.
// Where the other has one already, both become one.
type Rename struct {
	From managedfields.Key
	To   string
}
