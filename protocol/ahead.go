package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/store"
)

// AheadIndex, AheadRow and Look may be called without the shard's lock, see
// store.Store. They change nothing.

// AheadIndex announces an access to a key to the processor.
func (s *Shard) AheadIndex(k godwit.Key) { s.st.AheadIndex(k) }

// AheadRow is the second step. It returns what Look does.
func (s *Shard) AheadRow(k godwit.Key) *store.Header { return s.st.AheadRow(k) }

// Look returns where the row of a key seems to be, for Glance, PullAt and
// PushAt; nil if nowhere.
func (s *Shard) Look(k godwit.Key) *store.Header { return s.st.Look(k) }
