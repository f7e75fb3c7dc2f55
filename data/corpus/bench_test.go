package corpus

import (
	"bytes"
	"testing"
)

// BenchmarkRead compares counting and reading a text with scanning it for its
// words alone.
func BenchmarkRead(b *testing.B) {
	g, err := Generate(DefaultSpec())
	if err != nil {
		b.Fatal(err)
	}
	o := Options{MinCount: 1, Block: 500}
	c, err := FromText("generated", g.Text, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(g.Text)))
		s := newScanner(Prose, o.Block)
		for b.Loop() {
			s.reset(bytes.NewReader(g.Text), 0)
			for t := word; t != text; {
				if t, err = s.next(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		b.SetBytes(int64(len(g.Text)))
		for b.Loop() {
			if _, err := FromText("generated", g.Text, o); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(g.Text)))
		r := c.Reader()
		var t Text
		for b.Loop() {
			for i := range c.Blocks() {
				if err := r.Read(i, &t); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
