package histogram

import "testing"

func TestEveryValueIsBelowTheBoundOfItsBucketAndNotBelowTheOneBefore(t *testing.T) {
	var c Counts
	var s Shared
	values := []uint64{0, 1, 2, 3, 4, 1023, 1024, 1<<24 - 1, 1 << 24, 1 << 40}
	for _, v := range values {
		i := Bucket(v)
		if i < Buckets-1 && v >= 1<<i {
			t.Errorf("bucket %d has %d", i, v)
		}
		if i > 0 && v < 1<<(i-1) {
			t.Errorf("bucket %d has %d, which bucket %d could have", i, v, i-1)
		}
		c.Observe(v)
		s.Observe(v)
	}
	if total(&c) != uint64(len(values)) || s.Counts() != c {
		t.Errorf("%d values were counted as %v and %v", len(values), c, s.Counts())
	}
	c.Add(&c)
	if total(&c) != 2*uint64(len(values)) {
		t.Errorf("twice %d values are %d", len(values), total(&c))
	}
}

func total(c *Counts) (n uint64) {
	for _, m := range c.Of {
		n += m
	}
	return n
}
