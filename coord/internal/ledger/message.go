package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A Kind says what a message is about.
type Kind string

const (
	Barrier   Kind = "barrier"  // I am at barrier Name for the Gen-th time
	Exchange  Kind = "exchange" // the same of an exchange, with my Payload
	Stop      Kind = "stop"     // please end the run early; Text: why
	Fail      Kind = "fail"     // my part of the run failed, or I lost the member Lost; Text: why
	Partition Kind = "verdict"  // members do not reach each other; Text: which
	Leave     Kind = "leave"    // I leave orderly
)

// A Message is what a node publishes to all members.
type Message struct {
	Kind    Kind           `json:"kind"`           // what the message is about
	Name    string         `json:"name,omitempty"` // of a barrier or exchange
	Gen     uint64         `json:"gen,omitempty"`  // the how-manieth use of that name, from 1
	Lost    *godwit.NodeID `json:"lost,omitempty"` // of a failure: the member that was lost; nil: none, the sender failed
	Text    string         `json:"text,omitempty"` // a reason, for people
	Payload []byte         `json:"-"`              // of an exchange
}

// Encode writes a message as one line of JSON, for people, and the payload as it
// is:
//
//	{"kind":"exchange","name":"hosts","gen":1}\n payload …
func (m Message) Encode() []byte {
	head, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("ledger: %v", err)) // strings and numbers only: cannot be
	}
	b := make([]byte, 0, len(head)+1+len(m.Payload))
	b = append(b, head...)
	b = append(b, '\n')
	return append(b, m.Payload...)
}

// DecodeMessage is the inverse of Encode. The payload aliases b.
func DecodeMessage(b []byte) (Message, error) {
	head, payload, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return Message{}, errors.New("message without end of line")
	}
	var m Message
	if err := json.Unmarshal(head, &m); err != nil {
		return Message{}, fmt.Errorf("message: %w", err)
	}
	switch m.Kind {
	case Barrier, Exchange:
		if m.Gen == 0 || m.Name == "" || len(m.Name) > coord.MaxName || len(payload) > coord.MaxPayload {
			return Message{}, fmt.Errorf("message: %s without name or number, or too long", m.Kind)
		}
	case Stop, Fail, Partition, Leave:
	default:
		return Message{}, fmt.Errorf("message of unknown kind %.20q", m.Kind)
	}
	m.Payload = payload
	return m, nil
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
