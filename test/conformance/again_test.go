package conformance_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// FuzzStructsAgain makes objects of a Go type of k8s.io/api out of bytes, and checks
// [oracle.Laws] of applies to them, as Go structs and as unstructured objects.
func FuzzStructsAgain(f *testing.F) {
	for i := range kinds {
		f.Add(uint16(i), binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15))
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		checkAgain(t, newMaker(kinds[int(kind)%len(kinds)], data))
	})
}

func checkAgain(t *testing.T, m *maker) {
	if _, ok := m.empty().(metav1.Object); !ok || openapi.Builtin().TypeFor(m.kind) == nil {
		return
	}
	laws := oracle.Laws{
		Type: openapi.Builtin().TypeFor(m.kind),
		At: func(now time.Time) (*fieldmanager.FieldManager, error) {
			return fieldmanager.New(m.kind, openapi.Builtin(), fieldmanager.WithEmptyObject(m.empty()),
				fieldmanager.WithClock(func() time.Time { return now }))
		},
	}
	structs := laws
	structs.Semantics = typed.Canonical(nil)
	structs.Through = func(obj runtime.Object) (runtime.Object, error) {
		return m.throughJSON(t, plain(t, obj)), nil
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var live runtime.Object
	for range 3 + m.rand.Intn(4) {
		now = now.Add(time.Hour)
		manager := managers[m.rand.Intn(len(managers))]
		fm, err := laws.At(now)
		require.NoError(t, err)
		var out runtime.Object
		if m.rand.Intn(3) == 0 {
			out, err = fm.Update(live, m.nextUpdate(live), manager)
		} else {
			intent, force := m.nextIntent(live), m.rand.Intn(2) == 0
			withoutServersFields(intent.(metav1.Object))
			if live != nil {
				_, err = structs.Check(live, intent, manager, force, now)
				require.NoError(t, err, "%s applies %s to %s", manager, text(intent), text(live))
				_, err = laws.Check(plain(t, live), plain(t, intent), manager, force, now)
				require.NoError(t, err, "%s applies %s to %s, unstructured", manager, text(intent), text(live))
			}
			out, err = fm.Apply(live, intent, manager, force)
		}
		if err == nil {
			live = m.throughJSON(t, plain(t, out))
		}
	}
}

// withoutServersFields drops what a server sets itself: a plan leaves these fields as they
// are in live, and an apply leaves that to the server (spec rule 13.1).
func withoutServersFields(obj metav1.Object) {
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetSelfLink("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
}
