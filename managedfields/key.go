package managedfields

import (
	"cmp"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Key identifies an entry (spec rule 2.1). It is comparable. No two entries of an object have the same key.
type Key struct {
	// Manager is the manager's name.
	Manager string
	// Operation is Apply or Update.
	Operation metav1.ManagedFieldsOperationType
	// APIVersion is the group version of an Update, such as apps/v1. It is empty for an Apply, as an applier has one
	// entry for all versions.
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

// identity returns the JSON of an entry that has only the key's fields: upstream's internal name of a manager. The
// order of conflicts, and of entries that the cap merges, follows from it.
func (k Key) identity() string {
	return jsonOf(metav1.ManagedFieldsEntry{
		Manager: k.Manager, Operation: k.Operation, APIVersion: k.APIVersion, Subresource: k.Subresource,
	})
}

// jsonOf returns the JSON of a string, or of a struct of strings.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("managedfields: bug: strings have no JSON: " + err.Error())
	}
	return string(b)
}

// Compare orders keys as kube-apiserver orders managers in a conflict: by the JSON of an entry that has only the
// key's fields. It compares field by field, in JSON's order, and encodes only fields that differ and need escapes.
func (k Key) Compare(o Key) int {
	if k == o {
		return 0
	}
	for _, pair := range [...][2]string{
		{k.Manager, o.Manager}, {string(k.Operation), string(o.Operation)},
		{k.APIVersion, o.APIVersion}, {k.Subresource, o.Subresource},
	} {
		if a, b := pair[0], pair[1]; a != b {
			switch {
			case a == "" || b == "": // an empty field is not in the JSON
				return strings.Compare(k.identity(), o.identity())
			case isPlain(a) && isPlain(b):
				return comparePlain(a, b)
			}
			if c := strings.Compare(jsonOf(a), jsonOf(b)); c != 0 {
				return c
			}
		}
	}
	return 0
}

// comparePlain compares two different strings as their JSON compares: the quote after the shorter one is compared
// with the next byte of the longer one.
func comparePlain(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	byteAt := func(s string) byte {
		if n < len(s) {
			return s[n]
		}
		return '"'
	}
	return cmp.Compare(byteAt(a), byteAt(b))
}

// isPlain reports whether s is its own JSON, without the quotes.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || strings.IndexByte("\"\\<>&", c) >= 0 {
			return false
		}
	}
	return true
}
