package apiserver

// StartOn is Start with a listener of the test's.
var StartOn = startOn
