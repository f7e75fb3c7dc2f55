package protocol

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/placement"
)

func TestAKeyMovesOnlyToOtherNodesOfTheRun(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	var told int
	c := &Config{
		Self: 1, Model: model, Policy: placement.Adaptive, Homes: directory.NewHomes(10, []godwit.NodeID{0, 1, 2}),
		Misplaced: func(error) { told++ },
	}
	var may []bool
	for _, to := range []godwit.NodeID{0, 1, 2, 3, 77, godwit.NoNode} {
		may = append(may, c.mayMove(4, to))
	}
	if !slices.Equal(may, []bool{true, false, true, false, false, false}) || told != 3 {
		t.Errorf("may move to nodes 0, 1 (itself), 2, 3, 77 and none: %v, and %d were told of, want 3", may, told)
	}
}
