//go:build !race

package attacks_test

const raceDetector = false
