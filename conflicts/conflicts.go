package conflicts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Conflict is a field that an apply would change and that another manager owns.
type Conflict struct {
	// Path is the path of the field, at the version of the owner's entry.
	Path fieldpath.Path
	// Owner is the other manager.
	Owner managedfields.Key
	// APIVersion is the group version of the owner's entry. It is also set for an Apply entry, whose Key has no
	// version.
	APIVersion string
	// Since is the time at which the owner last changed the object; nil if it is unknown.
	Since *metav1.Time
	// Live is the live value of the field; Applied is its value in the intent. They share memory with the objects. A
	// missing or unknown value is nil, like a null. The value of duplicate items is a list of these items
	// (spec rule 5.4).
	Live, Applied any
	// LiveNull means that Live is nil because live has a null. AppliedNull means the same for Applied and the intent.
	LiveNull, AppliedNull bool
	// Equal means that both values are equal for a server, so that an apply with force would not change the value. Only
	// a plan (package plans) can set it, and only for fields at the version of the intent.
	Equal bool
}

// String names the field and its owner. It contains no values.
func (c Conflict) String() string { return fmt.Sprintf("%s of %q", c.Path.Short(), c.Owner.Manager) }

// Entry returns the owner's entry, without fields and time.
func (c Conflict) Entry() metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: c.Owner.Manager, Operation: c.Owner.Operation,
		APIVersion: cmp.Or(c.APIVersion, c.Owner.APIVersion), Subresource: c.Owner.Subresource,
	}
}

// MarshalJSON returns the conflict in this form:
//
//	{"field": ".spec.replicas",
//	 "owner": {"manager", "operation", "apiVersion", "subresource"},
//	 "since": "2026-01-02T03:04:05Z", "live": 3, "applied": 1, "equal": true}
//
// An unknown since, empty members of owner and an equal that is false are omitted. Missing values are null.
func (c Conflict) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Field   fieldpath.Path            `json:"field"`
		Owner   metav1.ManagedFieldsEntry `json:"owner"`
		Since   *metav1.Time              `json:"since,omitempty"`
		Live    any                       `json:"live"`
		Applied any                       `json:"applied"`
		Equal   bool                      `json:"equal,omitempty"`
	}{c.Path, c.Entry(), c.Since, c.Live, c.Applied, c.Equal})
}

// Conflicts are the conflicts of one apply. There is at least one. As an error, Conflicts has a Status, so that
// apierrors.IsConflict and similar functions recognize it.
type Conflicts []Conflict

// Sort sorts c by owner. It preserves the order of each owner's paths.
func (c Conflicts) Sort() {
	slices.SortStableFunc(c, func(a, b Conflict) int { return a.Owner.Compare(b.Owner) })
}

// MaxText is the maximum length of a message, in bytes. Further conflicts are counted, but not listed (spec rule 12.7).
// Each conflict names its path and its owner, so a list of all conflicts could be far longer than the objects.
const MaxText = 4 << 20

// Error returns the message of the Status.
func (c Conflicts) Error() string {
	if len(c) == 1 {
		return "Apply failed with 1 conflict: conflict with " + Describe(c[0].Entry()) + ": " + c[0].Path.CauseText()
	}
	var b strings.Builder
	b.WriteString("Apply failed with " + strconv.Itoa(len(c)) + " conflicts: ")
	for i, conflict := range c {
		if b.Len() > MaxText {
			b.WriteString("\nand " + strconv.Itoa(len(c)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 || conflict.Owner != c[i-1].Owner {
			b.WriteString("conflicts with " + Describe(conflict.Entry()) + ":\n")
		}
		b.WriteString("- ")
		b.WriteString(conflict.Path.CauseText())
	}
	return b.String()
}

// Status returns kube-apiserver's response: 409 Conflict, with one cause for each field, up to [MaxText]. A response in
// JSON also has kind Status and apiVersion v1, which an encoder of apimachinery sets.
func (c Conflicts) Status() metav1.Status {
	causes := make([]metav1.StatusCause, 0, len(c))
	size := 0
	for i := 0; i < len(c) && size <= MaxText; i++ {
		cause := metav1.StatusCause{
			Type:    metav1.CauseTypeFieldManagerConflict,
			Message: "conflict with " + Describe(c[i].Entry()),
			Field:   c[i].Path.CauseText(),
		}
		causes = append(causes, cause)
		size += len(cause.Message) + len(cause.Field)
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusConflict,
		Reason:  metav1.StatusReasonConflict,
		Details: &metav1.StatusDetails{Causes: causes},
		Message: c.Error(),
	}
}

// Describe returns a description of the manager of an entry, in the words of kube-apiserver.
func Describe(e metav1.ManagedFieldsEntry) string {
	s := strconv.Quote(e.Manager)
	if e.Subresource != "" {
		s += " with subresource " + strconv.Quote(e.Subresource)
	}
	if e.Operation == metav1.ManagedFieldsOperationUpdate {
		s += " using " + e.APIVersion
	}
	return s
}

// Decision says what happens to a field in conflict.
type Decision string

// The decisions. All except Refuse are ways out of a conflict.
const (
	// Refuse leaves the decision to a person.
	Refuse Decision = "refuse"
	// GiveUp removes the field from the intent: its live value and its owners do not change.
	GiveUp Decision = "give-up"
	// Share sets the live value in the intent: both managers then own the field.
	Share Decision = "share"
	// Force keeps the field in the intent, and takes it from its owners.
	Force Decision = "force"
)
