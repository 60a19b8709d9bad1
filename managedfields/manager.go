package managedfields

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxManagerLength is the length of the longest manager name, in bytes.
const maxManagerLength = 128

// ValidateManager checks a manager name (spec rule 2.2). It returns an error if name is longer than
// 128 bytes or has characters that are not printable. It accepts the empty name, which only updates may
// have.
func ValidateManager(name string) error {
	if len(name) > maxManagerLength {
		return fmt.Errorf("manager name: may not be longer than %d bytes, got %d", maxManagerLength, len(name))
	}
	for i, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("manager name: should only contain printable characters, got %q at byte %d", r, i)
		}
	}
	return nil
}

// ManagerFromUserAgent returns the manager of a request without a fieldManager parameter: the part of its User-Agent
// header before the first /, without characters that are not printable, cut to 128 bytes.
func ManagerFromUserAgent(agent string) string {
	agent, _, _ = strings.Cut(agent, "/")
	var name strings.Builder
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if name.Len()+utf8.RuneLen(r) > maxManagerLength {
			break
		}
		name.WriteRune(r)
	}
	return name.String()
}
