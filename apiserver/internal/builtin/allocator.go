package builtin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/allocator"
)

// A bitmap is kube-apiserver's allocator of numbers in a range, such as node ports. It keeps the numbers in a
// RangeAllocation in the storage, so that servers that share a storage allocate each number once. It implements
// allocator.Interface.
type bitmap struct {
	storage storage.Interface
	key     string
	destroy factory.DestroyFunc

	lock    sync.Mutex
	numbers *allocator.AllocationBitmap
	seen    string // resourceVersion of the RangeAllocation that numbers was read from or stored in; "" if unknown
}

// newBitmap returns a factory of bitmaps that are stored under a key.
func (o *opener) newBitmap(g group, key string) allocator.AllocatorWithOffsetFactory {
	return func(size int, spec string, offset int) (allocator.Interface, error) {
		options, err := g.GetRESTOptions(core.Resource("serviceipallocations"), &core.RangeAllocation{})
		if err != nil {
			return nil, err
		}
		newFunc := func() runtime.Object { return &core.RangeAllocation{} }
		s, destroy, err := o.options.Open.Open(options.StorageConfig, key, newFunc, newFunc)
		if err != nil {
			return nil, err
		}
		numbers := allocator.NewAllocationMapWithOffset(size, spec, offset)
		return &bitmap{storage: s, key: key, destroy: destroy, numbers: numbers}, nil
	}
}

// errTaken cancels an update that changes nothing.
var errTaken = errors.New("the number is taken")

// update changes the allocations, and stores them if change returns true. It returns whether it has stored them.
func (b *bitmap) update(change func() (bool, error)) (bool, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	after := &core.RangeAllocation{}
	err := b.storage.GuaranteedUpdate(context.Background(), b.key, after, true, nil,
		storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			r := obj.(*core.RangeAllocation)
			if err := b.restore(r); err != nil {
				return nil, err
			}
			if ok, err := change(); err != nil || !ok {
				return nil, errors.Join(errTaken, err)
			}
			b.seen = "" // numbers are not stored yet
			r.Range, r.Data = b.numbers.Snapshot()
			return r, nil
		}), nil)
	if errors.Is(err, errTaken) {
		if err = fmt.Errorf("%s: %w", b.key, err); err.Error() == b.key+": "+errTaken.Error() {
			err = nil
		}
		return false, err
	}
	b.seen = after.ResourceVersion
	return err == nil, err
}

// restore copies the stored allocations to b.numbers. It does nothing if b.numbers already has these allocations.
func (b *bitmap) restore(r *core.RangeAllocation) error {
	if r.ResourceVersion != "" && r.ResourceVersion == b.seen {
		return nil
	}
	spec, _ := b.numbers.Snapshot()
	if r.ResourceVersion == "" {
		return b.numbers.Restore(spec, nil)
	}
	if err := b.numbers.Restore(r.Range, r.Data); err != nil {
		return fmt.Errorf("expected the range %s, found %s in the storage: %w", spec, r.Range, err)
	}
	b.seen = r.ResourceVersion
	return nil
}

func (b *bitmap) Allocate(number int) (bool, error) {
	return b.update(func() (bool, error) { return b.numbers.Allocate(number) })
}

func (b *bitmap) AllocateNext() (number int, ok bool, err error) {
	ok, err = b.update(func() (allocated bool, err error) {
		number, allocated, err = b.numbers.AllocateNext()
		return allocated, err
	})
	return number, ok, err
}

func (b *bitmap) Release(number int) error {
	_, err := b.update(func() (bool, error) { return true, b.numbers.Release(number) })
	return err
}

// read returns the stored numbers.
func (b *bitmap) read() *allocator.AllocationBitmap {
	_, _ = b.update(func() (bool, error) { return false, nil }) // if the storage fails, numbers does not change
	return b.numbers
}

func (b *bitmap) ForEach(f func(int)) { b.read().ForEach(f) }
func (b *bitmap) Has(number int) bool { return b.read().Has(number) }
func (b *bitmap) Free() int           { return b.read().Free() }
func (b *bitmap) Destroy()            { b.destroy() }

var _ allocator.Interface = &bitmap{}
