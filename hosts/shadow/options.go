package shadow

import (
	"errors"
	"fmt"
	"strconv"
)

// Options limit the cost of a recorder.
type Options struct {
	// Rate is the share of writes, from 0 to 1, that are also computed with Tenure.
	Rate float64
	// Queue is the maximum number of waiting writes. Further writes are dropped.
	Queue int
	// Folder is the folder for traces. If it is "", a new folder with mode 0700 is created in the folder for
	// temporary files.
	Folder string
	// Traces is the maximum number of traces that the process writes; 0 for none.
	Traces int
	// Secrets allows values of Secrets in traces and in the log.
	Secrets bool
}

// The names of environment variables for the options.
const (
	RateVariable   = "TENURE_SHADOW_RATE"
	QueueVariable  = "TENURE_SHADOW_QUEUE"
	FolderVariable = "TENURE_SHADOW_TRACES"
	TracesVariable = "TENURE_SHADOW_MAX_TRACES"
	// SecretsVariable is the variable for Options.Secrets: "true" allows values of Secrets in traces and in the log.
	SecretsVariable = "TENURE_SHADOW_SECRETS"
)

// OptionsFrom returns the options that an environment sets. By default, one write in a hundred is compared, 1,000
// writes may wait, and 100 traces are written to a temporary folder.
func OptionsFrom(getenv func(string) string) (Options, error) {
	o := Options{Rate: 0.01, Queue: 1000, Traces: 100}
	var errs []error
	if text := getenv(RateVariable); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate >= 0 && rate <= 1) {
			errs = append(errs, fmt.Errorf("%s is %q: expected a number from 0 to 1", RateVariable, text))
		}
		o.Rate = rate
	}
	for name, into := range map[string]*int{QueueVariable: &o.Queue, TracesVariable: &o.Traces} {
		if text := getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				errs = append(errs, fmt.Errorf("%s is %q: expected a whole number from 0", name, text))
			}
			*into = n
		}
	}
	o.Folder = getenv(FolderVariable)
	if text := getenv(SecretsVariable); text != "" {
		var err error
		if o.Secrets, err = strconv.ParseBool(text); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: expected true or false", SecretsVariable, text))
		}
	}
	return o, errors.Join(errs...)
}
