package apiserver_test

import (
	"testing"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/internal/exchanges"
)

// TestRecordedExchanges sends the requests that kube-apiserver got and compares the responses.
func TestRecordedExchanges(t *testing.T) { exchanges.Run(t, "testdata/rest", apiserver.Options{}) }
