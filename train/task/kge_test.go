package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// writeFacts writes a folder with a graph of 40 entities and one relation: of each entity
// as head three facts to train, one to validate and one to test.
func writeFacts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var parts [3]strings.Builder
	for i := range 40 {
		for j := range 5 {
			fmt.Fprintf(&parts[min(2, max(0, j-2))], "e%d\tr\te%d\n", i, (i+7*j+1)%40)
		}
	}
	for i, name := range []string{"train.txt", "valid.txt", "test.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(parts[i].String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestABoundOnEvaluationsLeavesAllKnownAnswersToTheFilter(t *testing.T) {
	dir := writeFacts(t)
	var figures [2][]train.Metric // on the test facts, without a bound and with one
	for i, most := range []int{0, 4} {
		x, err := DefaultKGE().Load(Setup{Data: dir, Seed: 1, MaxEvalItems: most})
		if err != nil {
			t.Fatal(err)
		}
		m, err := godwit.NewModel(x.Tables()...)
		if err != nil {
			t.Fatal(err)
		}
		env := &train.Env{Workers: traintest.NewServer(m, 1, 1, 1).Workers(0)}
		if figures[i], err = x.Test(t.Context(), env, "test", false); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(figures[0]) != fmt.Sprint(figures[1]) {
		t.Errorf("the test facts rank %v, and with evaluations of 4 facts %v", figures[0], figures[1])
	}
}
