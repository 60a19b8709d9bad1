package applier

// MaxWritten is the bound on the names that an Applier remembers before the oldest are forgotten.
const MaxWritten = maxWritten

// Remembered returns how many writes an Applier remembers.
func (a *Applier) Remembered() int { return len(a.written) + len(a.before) }
