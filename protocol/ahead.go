package protocol

import "github.com/godwit-ps/godwit"

// AheadIndex and AheadRow announce an access to a key to the processor, see
// store.Store. They change nothing.
func (s *Shard) AheadIndex(k godwit.Key) { s.st.AheadIndex(k) }

// AheadRow is the second step.
func (s *Shard) AheadRow(k godwit.Key) { s.st.AheadRow(k) }
