package fieldmanager

// Role is what an object is to a write.
type Role string

// The roles of objects.
const (
	LiveObject    Role = "live"
	AppliedObject Role = "applied"
	NewObject     Role = "new"
)

// ObjectError says which of the objects that a write was given is at fault. A
// server answers 400 or 422 to a fault of the applied or new object, which the
// client can mend, and 500 to one of the live object. An object beyond a limit is
// at fault (spec rule 12.8): a typed.Errors or *managedfields.Error names it.
type ObjectError struct {
	// Role is what the object is to the write.
	Role Role
	// Object names it, as kind namespace/name; empty when it could not be read.
	Object string
	// Err says what is wrong with it: a typed.Errors, with the path of each
	// violation, when the object does not fit its type.
	Err error
}

func (e *ObjectError) Error() string {
	if e.Object == "" {
		return string(e.Role) + " object: " + e.Err.Error()
	}
	return string(e.Role) + " object " + e.Object + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *ObjectError) Unwrap() error { return e.Err }
