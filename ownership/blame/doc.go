// Package blame shows who owns each line of an object. It prints the object's YAML as kubectl does. For every line, it
// prints the managers that own the line's field, with operation and age.
//
//	report, err := blame.New(object, blame.Options{Now: time.Now()})
//	err = blame.Text(os.Stdout, nil, report)
//
// # Rules
//
//   - A line shows one field or several: `- name: web` begins a list item, and holds the item's first field. The item
//     and the field have separate owners, because a manager can own an item without its fields, and fields without the
//     item (spec rule 4.3). All lines of a long string show the same field.
//   - The owner of an atomic list or map owns everything in it ([Whole]). If an entry has the element of duplicate
//     items and no paths below the element, it owns everything in these items, because duplicates are compared as one
//     leaf (spec rule 5.4). A struct itself has no owner; only its fields have owners ([Parent]).
//   - Fields that identify an object, and fields that only the server sets, never have an owner ([Exempt],
//     spec rule 2.7). All other fields without an owner are [Unowned].
//   - No schema is needed: the entries show which lists are keyed and which are sets. A schema adds what entries
//     can't show: whether a list or map without owned content is atomic, and the defaults of key fields.
//   - The report lists entries that can't be decoded, and paths of entries that do not exist in the object.
//   - Equal input gives equal output. The caller passes the time.
//   - Objects may hold any text. Text from them can't control a terminal: characters that are not printable are
//     escaped, such as \u001b.
//
// # How paths of entries select parts of the object
//
// An element of a path selects children of a value:
//
//	f:name        the value of a field, or of a map's key
//	k:{"name":…}  the items that have these key fields
//	v:"a"         the items that equal this scalar
//	i:3           the item at this position
//
// If no item has all fields of a key, the element selects the items that have most of these fields and lack the others.
// This happens because the server adds the defaults of key fields to the element, but an older object may lack them. If
// several items are equal, the element selects all of them.
package blame
