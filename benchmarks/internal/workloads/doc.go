// Package workloads lists the operations of the benchmarks. A [Workload] prepares its inputs once, through upstream, so
// that both engines start from the same stored object; then [Case.Bind] returns the operation with one of the engines.
//
// # What is timed
//
//   - The call of the field manager is timed. Its input is the live object and the request's object in decoded form,
//     and its output is the object as a server would encode it. The call decodes and encodes managed fields. Reading
//     JSON is not timed.
//   - If an operation may change an object, the object is copied before each operation, for both engines, as deep as
//     the operation may change it. For example, upstream sets managed fields in the new object of an update.
//   - Results are not copied. Tenure's results share memory with live: if an apply changes nothing, the result is live
//     itself, while upstream returns a deep copy. A host that changes such a result must copy it first, which is not
//     timed.
//   - Caches are warm in both engines: every operation is on an object that was written before, as in a controller's
//     loop.
//   - Objects that a server gets from different sources share no memory, including strings: for example, live and the
//     request's object.
package workloads
