// Package blame shows who owns each line of an object: the YAML that kubectl
// prints, and for every line the managers that own what it shows, how they came
// to own it, and when.
//
//	report, err := blame.New(object, blame.Options{Now: time.Now()})
//	err = blame.Text(os.Stdout, nil, report) // or blame.JSON, or blame.HTML
//
// # Rules
//
//   - A line shows one field, or several: `- name: web` begins the item of a
//     list, and holds the first field of it. Both have owners of their own,
//     because an item can be owned without what is in it, and the other way
//     round (spec rule 4.3). All lines of a long string show one field.
//   - What is in an atomic list or map is owned along with it ([Whole]). A struct
//     is not owned itself, only what is in it ([Parent]).
//   - Nobody ever owns what identifies an object or is its server's to fill in
//     ([Exempt], spec rule 2.7). Everything else without an owner is [Unowned].
//   - The entries say which lists are keyed and which are sets, so that no schema
//     is needed. One helps where they cannot tell: whether a list or map that is
//     owned, and nothing in it, is atomic, and which defaults keys have.
//   - An entry that can't be read is shown as such, and so are paths in entries
//     that lead nowhere in the object.
//   - The output follows from the input alone: nothing is random, and the time is
//     the caller's.
//   - Objects may hold anything. Text that comes from them can neither control a
//     terminal nor run in a page; what would is shown by its number, \u001b.
//
// # How an entry meets the object
//
// An element of a path selects a child of the value that it meets:
//
//	f:name        the entry of a map
//	k:{"name":…}  the items that have these key fields
//	v:"a"         the items that are this scalar
//	i:3           the item at this position
//
// An item that lacks key fields is selected by the rest of them when no item has
// them all: a server has put the defaults of keys into the element, and the
// object in hand may be from before that. Items that stand twice are both
// selected.
package blame
