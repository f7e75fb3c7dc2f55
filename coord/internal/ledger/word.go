package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit/coord"
)

// A Kind says what a word is about.
type Kind string

const (
	Barrier  Kind = "barrier"  // I am at barrier Name for the Gen-th time
	Exchange Kind = "exchange" // the same of an exchange, with my Payload
	Stop     Kind = "stop"     // please end the run early; Text: why
	Fail     Kind = "fail"     // my part of the run failed; Text: why
	Verdict  Kind = "verdict"  // members do not reach each other; Text: which
	Leave    Kind = "leave"    // I leave orderly
)

// A Word is what a node says to all members.
type Word struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name,omitempty"`
	Gen     uint64 `json:"gen,omitempty"`
	Text    string `json:"text,omitempty"`
	Payload []byte `json:"-"`
}

// Encode writes a word as one line of JSON, for people, and the payload as it
// is:
//
//	{"kind":"exchange","name":"hosts","gen":1}\n payload …
func (w Word) Encode() []byte {
	head, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("ledger: %v", err)) // strings and numbers only: cannot be
	}
	b := make([]byte, 0, len(head)+1+len(w.Payload))
	b = append(b, head...)
	b = append(b, '\n')
	return append(b, w.Payload...)
}

// DecodeWord is the inverse of Encode. The payload aliases b.
func DecodeWord(b []byte) (Word, error) {
	head, payload, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return Word{}, errors.New("word without end of line")
	}
	var w Word
	if err := json.Unmarshal(head, &w); err != nil {
		return Word{}, fmt.Errorf("word: %w", err)
	}
	switch w.Kind {
	case Barrier, Exchange:
		if w.Gen == 0 || w.Name == "" || len(w.Name) > coord.MaxName || len(payload) > coord.MaxPayload {
			return Word{}, fmt.Errorf("word: %s without name or number, or too long", w.Kind)
		}
	case Stop, Fail, Verdict, Leave:
	default:
		return Word{}, fmt.Errorf("word of unknown kind %.20q", w.Kind)
	}
	w.Payload = payload
	return w, nil
}

// clip bounds a text that people wrote, so that any reason can be told.
func clip(s string) string {
	const most = 16 << 10
	if len(s) > most {
		s = s[:most] + " …"
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
