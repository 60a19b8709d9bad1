package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// call returns the context of a call: it ends with ctx, with the store or with the timeout.
func (s *Store) call(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// failed converts an error of the etcd client to one of package storage. ctx is the caller's
// context, not that of the call.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case s.ctx.Err() != nil:
		return storage.ErrClosed
	}
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("etcd: %s: %w: %w", what, kind, err)
	}
	return fmt.Errorf("etcd: %s: %w", what, err)
}

// kindOf returns the error of package storage for an error of the etcd client, or nil.
func kindOf(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return storage.ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return storage.ErrFuture
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return storage.ErrTooLarge
	case errors.Is(err, rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrTooManyRequests):
		return storage.ErrUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return storage.ErrUnavailable // of the call: the caller's context was checked before
	}
	code := status.Code(err)
	if served := (rpctypes.EtcdError{}); errors.As(err, &served) {
		code = served.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		// No connection, no leader, another leader, stopped, or too slow.
		return storage.ErrUnavailable
	case codes.ResourceExhausted:
		return storage.ErrTooLarge // gRPC rejects the message
	}
	return nil
}
