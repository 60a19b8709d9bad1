// Package advice makes the suggestions in plans, conflict reports, ownership reports and findings of fights. A
// suggestion has an action that a user can take, the reason, and a promise. Suggestions are values: a program can
// execute the Action of a suggestion, and a command can print the Action as arguments.
//
//	for _, way := range report.Ways {
//		if way.Promise.Unblocks && way.Promise.Keeps {
//			…
//		}
//	}
//
// All suggestions of the module are made here. A test follows the suggestions for random plans and conflicts, and
// checks that all their promises except Keeps hold.
package advice

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Suggestion is an action that a user can take.
type Suggestion struct {
	// Why is the reason for the action, or its purpose, as text.
	Why string `json:"why"`
	// Fields are the fields that the suggestion is about, if there may be too many to name all of them in Why.
	Fields []fieldpath.Path `json:"fields,omitempty"`
	// Action is nil if only a person can follow the suggestion.
	Action Action `json:"-"`
	// Arguments are the arguments of the tenure command that does the action. Only commands set them.
	Arguments []string `json:"arguments,omitempty"`
	Promise   Promise  `json:"promise"`
}

// Promise is what is true once a suggestion has been followed.
type Promise struct {
	// Unblocks promises that the apply, which was refused or had conflicts, now succeeds.
	Unblocks bool `json:"unblocks,omitempty"`
	// Keeps promises that values of fields that other managers own do not change.
	Keeps bool `json:"keeps,omitempty"`
	// Moves are the fields whose owners change.
	Moves []fieldpath.Path `json:"moves,omitempty"`
	// Removes are the leaves that the next apply of the same intent removes, including leaves that it would remove
	// anyway.
	Removes []fieldpath.Path `json:"nextApplyRemoves,omitempty"`
	// Done promises that the same suggestion is not made again.
	Done bool `json:"done,omitempty"`
}

// Action is one of Move, Upgrade, Drop, HandOver, Look, Resolve, Extract, Repeat and AddPermission.
type Action interface{ isAction() }

// Move moves the ownership of fields: an [ownership.Transfer] or [ownership.Adopt].
type Move struct {
	Objects
	ownership.Move
}

// Upgrade moves fields of client-side apply, or of another updater, to the Apply entry of Manager.
type Upgrade struct {
	Objects
	Manager string
	// From is the name of an updater: all fields that it owns move. If From is empty, the fields in the annotation of
	// client-side apply move from the annotation's owners.
	From string
}

// Drop removes entries.
type Drop struct {
	Objects
	ownership.Drop
}

// HandOver removes fields from the intent of Manager, and leaves them to the managers that update them.
type HandOver struct {
	Objects
	Manager string
	Fields  []fieldpath.Path
}

// Look shows the owners of objects' fields.
type Look struct{ Objects }

// Resolve repeats the apply with the same decision for all conflicts.
type Resolve struct {
	Decision conflicts.Decision
	File     string // the file that contains the intent, if it is known
}

// Extract prints a manifest with fields that From owns.
type Extract struct {
	Objects
	From   managedfields.Key
	Fields []fieldpath.Path
}

// Repeat repeats the command that failed, with other objects, such as the same object at another version.
type Repeat struct{ Objects }

// AddPermission adds a permission to a policy: Owner may own Field in all objects of Kind.
type AddPermission struct {
	Owner managedfields.Key
	Kind  schema.GroupKind
	Field string // a pattern as in policies
}

// Objects selects the objects of an action: one object, or all objects of some kinds. The zero Objects means the object
// that a report is about; [Suggestion.For] replaces it.
type Objects struct {
	// Kinds are kinds with their groups, such as deployment.apps, and with the version if the action depends on it, as
	// in horizontalpodautoscaler.v1.autoscaling.
	Kinds []string
	// Namespace and Name select one object, of a single kind.
	Namespace, Name string
}

// For returns the suggestion with o as its object, unless it has objects already.
func (s Suggestion) For(o Objects) Suggestion {
	if move, ok := s.Action.(Move); ok && move.Kinds == nil {
		move.Objects = o
		s.Action = move
	}
	return s
}

func (Move) isAction()     {}
func (Upgrade) isAction()  {}
func (Drop) isAction()     {}
func (HandOver) isAction() {}
func (Look) isAction()     {}
func (Resolve) isAction()  {}
func (Extract) isAction()  {}
func (Repeat) isAction()   {}

func (AddPermission) isAction() {}
