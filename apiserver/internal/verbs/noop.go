package verbs

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/internal/gmac"
)

// A controller applies the same intent over and over. What the first of these applies found is
// remembered for the revision of the object, so that the next ones do less:
//
//	the intent changes nothing        the object is not copied, defaulted, prepared, validated and encoded
//	and it is the same as before      it is not decoded and merged either
//
// This is exact because all of these are functions of the object at its revision, the subresource and the
// intent. Authorization and admission are not, and are called each time. Where admission can
// change objects nothing is remembered.

// Unchanged is the number of objects to remember.
const Unchanged = 1024

// maxIntents is how many intents are remembered for an object.
const maxIntents = 8

// unchangedKey is a subresource of an object at one revision.
type unchangedKey struct {
	state
	subresource string
}

// unchanged is what is known of writes that change nothing. The server stores nothing for them.
type unchanged struct {
	warnings []string // of validation

	lock    sync.Mutex
	intents []intentKey // that change nothing, the latest last
}

// intentKey is all that an apply depends on, but for the object.
type intentKey struct {
	patchType  types.PatchType
	validation string
	manager    string
	force      bool
	sum        gmac.Sum // of the body
}

func (u *unchanged) has(k intentKey) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	return slices.Contains(u.intents, k)
}

func (u *unchanged) add(k intentKey) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if slices.Contains(u.intents, k) {
		return
	}
	if len(u.intents) == maxIntents {
		u.intents = slices.Delete(u.intents, 0, 1)
	}
	u.intents = append(u.intents, k)
}

// unchangedKey returns the key of what is known of a record.
func (c *Call) unchangedKey(key string, revision int64) unchangedKey {
	return unchangedKey{state{c.Strategy, key, revision}, c.Info.Subresource}
}

// knownUnchanged returns what is known of writes that do not change a record; nil for nothing.
func (c *Call) knownUnchanged(key string, revision int64) *unchanged {
	if c.mutates() {
		return nil
	}
	found, ok := c.UnchangedWrites.Get(c.unchangedKey(key, revision))
	if !ok {
		return nil
	}
	return found.(*unchanged)
}

// rememberUnchanged remembers that a write did not change a record, and the warnings of its validation.
func (c *Call) rememberUnchanged(record *storage.Record, warnings []string) {
	if c.mutates() {
		return
	}
	key := c.unchangedKey(record.Key, record.Revision)
	c.UnchangedWrites.Add(key, &unchanged{warnings: slices.Clone(warnings)})
}

// keep performs a write that does not change live, as was found out before.
func (c *Call) keep(
	ctx context.Context, w write, known *unchanged, live resources.Object, record *storage.Record,
) (resources.Object, error) {
	c.warnings = append(c.warnings, known.warnings...)
	if err := c.admit(ctx, writeRequest(live, live, w.options)); err != nil {
		return nil, err
	}
	if err := c.guard(ctx, live, live); err != nil {
		return nil, err
	}
	c.storedAs(live, record.Value)
	return live, nil
}

// intentKey returns the key of the intent of an apply.
func (p *patcher) intentKey() intentKey {
	return intentKey{p.patchType, p.validation, p.manager, p.force, gmac.Of(p.body)}
}

// isKnown reports whether the intent is known to leave live as it is.
func (p *patcher) isKnown(live resources.Object) bool {
	known := p.knownUnchanged(live)
	return known != nil && known.has(p.intentKey())
}

// remember remembers that the intent leaves live as it is.
func (p *patcher) remember(live resources.Object) {
	if known := p.knownUnchanged(live); known != nil && p.duplicateFields == nil {
		known.add(p.intentKey())
	}
}

func (p *patcher) knownUnchanged(live resources.Object) *unchanged {
	if live == nil || !p.mayKeep {
		return nil
	}
	revision, err := parseVersion(live.GetResourceVersion())
	if err != nil {
		return nil
	}
	return p.c.knownUnchanged(p.c.key(p.c.Info.Name), revision)
}
