package resources

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// A Since returns the text that the cells of a Table have for the time since t, for example "5d" or "3h20m". Columns
// put it into their cells as it is, so that a Table can be kept without the text, which changes every second.
type Since func(t time.Time) string

// SinceAt returns the Since of a time.
func SinceAt(now time.Time) Since {
	return func(t time.Time) string { return duration.HumanDuration(now.Sub(t)) }
}
