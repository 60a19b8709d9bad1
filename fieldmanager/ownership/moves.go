package ownership

import (
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Move is one move of ownership: Transfer, Release, Adopt, Drop or Rename.
//
// From selects entries. A Key that has only a Manager selects all entries of that name, with any operation, version
// and subresource; Subresource and APIVersion restrict the selection. A Key with an Operation selects the entry of
// that key; for an Update without an APIVersion, those of all versions. See [Selects].
//
// To is the key of an entry. Without an Operation it is that of an applier; without either it has the subresource
// through which that applier owns the fields: the main resource, unless it applies through that of the entry that the
// fields come from and not through the main resource, or unless that is status.
//
// Fields are selected by paths, each with everything below it. There must be something to move at every path. An
// empty selection is an error; set All to move everything.
type Move interface {
	do(s *state) error
}

// Transfer moves fields from one manager to another.
type Transfer struct {
	Fields   *fieldpath.Set
	All      bool
	From, To managedfields.Key
}

// Release removes fields from a manager. A field that nobody else owns stays in the object without an owner, and no
// apply removes it.
type Release struct {
	Fields *fieldpath.Set
	All    bool
	From   managedfields.Key
}

// Adopt makes a manager an owner of fields that the object has, together with their owners.
type Adopt struct {
	Fields *fieldpath.Set
	All    bool
	To     managedfields.Key
	// APIVersion is the group version of the manager's entry if it has none yet; live's if it is empty.
	APIVersion string
}

// Drop removes the entries of a manager that no longer exists.
type Drop struct {
	From managedfields.Key
}

// Rename changes the manager of entries, for each operation. Entries of the new name are merged with them.
type Rename struct {
	From managedfields.Key
	To   string
}
