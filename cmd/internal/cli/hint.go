package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

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
	var ways []string
	for _, way := range []struct{ flag, hint string }{
		{"store", "--store FILE for the objects that tenure apply --store keeps"},
		{"live", "--live FILE for objects with their managed fields"},
		{"audit-log", "--audit-log FILE for the past"},
	} {
		if cmd.Name() == "watch" && way.flag != "audit-log" || cmd.Flags().Lookup(way.flag) == nil {
			continue
		}
		ways = append(ways, way.hint)
	}
	if len(ways) == 0 {
		return err
	}
	return fmt.Errorf("%w\nhint: without a cluster, use %s", err, strings.Join(ways, ", or "))
}

// configError adds a hint to an error of a kubeconfig that leads to no cluster.
func configError(cmd *cobra.Command, err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return withoutCluster(cmd, err)
	}
	return err
}
