package gostruct_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
)

// BenchmarkTree makes the whole tree of a Pod, ours and upstream's way, and ours
// without managed fields, which an engine decodes in its own way.
func BenchmarkTree(b *testing.B) {
	for _, n := range []int{1, 10} {
		p := newPod(n)
		node, err := gostruct.Of(p)
		require.NoError(b, err)
		bench(b, fmt.Sprintf("containers=%d/tree", n), func() error {
			_, err := node.Tree()
			return err
		})
		bench(b, fmt.Sprintf("containers=%d/tree-without-managed-fields", n), func() error {
			_, err := node.Tree([]string{"metadata", "managedFields"})
			return err
		})
		bench(b, fmt.Sprintf("containers=%d/upstream", n), func() error {
			_, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
			return err
		})
	}
}

// BenchmarkPairs compares two copies of a Pod that differ in one image, and two
// that are equal; upstream needs the trees of both.
func BenchmarkPairs(b *testing.B) {
	for _, n := range []int{1, 10} {
		old, now, same := newPod(n), newPod(n), newPod(n)
		now.Spec.Containers[0].Image = "changed"
		labelled := newPod(n)
		labelled.Labels["app"] = "changed"
		for _, row := range []struct {
			name string
			now  *pod
		}{{"one-image", now}, {"one-label", labelled}, {"equal", same}} {
			bench(b, fmt.Sprintf("containers=%d/%s", n, row.name), func() error {
				_, _, err := differing(old, row.now)
				return err
			})
		}
		bench(b, fmt.Sprintf("containers=%d/upstream", n), func() error {
			if _, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old); err != nil {
				return err
			}
			_, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
			return err
		})
	}
}

// BenchmarkEqualJSON compares a Pod with its own tree.
func BenchmarkEqualJSON(b *testing.B) {
	node, err := gostruct.Of(newPod(1))
	require.NoError(b, err)
	tree, err := node.Tree()
	require.NoError(b, err)
	bench(b, "containers=1", func() error {
		if !gostruct.EqualJSON(node, tree) {
			return fmt.Errorf("a node differs from its own tree")
		}
		return nil
	})
}

// BenchmarkGet walks down to one field.
func BenchmarkGet(b *testing.B) {
	node, err := gostruct.Of(newPod(1))
	require.NoError(b, err)
	bench(b, "spec.restartPolicy", func() error {
		spec, _ := node.Get("spec")
		if v, _ := spec.(gostruct.Node).Get("restartPolicy"); v != "Always" {
			return fmt.Errorf("got %v", v)
		}
		return nil
	})
}

func bench(b *testing.B, name string, do func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := do(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
