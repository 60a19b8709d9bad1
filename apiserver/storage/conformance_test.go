package storage_test

import (
	"context"
	"path"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	stores "github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcdtest"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

var codec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
}()

// fixture is a store with the storage of a resource, in the form that upstream's tests need.
type fixture struct {
	storage.Interface // the storage of /pods
	store             stores.Store
	others            storage.Interface
	transformer       *transformer
	compactTo         func(t *testing.T, revision int64)
}

// transformer is a value.Transformer that tests can replace.
type transformer struct {
	current atomic.Pointer[value.Transformer]
}

func newTransformer() *transformer {
	t := &transformer{}
	t.set(storagetesting.NewPrefixTransformer([]byte("test!"), false))
	return t
}

func (t *transformer) get() value.Transformer { return *t.current.Load() }

func (t *transformer) set(to value.Transformer) (undo func()) {
	before := t.current.Swap(&to)
	return func() { t.current.Store(before) }
}

func (t *transformer) TransformFromStorage(
	ctx context.Context, data []byte, dataCtx value.Context,
) ([]byte, bool, error) {
	return t.get().TransformFromStorage(ctx, data, dataCtx)
}

func (t *transformer) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return t.get().TransformToStorage(ctx, data, dataCtx)
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (f *fixture) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	copied := *f.transformer.get().(*storagetesting.PrefixTransformer)
	return f.transformer.set(modify(&copied))
}

// UpdateTransformer implements storagetesting.InterfaceWithTransformerOverride.
func (f *fixture) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return f.transformer.set(modify(f.transformer.get()))
}

func newPod() runtime.Object { return &example.Pod{} }

func openPods(t testing.TB, store stores.Store, prefix string, transformer value.Transformer) storage.Interface {
	config := storagebackend.NewDefaultConfig("", codec)
	config.Transformer = transformer
	config.LeaseManagerConfig = etcd3.LeaseManagerConfig{ReuseDurationSeconds: 1}
	s, destroy, err := store.Open(config.ForResource(schema.GroupResource{Resource: "pods"}), prefix, newPod,
		func() runtime.Object { return &example.PodList{} })
	require.NoError(t, err)
	t.Cleanup(destroy)
	return s
}

func newFixture(t testing.TB, store stores.Store) *fixture {
	f := &fixture{store: store, transformer: newTransformer()}
	f.Interface = openPods(t, store, "/pods/", f.transformer)
	f.others = openPods(t, store, "/others/", nil)
	return f
}

// newLocalFixture returns a fixture for a store in this process.
func newLocalFixture(t testing.TB, store interface {
	stores.Store
	Compact(revision int64) error
}) *fixture {
	f := newFixture(t, store)
	f.compactTo = func(t *testing.T, revision int64) {
		require.NoError(t, store.Compact(revision))
		f.increase(t.Context(), t) // a compaction by etcd3 is a write, and the tests expect it
	}
	return f
}

func (f *fixture) compact(_ context.Context, t *testing.T, resourceVersion string) {
	revision, err := f.Versioner().ParseResourceVersion(resourceVersion)
	require.NoError(t, err)
	f.compactTo(t, int64(revision))
}

func (f *fixture) increase(ctx context.Context, t *testing.T) int64 {
	out := &example.Pod{}
	require.NoError(t, f.others.GuaranteedUpdate(ctx, "/others/a", out, true, nil, storage.SimpleUpdate(
		func(o runtime.Object) (runtime.Object, error) {
			o.(*example.Pod).Generation++
			return o, nil
		}), nil))
	revision, err := f.Versioner().ObjectResourceVersion(out)
	require.NoError(t, err)
	return int64(revision)
}

// reads checks that a list reads no more objects than necessary.
func (f *fixture) reads(t *testing.T, _, want uint64) {
	require.Equal(t, want, f.transformer.get().(*storagetesting.PrefixTransformer).GetReadsAndReset())
}

// stored checks that a stored object has no resourceVersion, which upstream's tests do not check.
func (f *fixture) stored(ctx context.Context, t *testing.T, key string) {
	var found []byte
	undo := f.transformer.set(spy{f.transformer.get(), &found})
	defer undo()
	require.NoError(t, f.Get(ctx, key, storage.GetOptions{}, &example.Pod{}))
	require.NotContains(t, string(found), "resourceVersion")
}

type spy struct {
	value.Transformer
	found *[]byte
}

func (s spy) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	*s.found = data
	return s.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

type conformance struct {
	name string
	// keepsCorrupt is true for a test that expects the errors of a storage that can't delete corrupt objects.
	keepsCorrupt bool
	run          func(ctx context.Context, t *testing.T, f *fixture)
}

// plain adapts a test that needs only a storage.
func plain(name string, run func(context.Context, *testing.T, storage.Interface)) conformance {
	return conformance{name: name, run: func(ctx context.Context, t *testing.T, f *fixture) { run(ctx, t, f) }}
}

// conformanceTests are the tests of k8s.io/apiserver/pkg/storage/testing that apply to all stores. These do not apply:
//
//   - RunTestStats without sizes, RunTestWatchDispatchBookmarkEvents without bookmarks and
//     RunTestOptionalWatchBookmarksWithCorrectResourceVersion depend on the store: see the tests of the stores
//   - RunTestNamespaceScopedList with indexes and the benchmarks are for the cacher
var conformanceTests = []conformance{
	{name: "Create", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreate(ctx, t, f, f.stored)
	}},
	plain("CreateWithTTL", storagetesting.RunTestCreateWithTTL),
	plain("CreateWithKeyExist", storagetesting.RunTestCreateWithKeyExist),
	plain("Get", storagetesting.RunTestGet),
	plain("UnconditionalDelete", storagetesting.RunTestUnconditionalDelete),
	plain("ConditionalDelete", storagetesting.RunTestConditionalDelete),
	plain("DeleteWithSuggestion", storagetesting.RunTestDeleteWithSuggestion),
	plain("DeleteWithSuggestionAndConflict", storagetesting.RunTestDeleteWithSuggestionAndConflict),
	plain("DeleteWithConflict", storagetesting.RunTestDeleteWithConflict),
	plain("DeleteWithSuggestionOfDeletedObject", storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	plain("ValidateDeletionWithSuggestion", storagetesting.RunTestValidateDeletionWithSuggestion),
	plain("ValidateDeletionWithOnlySuggestionValid", storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	plain("PreconditionalDeleteWithSuggestion", storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	plain("PreconditionalDeleteWithOnlySuggestionPass", storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	{name: "ConsistentList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestConsistentList(ctx, t, f, f.increase, false, true, false)
	}},
	{name: "GetListNonRecursive", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, f.increase, f)
	}},
	plain("GetListRecursivePrefix", storagetesting.RunTestGetListRecursivePrefix),
	{name: "ListContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuation(ctx, t, f, f.reads)
	}},
	{name: "ListPaginationRareObject", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, f, f.reads)
	}},
	{name: "ListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, f, f.reads)
	}},
	{name: "ListResourceVersionMatch", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, f)
	}},
	plain("ListPaging", storagetesting.RunTestListPaging),
	plain("NamespaceScopedList", storagetesting.RunTestNamespaceScopedList),
	{name: "GuaranteedUpdate", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, f, f.stored)
	}},
	plain("GuaranteedUpdateWithTTL", storagetesting.RunTestGuaranteedUpdateWithTTL),
	{name: "GuaranteedUpdateChecksStoredData", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, f)
	}},
	plain("GuaranteedUpdateWithConflict", storagetesting.RunTestGuaranteedUpdateWithConflict),
	plain("GuaranteedUpdateWithSuggestionAndConflict", storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	{name: "TransformationFailure", keepsCorrupt: true, run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestTransformationFailure(ctx, t, f)
	}},
	plain("KeySchema", storagetesting.RunTestKeySchema),

	plain("Watch", storagetesting.RunTestWatch),
	plain("DeleteTriggerWatch", storagetesting.RunTestDeleteTriggerWatch),
	plain("WatchFromNonZero", storagetesting.RunTestWatchFromNonZero),
	plain("DelayedWatchDelivery", storagetesting.RunTestDelayedWatchDelivery),
	{name: "WatchError", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchError(ctx, t, f)
	}},
	{name: "WatchWithUnsafeDelete", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, f, context.DeadlineExceeded)
	}},
	plain("WatchContextCancel", storagetesting.RunTestWatchContextCancel),
	plain("WatcherTimeout", storagetesting.RunTestWatcherTimeout),
	plain("WatchDeleteEventObjectHaveLatestRV", storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	plain("WatchInitializationSignal", storagetesting.RunTestWatchInitializationSignal),
	{name: "ProgressNotify", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, f, f.increase)
	}},
	{name: "WatchDispatchBookmarkEvents", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, f, true)
	}},
	plain("WatchBookmarksWithCorrectResourceVersion",
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	plain("ClusterScopedWatch", storagetesting.RunTestClusterScopedWatch),
	plain("NamespaceScopedWatch", storagetesting.RunTestNamespaceScopedWatch),
	plain("SendInitialEventsBackwardCompatibility", storagetesting.RunSendInitialEventsBackwardCompatibility),
	plain("WatchSemantics", storagetesting.RunWatchSemantics),
	plain("WatchSemanticInitialEventsExtended", storagetesting.RunWatchSemanticInitialEventsExtended),
	plain("WatchListMatchSingle", storagetesting.RunWatchListMatchSingle),
	{name: "WatchErrorIsBlockingFurtherEvents", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, f)
	}},

	// These tests compact and are last, because tests above watch from revision 1 and tests may share an etcd.
	{name: "List", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestList(ctx, t, f, f.compact, false, nil)
	}},
	{name: "ListInconsistentContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, f, f.compact)
	}},
	{name: "WatchFromZero", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchFromZero(ctx, t, f, f.compact)
	}},
	{name: "CompactRevision", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCompactRevision(ctx, t, f, f.increase, f.compact)
	}},
}

func testConformance(t *testing.T, open func(t *testing.T) *fixture, others ...conformance) {
	for _, test := range append(others, conformanceTests...) {
		t.Run(test.name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, feature.DefaultFeatureGate,
				features.AllowUnsafeMalformedObjectDeletion, !test.keepsCorrupt)
			test.run(t.Context(), t, open(t))
		})
	}
}

// exact are tests that the stores in this process pass, but etcd3 without a cacher does not.
var exact = []conformance{
	{name: "Stats", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestStats(ctx, t, f, codec, f.transformer, true)
	}},
}

func TestMemory(t *testing.T) {
	testConformance(t, func(t *testing.T) *fixture {
		store := memory.New(memory.Options{})
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return newLocalFixture(t, store)
	}, exact...)
}

func TestBbolt(t *testing.T) {
	testConformance(t, func(t *testing.T) *fixture {
		store, err := bbolt.Open(filepath.Join(t.TempDir(), "store"), bbolt.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return newLocalFixture(t, store)
	}, exact...)
}

func TestEtcd(t *testing.T) {
	server := etcdtest.Start(t, "EXPERIMENTAL_WATCH_PROGRESS_NOTIFY_INTERVAL=1s")
	shared := clientv3.Config{Endpoints: []string{server.Endpoint}}
	client, err := clientv3.New(shared)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	compactions := int64(0)
	testConformance(t, func(t *testing.T) *fixture {
		config := shared
		if path.Base(t.Name()) == "WatchSemantics" { // the test watches from revision 1, but the history begins with Open
			config.Endpoints = []string{etcdtest.Start(t).Endpoint}
		}
		store, err := etcd.Open(t.Context(), etcd.Options{Config: config, Prefix: t.Name(), CompactEvery: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		f := newFixture(t, store)
		f.compactTo = func(t *testing.T, revision int64) {
			_, _, _, err := etcd3.Compact(t.Context(), client, compactions, revision)
			require.NoError(t, err)
			compactions++
			require.Eventually(t, func() bool { return f.CompactRevision() == revision }, time.Minute, time.Millisecond)
		}
		return f
	}, etcdTests...)
}

// etcdTests are tests that only etcd3 without a cacher passes.
var etcdTests = []conformance{
	{name: "Stats", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestStats(ctx, t, f, codec, f.transformer, false)
	}},
}
