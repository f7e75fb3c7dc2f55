package etcd

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// A watch that broke goes on where it was: with the next revision, so that no word
// is missed and none comes twice.
func TestAWatchThatBrokeGoesOnWithTheNextWord(t *testing.T) {
	e := serve(t)
	cl, err := e.Access().connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	const words = 12
	w := &watcher{cl: cl, prefix: "words/"}
	defer w.close()
	var said, heard []string
	say := func(i int) {
		word := fmt.Sprint(i)
		r, err := cl.Put(ctx, "words/a", word)
		if err != nil {
			t.Fatal(err)
		}
		if w.rev == 0 {
			w.rev = r.Header.Revision
		}
		said = append(said, word)
	}
	for i := 0; i < words; i += 3 {
		for j := range 3 { // revisions that follow each other, the first right after those that were heard
			say(i + j)
		}
		for len(heard) < len(said) {
			events, err := w.next(ctx)
			if err != nil {
				t.Fatalf("heard %v, said %v: %v", heard, said, err)
			}
			for _, x := range events {
				heard = append(heard, string(x.Kv.Value))
			}
		}
		w.close()
	}
	if !slices.Equal(heard, said) {
		t.Errorf("heard %v, want %v", heard, said)
	}
}
