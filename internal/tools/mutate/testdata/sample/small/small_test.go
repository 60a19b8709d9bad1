package small

import "testing"

func TestClamp(t *testing.T) {
	if Clamp(8) != 8 || Clamp(12) != 9 {
		t.Fatal("not clamped")
	}
}

func TestLoop(t *testing.T) {
	if Loop(3) != 3 {
		t.Fatal("not counted")
	}
}
