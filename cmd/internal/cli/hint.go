package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
)

// checkReachable returns an error with a hint if no cluster answers. It asks once, so that a command with many
// objects does not fail once for each. That the user may not ask is no error.
func checkReachable(ctx context.Context, cmd *cobra.Command, c *cluster.Cluster) error {
	err := c.Ping(ctx)
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return nil
	}
	return withoutCluster(cmd, fmt.Errorf("no cluster answers at %s: %w", c, cause(err)))
}

// cause returns an error of a request without its URL.
func cause(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		return operation.Err
	}
	return err
}

// withoutCluster adds to an error how the command works without a cluster.
func withoutCluster(cmd *cobra.Command, err error) error {
	hint := "--store FILE for the objects of a store, or --live FILE for objects with their managed fields"
	if cmd.Flags().Lookup("audit-log") != nil {
		hint = "--audit-log FILE for the past"
	}
	return fmt.Errorf("%w\nhint: without a cluster, use %s", err, hint)
}

// configError adds a hint to an error of a kubeconfig that leads to no cluster.
func configError(cmd *cobra.Command, err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return withoutCluster(cmd, err)
	}
	return err
}
