// Package blame shows who owns each line of an object: the YAML that kubectl prints and, for every line, the managers
// that own its field, with operation and age.
//
//	report, err := blame.New(object, blame.Options{Now: time.Now()})
//	err = blame.Text(os.Stdout, nil, report)
//
// # Rules
//
//   - A line shows one field, or several: `- name: web` begins a list item, and holds its first field. Both have owners
//     of their own, because a manager can own an item without its fields, and the other way round (spec rule 4.3). All
//     lines of a long string show one field.
//   - The owner of an atomic list or map owns everything in it ([Whole]). So does the owner of duplicate items, if its
//     entry has nothing below their element: they are compared as one leaf (spec rule 5.4). A struct itself has no
//     owner, only its fields have ([Parent]).
//   - Fields that identify an object, and those that only the server sets, never have an owner ([Exempt],
//     spec rule 2.7). Every other field without an owner is [Unowned].
//   - No schema is needed: the entries show which lists are keyed and which are sets. A schema helps where they can't:
//     it tells whether a list or map without owned content is atomic, and the defaults of key fields.
//   - The report shows entries that can't be decoded, and paths of entries that do not exist in the object.
//   - Equal input gives equal output. The caller passes the time.
//   - Objects may hold any text. Text from them can't control a terminal: characters that are not printable are
//     escaped, such as \u001b.
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
// If no item has all fields of a key, the element selects the items that have most of them and lack the others: the
// server has added the defaults of key fields to the element, and the object may be older. An element selects all of
// several equal items.
package blame
