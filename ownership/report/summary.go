package report

import (
	"time"

	"github.com/tenure-ssa/tenure/ownership/advice"
)

// Summary is a report. Its lists are sorted by what weighs most, then by name.
type Summary struct {
	Now time.Time `json:"now"`
	Totals
	// Unreadable counts objects with entries that can't be decoded; their other entries count.
	Unreadable int `json:"unreadable,omitempty"`

	Managers []Manager `json:"managers"`
	Kinds    []Kind    `json:"kinds"`

	ClientSide ClientSide    `json:"clientSide"`
	Gone       []GoneVersion `json:"gone"`
	Unowned    Count         `json:"unowned"`
	Shared     Count         `json:"shared"`
	Ancient    Ancient       `json:"ancient"`
	// Twofold are fields that a manager owns by an Update of the object, and not by its Apply: no apply removes them.
	Twofold Count `json:"twofold"`

	Examples    []Example           `json:"examples"`
	Suggestions []advice.Suggestion `json:"suggestions"`
}

// Totals are the figures of some objects. Size and ManagedFields are bytes of JSON.
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

// Share returns the part of the objects' size that managed fields are, from 0 to 1.
func (t Totals) Share() float64 {
	if t.Size == 0 {
		return 0
	}
	return float64(t.ManagedFields) / float64(t.Size)
}

// Manager is a field manager in all objects.
type Manager struct {
	Name string `json:"name"`
	// Operations are what its entries have, such as Apply and Update/status, sorted.
	Operations    []string `json:"operations"`
	Objects       int      `json:"objects"`
	Entries       int      `json:"entries"`
	Fields        int      `json:"fields"`
	ManagedFields int      `json:"managedFields"`
	// Kinds are the kinds of its objects, sorted, at most 20 of them.
	Kinds []string `json:"kinds"`
	// LastWrite is nil if no entry has a time after 1970-01-01T00:00:00Z.
	LastWrite *time.Time `json:"lastWrite,omitempty"`
	Silent    bool       `json:"silent,omitempty"`
	// Twofold are its fields that are [Summary.Twofold].
	Twofold int `json:"twofold,omitempty"`
}

// Kind is a kind with all its objects.
type Kind struct {
	// Name is the kind as commands take it, such as deployment.apps.
	Name string `json:"name"`
	Totals
	Managers   int `json:"managers"`
	ClientSide int `json:"clientSide,omitempty"`
	Unowned    int `json:"unowned,omitempty"`
	Shared     int `json:"shared,omitempty"`
}

// Count counts fields, and the objects that have any.
type Count struct {
	Objects int `json:"objects"`
	Fields  int `json:"fields"`
}

// ClientSide is what the migration of objects under client-side apply would do.
type ClientSide struct {
	Objects int `json:"objects"`
	// Moves are fields that would move to the applier, Removed those that its next apply then removes, besides the
	// annotation of client-side apply, Left those that stay with their manager, and Others those that other managers
	// own: conflicts, if an apply changes them.
	Moves   int `json:"moves"`
	Removed int `json:"removed"`
	Left    int `json:"left"`
	Others  int `json:"others"`
	// Failed counts objects that can't be migrated as they are; Why has the errors, each once, at most ten.
	Failed int      `json:"failed,omitempty"`
	Why    []string `json:"why,omitempty"`
}

// GoneVersion is a version of entries that is not served any more.
type GoneVersion struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Manager    string `json:"manager"`
	Operation  string `json:"operation"`
	Entries    int    `json:"entries"`
	Fields     int    `json:"fields"`
}

// Ancient is what the entries of ancient-changes hide.
type Ancient struct {
	Count
	ManagedFields int `json:"managedFields"`
	// Oldest is the oldest time of such an entry.
	Oldest *time.Time `json:"oldest,omitempty"`
}

// Finding is what an object is an example of.
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

// findings are all of them, in the order of a report.
var findings = []Finding{
	Largest, FoundClient, FoundGone, FoundUnowned, FoundShared, FoundAncient, FoundTwofold, FoundNoManaged,
}

// Example is one of the worst objects of a finding.
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
