package etcd

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// A watch that broke goes on where it was: with the next revision, so that no message
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
	const messages = 12
	w := &watcher{cl: cl, prefix: "words/"}
	defer w.close()
	var sent, received []string
	send := func(i int) {
		message := fmt.Sprint(i)
		r, err := cl.Put(ctx, "words/a", message)
		if err != nil {
			t.Fatal(err)
		}
		if w.rev == 0 {
			w.rev = r.Header.Revision
		}
		sent = append(sent, message)
	}
	for i := 0; i < messages; i += 3 {
		for j := range 3 { // revisions that follow each other, the first right after those that were received
			send(i + j)
		}
		for len(received) < len(sent) {
			events, err := w.next(ctx)
			if err != nil {
				t.Fatalf("received %v, sent %v: %v", received, sent, err)
			}
			for _, x := range events {
				received = append(received, string(x.Kv.Value))
			}
		}
		w.close()
	}
	if !slices.Equal(received, sent) {
		t.Errorf("received %v, want %v", received, sent)
	}
}
