package managedfields

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxManagerLength is the longest name of a manager, in bytes.
const MaxManagerLength = 128

// ValidateManager keeps the limits of spec rule 2.2. It returns an error when name cannot be a manager's name: it is
// longer than [MaxManagerLength] or has characters that do not print. The empty
// name is valid here; an apply needs one that is not empty.
func ValidateManager(name string) error {
	if len(name) > MaxManagerLength {
		return fmt.Errorf("manager name: may not be longer than %d bytes, got %d", MaxManagerLength, len(name))
	}
	for i, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("manager name: should only contain printable characters, got %q at byte %d", r, i)
		}
	}
	return nil
}

// ManagerFromUserAgent returns the name of the manager of a request that names
// none: what stands before the first / of its User-Agent header, without
// characters that do not print, cut to [MaxManagerLength] bytes.
func ManagerFromUserAgent(agent string) string {
	agent, _, _ = strings.Cut(agent, "/")
	var name strings.Builder
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if name.Len()+utf8.RuneLen(r) > MaxManagerLength {
			break
		}
		name.WriteRune(r)
	}
	return name.String()
}
