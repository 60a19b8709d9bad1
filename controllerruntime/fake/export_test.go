package fake

// Compiled returns the number of definitions whose compiled types are cached.
func Compiled() int {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	return len(compiled.byHash)
}
