package typed

// ApplyPlainly is Apply by the plain operations at the root, as the walk has it at places
// of rare kinds.
var ApplyPlainly = (*Type).applyPlainly
