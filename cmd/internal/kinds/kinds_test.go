package kinds_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
)

func TestEmpty(t *testing.T) {
	require.IsType(t, &corev1.Pod{}, kinds.Empty(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
	require.Nil(t, kinds.Empty(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pod"}))
}
