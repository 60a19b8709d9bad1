package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const sampleTraces = `File: kube-apiserver
Type: cpu
-----------+-------------------------------------------------------
      10ms   runtime.mapaccess2
             sigs.k8s.io/structured-merge-diff/v6/typed.(*mergingWalker).visit
             net/http.serve
-----------+-------------------------------------------------------
     1.50s   runtime.mallocgc
             sigs.k8s.io/yaml.Unmarshal
             k8s.io/apiserver/pkg/endpoints/handlers.(*applyPatcher).applyPatchToCurrentObject
-----------+-------------------------------------------------------
     490ms   sigs.k8s.io/json.UnmarshalStrict
             github.com/tenure-ssa/tenure/hosts/engine.decodeJSON
             github.com/tenure-ssa/tenure/hosts/engine.(*Intent).Decode
             k8s.io/apiserver/pkg/endpoints/handlers.(*applyPatcher).upstreamApplyPatchToCurrentObject
             github.com/tenure-ssa/tenure/hosts/engine.(*Intent).Apply
-----------+-------------------------------------------------------
     200ms   runtime.mallocgc
             k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning.PruneWithOptions
             k8s.io/apiextensions-apiserver/pkg/apiserver.(*unstructuredSchemaCoercer).upstreamApply
             github.com/tenure-ssa/tenure/hosts/engine.WithoutManagedFields
-----------+-------------------------------------------------------
     500ms   runtime.scanobject
             runtime.gcBgMarkWorker
-----------+-------------------------------------------------------
     500ms   runtime.scanobject
             runtime.gcAssistAlloc
             github.com/tenure-ssa/tenure/fieldmanager.(*FieldManager).Apply
-----------+-------------------------------------------------------
     1mins   net/http.read
-----------+-------------------------------------------------------
     100ms   reflect.Value.Field
             sigs.k8s.io/structured-merge-diff/v6/value.TypeReflectCacheEntry.FromUnstructured
             k8s.io/apimachinery/pkg/runtime.fromUnstructured
`

func TestShares(t *testing.T) {
	s := sharesIn(sampleTraces)
	require.InDelta(t, 63.3, s.seconds, 1e-9)
	require.InDelta(t, 0.51, s.fieldManagement, 1e-9,
		"any frame counts, also below a collection, but for one that only calls upstream")
	require.InDelta(t, 1.99, s.decoding, 1e-9, "the decoding of an intent is no field management, whoever does it")
	require.InDelta(t, 0.5, s.collection, 1e-9)
}
