//go:build race

package apiserver_test

const raceDetector = true
