package user

import "testing"

func TestNever(t *testing.T) {
	if Never(true) {
		t.Fatal("was true")
	}
}
