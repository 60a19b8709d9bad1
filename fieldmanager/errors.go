package fieldmanager

// Role is the role of an object in a write.
type Role string

// The roles of objects.
const (
	LiveObject    Role = "live"
	AppliedObject Role = "applied"
	NewObject     Role = "new"
)

// ObjectError says which of the objects of a write is at fault. A server responds with 400 or 422 for the applied or
// new object, which the client can mend, and with 500 for the live object. An object that exceeds a limit is at fault
// (spec rule 12.8): Err is a typed.Errors or *managedfields.Error.
type ObjectError struct {
	// Role is the role of the object in the write.
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
