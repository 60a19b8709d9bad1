package applier

// MaxRecords is the bound on the objects that Answers remember.
const MaxRecords = maxRecords

// Remembered returns how many objects Answers remember.
func (a *Answers) Remembered() int { return len(a.records) }
