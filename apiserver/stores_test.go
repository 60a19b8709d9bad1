package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestUnavailable checks that all errors with which etcd and its client report that the storage does not respond give a
// 503 or 504.
func TestUnavailable(t *testing.T) {
	for _, row := range []struct {
		err  error
		want metav1.StatusReason
		why  string
	}{
		{nil, metav1.StatusReasonUnknown, "no error"},
		{context.DeadlineExceeded, metav1.StatusReasonTimeout, "of the request"},
		{fmt.Errorf("get: %w", context.DeadlineExceeded), metav1.StatusReasonTimeout, "wrapped"},
		{grpcstatus.Error(codes.DeadlineExceeded, "late"), metav1.StatusReasonTimeout, "of gRPC"},
		{grpcstatus.Error(codes.Unknown, "context deadline exceeded"), metav1.StatusReasonTimeout, "of etcd 3.4 itself"},
		{grpcstatus.Error(codes.Unavailable, "no connection"), metav1.StatusReasonServiceUnavailable, "of gRPC"},
		{rpctypes.ErrTimeout, metav1.StatusReasonServiceUnavailable, "etcd lost its leader"},
		{fmt.Errorf("put: %w", rpctypes.ErrNoLeader), metav1.StatusReasonServiceUnavailable, "wrapped"},
		{rpctypes.ErrNoSpace, metav1.StatusReasonUnknown, "waiting does not help"},
		{errors.New("webhook: context deadline exceeded"), metav1.StatusReasonUnknown, "not of the storage"},
	} {
		got := apiserver.Unavailable(row.err)
		require.Equal(t, row.want, apierrors.ReasonForError(got), "%v: %s", row.err, row.why)
		if row.want == metav1.StatusReasonUnknown {
			require.Equal(t, row.err, got)
		}
	}
}
