// Package workloads lists what the benchmarks do. A [Workload] prepares its
// inputs once, through upstream, so that both engines start from the same stored
// object; [Case.Bind] then gives its body over one engine or the other.
//
// # What is timed
//
//   - The call of the field manager, from the live object and the request's
//     object as a server has decoded them to the object as it would encode it:
//     managed fields are decoded and encoded within. Reading JSON is not timed;
//     the results give it beside, as a floor.
//   - Objects that one operation may change (the new object of an update, to which
//     upstream gives managed fields in place) are copied beforehand, as deep as it
//     may change them, for each operation and for either engine.
//   - Results are taken as they come. Tenure's share with live: of an apply that
//     changes nothing it is live itself, where upstream returns a deep copy. A host
//     that changes such a result has to copy it first, at the cost of the floor.
//   - Caches are warm, in both: every operation is on an object that was seen
//     before, as in a controller's loop.
//   - Objects that a server has from different sources share no memory: live is
//     not the request's object, nor are their strings.
package workloads
