package managedfields

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Key identifies an entry (spec rule 2.1). It is comparable. The keys of an object's entries are distinct.
type Key struct {
	// Manager is the manager's name.
	Manager string
	// Operation is Apply or Update.
	Operation metav1.ManagedFieldsOperationType
	// APIVersion is the group version of an Update, such as apps/v1. It is empty for an Apply, because an applier has
	// one entry for all versions.
	APIVersion string
	// Subresource is status, scale and so on; empty for the main resource.
	Subresource string
}

// KeyOf returns the key of the entry for an operation of manager at a group version.
func KeyOf(manager string, op metav1.ManagedFieldsOperationType, apiVersion, subresource string) Key {
	if op == metav1.ManagedFieldsOperationApply {
		apiVersion = ""
	}
	return Key{manager, op, apiVersion, subresource}
}

// String returns the key in words: its manager and operation, and the subresource.
func (k Key) String() string {
	s := fmt.Sprintf("%q (%s", k.Manager, k.Operation)
	if k.Subresource != "" {
		s += fmt.Sprintf(" through %q", k.Subresource)
	}
	return s + ")"
}

// identity is the JSON of an entry that has only the fields of the key.
func (k Key) identity() string {
	b, _ := json.Marshal(metav1.ManagedFieldsEntry{
		Manager: k.Manager, Operation: k.Operation, APIVersion: k.APIVersion, Subresource: k.Subresource,
	}) // strings can always be encoded
	return string(b)
}

// Compare orders keys as kube-apiserver orders managers in a conflict, by their identities. It encodes both keys.
func (k Key) Compare(o Key) int {
	if k == o {
		return 0
	}
	return strings.Compare(k.identity(), o.identity())
}

// maxManagerLength is the maximum length of a manager name, in bytes.
const maxManagerLength = 128

// ValidateManager checks a manager name, like Apply and Update of a FieldManager (spec rule 2.2). It returns an error
// if name is longer than 128 bytes or contains unprintable characters. It accepts the empty name, which a server allows
// only for updates.
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
// header before the first /, without unprintable characters, truncated to 128 bytes.
func ManagerFromUserAgent(agent string) string {
	agent, _, _ = strings.Cut(agent, "/")
	name := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, agent)
	return strings.ToValidUTF8(name[:min(len(name), maxManagerLength)], "")
}
