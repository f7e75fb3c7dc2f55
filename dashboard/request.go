package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/dashboard/internal/index"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A request is one of the page, and what it says.
type request struct {
	*http.Request
	err error // the first parameter that is wrong
}

// A wrong is what is wrong with a request, as a person reads it.
type wrong struct{ text string }

func (w wrong) Error() string { return w.text }

// missing says that what is asked for is not there.
type missing struct{ text string }

func (m missing) Error() string { return m.text }

// mostRequests is how many requests are worked on at a time. More wait.
const mostRequests = 8

// answer turns a function into a handler. What it returns is sent as JSON, or as it is if it is bytes.
func (s *Server) answer(do func(*request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, kind, err := s.work(&request{Request: r}, do)
		if err != nil {
			fail(w, statusOf(err), err.Error())
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b) // a browser that went away
	})
}

// work does what a request asks for, when there are not too many others. What it returns is sent afterwards: that takes as long as the browser likes.
func (s *Server) work(r *request, do func(*request) (any, error)) (b []byte, kind string, err error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-r.Context().Done():
		return nil, "", r.Context().Err()
	}
	return body(do(r))
}

func body(x any, err error) (b []byte, kind string, e error) {
	if err != nil {
		return nil, "", err
	}
	if b, ok := x.([]byte); ok {
		return b, "application/octet-stream", nil
	}
	b, err = json.Marshal(x) // escapes what HTML takes for tags
	return b, "application/json", err
}

func statusOf(err error) int {
	var bad wrong
	var none missing
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.As(err, &none), errors.Is(err, errNone):
		return http.StatusNotFound
	case errors.Is(err, index.ErrWaiting), errors.Is(err, errMany):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// fail answers that something is wrong.
func fail(w http.ResponseWriter, status int, text string) {
	b, _ := json.Marshal(map[string]string{"error": text}) // a string is JSON
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a browser that went away
}

// bad takes note that a parameter is wrong.
func (r *request) bad(name, want string) {
	if r.err == nil {
		r.err = wrong{fmt.Sprintf("%s=%q: want %s", name, r.FormValue(name), want)}
	}
}

// number returns a parameter that is a number of a range; without one, what it is then.
func (r *request) number(name string, without, least, most int) int {
	text := r.FormValue(name)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		r.bad(name, fmt.Sprintf("a number of %d … %d", least, most))
		return without
	}
	return n
}

// mostSeconds bounds times: about 30 years.
const mostSeconds = 1e9

// time returns a parameter that is a time in seconds, as nanoseconds.
func (r *request) time(name string, without int64) int64 {
	text := r.FormValue(name)
	if text == "" {
		return without
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.Abs(x) > mostSeconds {
		r.bad(name, "seconds since the run's start")
		return without
	}
	return int64(math.Round(x * 1e9))
}

// mostText bounds what is searched for, in bytes.
const mostText = 200

// selection returns which keys are meant.
func (r *request) selection() index.Selection {
	s := index.Selection{Table: r.FormValue("table"), Query: r.FormValue("q"), Sort: index.Order(r.FormValue("sort"))}
	if s.Sort != "" && !slices.Contains(index.Orders, s.Sort) {
		r.bad("sort", fmt.Sprintf("one of %v", index.Orders))
	}
	if len(s.Query) > mostText || len(s.Table) > 10*mostText {
		r.bad("q", "a shorter text")
	}
	return s
}

// keyed returns a parameter that lists keys.
func (r *request) keyed(name string, tables []trace.Table) (keys []godwit.Key) {
	text := r.FormValue(name)
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > 1000 {
		r.bad(name, "at most 1000 keys")
		return nil
	}
	for _, p := range parts {
		k, err := trace.ParseKey(p, tables)
		if err != nil {
			r.bad(name, "keys of the model, by commas")
			return nil
		}
		keys = append(keys, k)
	}
	return keys
}

// limits
const mostKeys = 1 << 20

func (r *request) part(most, without int) (offset, limit int) {
	return r.number("offset", 0, 0, math.MaxInt32), r.number("limit", without, 0, most)
}
