package typed

// ApplyPlainly is Apply by the plain operations at the root, as the walk has it at places
// of rare kinds.
var ApplyPlainly = (*Type).applyPlainly

// Fits reports whether a guess fits a value.
func Fits(g *Guess, v any) bool { return g.fits(v, 0) }
