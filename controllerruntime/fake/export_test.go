package fake

// Compiled returns how many definitions were compiled and kept.
func Compiled() int {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	return len(compiled.byHash)
}
