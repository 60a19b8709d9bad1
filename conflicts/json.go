package conflicts

import (
	"encoding/json"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ownerJSON is the JSON of a manager and the group version of its entry.
type ownerJSON struct {
	Manager     string                  `json:"manager"`
	Operation   managedfields.Operation `json:"operation"`
	APIVersion  string                  `json:"apiVersion,omitempty"`
	Subresource string                  `json:"subresource,omitempty"`
}

func ownerOf(k managedfields.Key, version string) ownerJSON {
	return ownerJSON{Manager: k.Manager, Operation: k.Operation, APIVersion: version, Subresource: k.Subresource}
}

// MarshalJSON returns the conflict as
//
//	{"field": ".spec.replicas",
//	 "owner": {"manager", "operation", "apiVersion", "subresource"},
//	 "since": "2026-01-02T03:04:05Z", "live": 3, "applied": 1}
//
// where unknown and empty members of owner are omitted. Missing values are null.
func (c Conflict) MarshalJSON() ([]byte, error) {
	out := struct {
		Field   string    `json:"field"`
		Owner   ownerJSON `json:"owner"`
		Since   any       `json:"since,omitempty"`
		Live    any       `json:"live"`
		Applied any       `json:"applied"`
	}{Field: c.Path.String(), Owner: ownerOf(c.Owner, c.APIVersion), Live: c.Live, Applied: c.Applied}
	if c.Since != nil {
		out.Since = c.Since
	}
	return json.Marshal(out)
}

// MarshalJSON returns the loss as {"owner": …, "fields": [".spec.replicas", …]}.
func (l Loss) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Owner  ownerJSON `json:"owner"`
		Fields []string  `json:"fields"`
	}{ownerOf(l.Owner, l.APIVersion), texts(l.Fields)})
}

func texts(set *fieldpath.Set) []string {
	out := []string{}
	for p := range set.All() {
		out = append(out, p.String())
	}
	return out
}

// MarshalJSON returns the report as
//
//	{"object", "manager", "message", "conflicts": […],
//	 "ways": [{"way", "force", "losses", "intent"}, …]}
//
// where message is that of the Status.
func (r Report) MarshalJSON() ([]byte, error) {
	out := struct {
		Object    string    `json:"object,omitempty"`
		Manager   string    `json:"manager"`
		Message   string    `json:"message,omitempty"`
		Conflicts Conflicts `json:"conflicts"`
		Ways      []WayOut  `json:"ways,omitempty"`
	}{Object: r.Object, Manager: r.Manager, Conflicts: r.Conflicts, Ways: r.Ways}
	if len(r.Conflicts) > 0 {
		out.Message = r.Conflicts.Error()
	} else {
		out.Conflicts = Conflicts{}
	}
	return json.Marshal(out)
}
