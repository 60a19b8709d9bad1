package report

import (
	"time"

	"github.com/tenure-ssa/tenure/ownership/advice"
)

// Summary is the result of a report. Its lists are sorted by size, the largest first, then by name.
type Summary struct {
	Now time.Time `json:"now"`
	Totals
	// Unreadable is the number of objects with entries that can't be decoded; the other entries of these objects are
	// counted.
	Unreadable int `json:"unreadable,omitempty"`

	Managers []Manager `json:"managers"`
	Kinds    []Kind    `json:"kinds"`

	ClientSide ClientSide    `json:"clientSide"`
	Gone       []GoneVersion `json:"gone"`
	// GoneIn is the number of objects with entries of the versions in Gone.
	GoneIn  int     `json:"goneIn,omitempty"`
	Unowned Count   `json:"unowned"`
	Shared  Count   `json:"shared"`
	Ancient Ancient `json:"ancient"`
	// Twofold are fields that a manager with an Apply entry owns only by an Update entry for the main resource, so
	// that no apply removes them.
	Twofold Count `json:"twofold"`

	Examples    []Example           `json:"examples"`
	Suggestions []advice.Suggestion `json:"suggestions"`
}

// Totals are sums over some objects. Size and ManagedFields are in bytes of JSON.
type Totals struct {
	Objects       int `json:"objects"`
	Size          int `json:"size"`
	ManagedFields int `json:"managedFields"`
	Entries       int `json:"entries"`
	Fields        int `json:"fields"`
}

func (t *Totals) add(o Totals) {
	t.Objects += o.Objects
	t.Size += o.Size
	t.ManagedFields += o.ManagedFields
	t.Entries += o.Entries
	t.Fields += o.Fields
}

// Share returns the share of managed fields in the size of the objects, from 0 to 1.
func (t Totals) Share() float64 {
	if t.Size == 0 {
		return 0
	}
	return float64(t.ManagedFields) / float64(t.Size)
}

// Manager is a field manager, with totals over all objects.
type Manager struct {
	Name string `json:"name"`
	// Operations are the operations and subresources of its entries, such as Apply and Update/status, sorted.
	Operations    []string `json:"operations"`
	Objects       int      `json:"objects"`
	Entries       int      `json:"entries"`
	Fields        int      `json:"fields"`
	ManagedFields int      `json:"managedFields"`
	// Kinds are the kinds of the objects in which it has entries, sorted, at most 20.
	Kinds []string `json:"kinds"`
	// LastWrite is nil if no entry has a time after 1970-01-01T00:00:00Z.
	LastWrite *time.Time `json:"lastWrite,omitempty"`
	Silent    bool       `json:"silent,omitempty"`
	// Twofold is the number of its fields that are counted in [Summary.Twofold].
	Twofold int `json:"twofold,omitempty"`
}

// Kind has totals over all objects of a kind.
type Kind struct {
	// Name is the kind as in arguments of kubectl, such as deployment.apps.
	Name string `json:"name"`
	Totals
	Managers   int `json:"managers"`
	ClientSide int `json:"clientSide,omitempty"`
	Unowned    int `json:"unowned,omitempty"`
	Shared     int `json:"shared,omitempty"`
}

// Count is a number of fields, and the number of objects that have such fields.
type Count struct {
	Objects int `json:"objects"`
	Fields  int `json:"fields"`
}

// ClientSide is the effect of migrating client-side objects.
type ClientSide struct {
	Objects int `json:"objects"`
	// Moves is the number of fields that would move to the applier. Removed is the number of fields that its next
	// apply would then remove, besides the annotation of client-side apply. Left is the number of fields that would
	// stay with their manager. Others is the number of fields that other managers own, and that would conflict if an
	// apply changed them.
	Moves   int `json:"moves"`
	Removed int `json:"removed"`
	Left    int `json:"left"`
	Others  int `json:"others"`
	// Unknown is the number of objects for which it is not known what the next apply removes. Removed omits them.
	Unknown int `json:"unknown,omitempty"`
	// Failed is the number of objects that can't be migrated as they are. Why has the distinct errors, at most ten.
	Failed int      `json:"failed,omitempty"`
	Why    []string `json:"why,omitempty"`
}

// GoneVersion is a version of entries that is no longer served.
type GoneVersion struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Manager    string `json:"manager"`
	Operation  string `json:"operation"`
	Entries    int    `json:"entries"`
	Fields     int    `json:"fields"`
}

// Ancient describes the entries of ancient-changes.
type Ancient struct {
	Count
	ManagedFields int `json:"managedFields"`
	// Oldest is the oldest time of these entries.
	Oldest *time.Time `json:"oldest,omitempty"`
}

// Finding is the name of a finding, as in Example.Findings.
type Finding string

// The findings.
const (
	Largest        Finding = "managed fields"
	FoundClient    Finding = "client-side apply"
	FoundGone      Finding = "gone version"
	FoundUnowned   Finding = "unowned fields"
	FoundShared    Finding = "shared fields"
	FoundAncient   Finding = "ancient-changes"
	FoundTwofold   Finding = "Update and Apply"
	FoundNoManaged Finding = "no managed fields"
)

// findings lists all findings in the order of a report.
var findings = []Finding{
	Largest, FoundClient, FoundGone, FoundUnowned, FoundShared, FoundAncient, FoundTwofold, FoundNoManaged,
}

// Example is one of the worst objects for some findings.
type Example struct {
	Kind          string    `json:"kind"`
	Namespace     string    `json:"namespace,omitempty"`
	Name          string    `json:"name"`
	Findings      []Finding `json:"findings"`
	Size          int       `json:"size"`
	ManagedFields int       `json:"managedFields"`
	Entries       int       `json:"entries"`
	Unowned       int       `json:"unowned,omitempty"`
	Shared        int       `json:"shared,omitempty"`

	version string
}
