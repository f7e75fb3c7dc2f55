package host

import "testing"

func BenchmarkAStepThatNobodyTraces(b *testing.B) {
	var m Marks
	for b.Loop() {
		m.Step()
	}
}

func BenchmarkAWaitThatNobodyTraces(b *testing.B) {
	var m Marks
	for b.Loop() {
		m.Wait("wait: answers").End()
	}
}
