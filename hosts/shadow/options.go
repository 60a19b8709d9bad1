package shadow

import (
	"errors"
	"fmt"
	"strconv"
)

// Options bound what a recorder costs.
type Options struct {
	// Rate is the share of writes that are computed by Tenure as well, from 0 to 1.
	Rate float64
	// Queue is how many writes may wait. The next ones are dropped.
	Queue int
	// Folder is where traces are written; "" for a new one among those for temporary files, with mode 0700.
	Folder string
	// Traces is how many traces are written at most, in the life of the process; 0 for none.
	Traces int
	// Secrets says that traces and the log may have the values of Secrets. Without it, they have neither.
	Secrets bool
}

// The environment variables of the options.
const (
	RateVariable   = "TENURE_SHADOW_RATE"
	QueueVariable  = "TENURE_SHADOW_QUEUE"
	FolderVariable = "TENURE_SHADOW_TRACES"
	TracesVariable = "TENURE_SHADOW_MAX_TRACES"
	// SecretsVariable is "true" if traces may have Secrets.
	SecretsVariable = "TENURE_SHADOW_SECRETS"
)

// OptionsFrom returns the options that an environment sets. Without any, one write in a hundred
// is compared, 1,000 may wait, and 100 traces go to a folder for temporary files.
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
