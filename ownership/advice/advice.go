// Package advice makes the suggestions of plans, conflicts, reports and fights: what somebody may do, why, and what it
// promises. They are values: a program acts on Action, a command prints it as arguments.
//
//	for _, way := range report.Ways {
//		if way.Promise.Unblocks && way.Promise.Keeps {
//			…
//		}
//	}
//
// All suggestions of the module are made here. A test does what plans and conflicts of random objects suggest, and
// checks that promises hold, except Keeps.
package advice

import (
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Suggestion is something that can be done.
type Suggestion struct {
	// Why is the reason, or what the action is for, in words.
	Why string `json:"why"`
	// Action is nil if only a person can do it.
	Action Action `json:"-"`
	// Arguments are for the tenure command that does it. Only a command sets them.
	Arguments []string `json:"arguments,omitempty"`
	Promise   Promise  `json:"promise"`
}

// Promise is what holds once a suggestion was followed.
type Promise struct {
	// Unblocks: the apply that was refused, or in conflict, no longer is.
	Unblocks bool `json:"unblocks,omitempty"`
	// Keeps: no value that another manager owns changes.
	Keeps bool `json:"keeps,omitempty"`
	// Moves are the fields whose owner changes.
	Moves []fieldpath.Path `json:"moves,omitempty"`
	// Removes are the leaves that the next apply of the same intent removes, also those that it removes anyway.
	Removes []fieldpath.Path `json:"nextApplyRemoves,omitempty"`
	// Done: the suggestion is not made again.
	Done bool `json:"done,omitempty"`
}

// Action is what a suggestion does: Move, Upgrade, Drop, HandOver, Look, Resolve, Extract or AddPermission.
type Action interface{ isAction() }

// Move moves the ownership of fields: an [ownership.Transfer] or [ownership.Adopt].
type Move struct {
	Objects
	ownership.Move
}

// Upgrade moves fields from client-side apply, or from another updater, to the applies of Manager.
type Upgrade struct {
	Objects
	Manager string
	// From is an updater whose fields move, all of them; if it is empty, those in the annotation of client-side apply move
	// from its owners.
	From string
}

// Drop removes entries.
type Drop struct {
	Objects
	ownership.Drop
}

// HandOver takes fields out of what Manager applies, and leaves them to whoever updates them.
type HandOver struct {
	Objects
	Manager string
	Fields  []fieldpath.Path
}

// Look shows who owns what.
type Look struct{ Objects }

// Resolve applies again, with all conflicts resolved by one decision.
type Resolve struct{ Decision conflicts.Decision }

// Extract prints fields that From owns as a manifest.
type Extract struct {
	Objects
	From   managedfields.Key
	Fields []fieldpath.Path
}

// AddPermission adds a permission to a policy: Owner may own a field of the objects of a kind.
type AddPermission struct {
	Owner managedfields.Key
	// Kind is such as Deployment.apps, and Field a pattern of policies.
	Kind, Field string
}

// Objects are what an action is for: one object, or all of some kinds. The zero Objects is the object that a report
// is about; [Suggestion.For] names it.
type Objects struct {
	// Kinds are such as deployment.apps.
	Kinds []string
	// Namespace and Name are of one object, of a single kind.
	Namespace, Name string
}

// For returns the suggestion with an object, if it has none.
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

func (AddPermission) isAction() {}
