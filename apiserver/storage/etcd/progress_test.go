package etcd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrdersProgress(t *testing.T) {
	for version, want := range map[string]bool{
		"3.4.23": false, "3.4.30": false, "3.4.31": true, "3.5.0": false, "3.5.12": false, "3.5.13": true,
		"3.6.0": true, "3.6.0-rc.1": true, "4.0.0": true, "2.3.8": false, "": false, "3": false,
	} {
		require.Equal(t, want, ordersProgress(version), version)
	}
}
