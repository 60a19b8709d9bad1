package manifest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// urlTimeout is how long a URL may take.
const urlTimeout = 30 * time.Second

func isURL(input string) bool {
	return strings.HasPrefix(input, "http://") || strings.HasPrefix(input, "https://")
}

// readURL reads the document at a URL.
func readURL(env *process.Env, address string) ([]byte, error) {
	ctx := env.Context
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, urlTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: expected status 200, got %s", address, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxInput+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if len(data) > MaxInput {
		return nil, fmt.Errorf("%s: larger than %d MiB", address, MaxInput>>20)
	}
	return data, nil
}
