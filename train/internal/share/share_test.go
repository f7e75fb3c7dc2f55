package share

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit/train"
)

func TestSharesHaveEveryItemOnceInAnEpochInAnotherOrder(t *testing.T) {
	for _, n := range []int{0, 1, 5, 100} {
		for _, parts := range []int{1, 3, 8} {
			var orders [2][]int32
			for part := range parts {
				s := Deal(n, 7, train.Partition{Index: part, Count: parts}, 3)
				for epoch := range orders {
					items := 0
					for step := range s.Steps() {
						b := s.Batch(epoch+1, step)
						if len(b) == 0 || len(b) > 7 || len(b) < 7 && step < s.Steps()-1 {
							t.Fatalf("%d items in %d parts: batch %d of %d has %d", n, parts, step, s.Steps(), len(b))
						}
						items += len(b)
						orders[epoch] = append(orders[epoch], b...)
					}
					if items != s.Len() {
						t.Errorf("%d items in %d parts: part %d has %d, its batches %d", n, parts, part, s.Len(), items)
					}
				}
			}
			if n == 100 && slices.Equal(orders[0], orders[1]) {
				t.Error("two epochs have one order")
			}
			for _, o := range orders {
				slices.Sort(o)
				for i, item := range o {
					if int(item) != i {
						t.Fatalf("%d items in %d parts: the items are %v", n, parts, o)
					}
				}
				if len(o) != n {
					t.Errorf("%d items in %d parts: %d were dealt", n, parts, len(o))
				}
			}
		}
	}
}

func TestAnOrderFollowsFromSeedEpochAndPart(t *testing.T) {
	order := func(seed uint64, index int) []int32 {
		s := Deal(200, 200, train.Partition{Index: index, Count: 2}, seed)
		return slices.Clone(s.Batch(1, 0))
	}
	if !slices.Equal(order(1, 0), order(1, 0)) {
		t.Error("the same share comes in two orders")
	}
	other := order(1, 1)
	for i := range other {
		other[i]--
	}
	if slices.Equal(order(1, 0), order(2, 0)) || slices.Equal(order(1, 0), other) {
		t.Error("another seed, or another part, has the same order")
	}
}
