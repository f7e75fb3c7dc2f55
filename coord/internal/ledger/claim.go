package ledger

import (
	"encoding/json"
	"fmt"
)

// A Claim is what a node stores at the coordinator: its registration, and what it has
// seen of the others.
type Claim struct {
	Registration
	Roster int64 `json:"roster,omitempty"` // the full roster that the node confirms
	Sealed bool  `json:"sealed,omitempty"` // the node has seen the seal
}

// Encode writes the claim, but for the incarnation, which the coordinator gives.
func (c Claim) Encode() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("ledger: %v", err)) // strings, bytes and numbers only: cannot be
	}
	return b
}

// DecodeClaim is the inverse of Encode.
func DecodeClaim(b []byte) (c Claim, err error) {
	err = json.Unmarshal(b, &c)
	return c, err
}
