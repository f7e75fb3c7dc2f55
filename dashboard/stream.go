package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/godwit-ps/godwit/dashboard/internal/index"
)

// How a stream of events goes.
const (
	streamEvery   = 250 * time.Millisecond
	streamTimeout = 10 * time.Second // in which a browser takes an event, or is left
	mostStreams   = 32
)

// stream sends the state of a run whenever it has changed. A browser that is slow misses states, never the newest one.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already: close one", mostStreams))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	send := func(event string, x any) error {
		b, err := json.Marshal(x)
		if err == nil {
			err = to.SetWriteDeadline(time.Now().Add(streamTimeout))
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, b)
		}
		if err == nil {
			err = to.Flush()
		}
		return err
	}
	t := time.NewTicker(streamEvery)
	defer t.Stop()
	var last, now object
	var shown *run
	defer func() { s.runs.hide(shown) }()
	for {
		if now, shown = s.state(r, shown); !reflect.DeepEqual(now, last) {
			if err := send("state", now); err != nil {
				return
			}
			last = now
		}
		select {
		case <-t.C:
		case <-r.Context().Done():
			_ = send("bye", object{}) // a browser that went away hears nothing
			return
		}
	}
}

// state is what a stream tells of a run, and which one that is; nil: none. It has told of another one before, or of none.
func (s *Server) state(r *http.Request, before *run) (object, *run) {
	found, err := s.runs.folders()
	if err != nil {
		return object{"error": err.Error()}, before
	}
	run, err := s.runs.show(r.FormValue("run"), before)
	var ix *index.Index
	if err == nil {
		ix, err = run.await(r.Context())
	}
	switch {
	case errors.Is(err, index.ErrWaiting):
		return object{"runs": len(found), "waiting": err.Error()}, run
	case err != nil:
		return object{"runs": len(found), "error": err.Error()}, run
	}
	x := ix.State()
	return object{"run": run.name, "to": seconds(x.To), "keys": x.Keys, "events": x.Events, "lost": x.Lost, "thinned": x.Thinned, "live": run.growing(), "progress": x.Progress, "done": x.Done, "runs": len(found), "samples": run.told()}, run
}

// told returns how much the run's nodes have told of themselves: a number that grows.
func (r *run) told() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec == nil {
		return 0
	}
	for _, x := range r.rec.Nodes {
		if x != nil && len(x.Samples) > 0 {
			n += x.Samples[len(x.Samples)-1].Time
		}
	}
	return n/1e6 + int64(len(r.rec.Events))
}
