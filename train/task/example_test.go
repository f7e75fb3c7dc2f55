package task_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/train/task"
)

// WideSketch are the settings of a task of one's own: a sketch with other defaults.
// What is nothing but one's own has a Load of its own, too; the module in examples/ctr
// shows all of it.
type WideSketch struct{ task.Sketch }

func (*WideSketch) Name() string { return "wide-sketch" }

func newWideSketch() task.Settings {
	s := &WideSketch{*task.DefaultSketch()}
	s.Width = 1 << 18
	return s
}

func init() { task.Register(newWideSketch) }

func ExampleRegister() {
	s, err := task.Decode("wide-sketch", []byte(`{"Depth": 7}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	w := s.(*WideSketch)
	fmt.Println(w.Name(), w.Depth, w.Width)
	// Output: wide-sketch 7 262144
}
