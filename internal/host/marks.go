package host

import (
	"context"
	"runtime/trace"
)

// Marks are what one worker leaves in an execution trace of the runtime (runtime/trace): a task for each
// of its steps, and a region for each wait. They belong to the worker's goroutine. While nothing is
// traced, a mark costs a look whether something is. The zero Marks are ready for use.
type Marks struct {
	ctx  context.Context // of the task
	task *trace.Task     // nil: nothing was traced when the step began
}

// Step ends a step, and begins the next one.
func (m *Marks) Step() {
	if m.task == nil && !trace.IsEnabled() {
		return
	}
	m.step()
}

func (m *Marks) step() {
	if m.task != nil {
		m.task.End()
		m.ctx, m.task = nil, nil
	}
	if trace.IsEnabled() {
		m.ctx, m.task = trace.NewTask(context.Background(), "step")
	}
}

// Wait begins a wait of a name, which its caller ends.
func (m *Marks) Wait(name string) *trace.Region {
	ctx := m.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return trace.StartRegion(ctx, name)
}
