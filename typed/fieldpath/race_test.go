//go:build race

package fieldpath_test

const raceDetector = true
