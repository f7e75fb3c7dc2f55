package wire

import "fmt"

// A field is a set of fields of a Record. Hops and Coming go together.
type field uint16

const (
	fKey field = 1 << iota
	fOp
	fIndex
	fOrigin
	fRoute // Hops, Coming
	fEpoch
	fVersion
	fSeq
	fHolders
	fVals
)

// fieldsOf says which fields each kind has on the wire. It is the only place
// that does; the comments of the kinds say what they mean.
var fieldsOf = [kindMask + 1]field{
	Pull:     fKey | fOp | fIndex | fOrigin | fRoute,
	Push:     fKey | fOp | fIndex | fOrigin | fRoute | fVals,
	Set:      fKey | fOp | fIndex | fOrigin | fRoute | fSeq | fVals,
	Localize: fKey | fOp | fIndex | fOrigin | fRoute,

	PullReply: fKey | fOp | fIndex | fVals,
	Done:      fKey | fOp | fIndex,

	Interest: fKey | fOrigin | fRoute | fSeq,
	Delta:    fKey | fOrigin | fRoute | fSeq | fVals,
	End:      fKey | fOrigin | fRoute | fSeq | fVals,

	Refresh: fKey | fEpoch | fVersion | fSeq | fVals,
	Ack:     fKey | fVersion | fSeq,
	Dropped: fKey | fSeq,
	Refuse:  fKey,

	Transfer: fKey | fEpoch | fVersion | fHolders | fVals,
	Claim:    fKey | fOrigin | fEpoch,
	Release:  fKey | fOrigin | fEpoch,
	Drained:  fKey | fEpoch,

	SyncMark: fOp,
	SyncAck:  fOp,
}

// The head byte of a record.
const (
	kindMask   = 1<<5 - 1
	sameOp     = 1 << 5
	sameOrigin = 1 << 6
	coming     = 1 << 7
)

// Every kind fits in the head byte.
const _ = uint(kindMask + 1 - kinds)

// flags returns the bits of the head byte that a record with these fields may have.
func (f field) flags() byte {
	var b byte
	if f&fOp != 0 {
		b |= sameOp
	}
	if f&fOrigin != 0 {
		b |= sameOrigin
	}
	if f&fRoute != 0 {
		b |= coming
	}
	return b
}

// Check returns an error if the record has no kind or has a field set that its
// kind does not carry, so that it would not survive the wire. Whoever moves
// records without bytes, as a simulation does, checks them with it.
func (r *Record) Check() error {
	if r.Kind == 0 || r.Kind >= kinds {
		return fmt.Errorf("wire: record of kind %d, want 1 … %d", r.Kind, kinds-1)
	}
	f := fieldsOf[r.Kind]
	for _, c := range [...]struct {
		f    field
		set  bool
		name string
	}{
		{fKey, r.Key != 0, "Key"},
		{fOp, r.Op != 0, "Op"},
		{fIndex, r.Index != 0, "Index"},
		{fOrigin, r.Origin != 0, "Origin"},
		{fRoute, r.Hops != 0, "Hops"},
		{fRoute, r.Coming, "Coming"},
		{fEpoch, r.Epoch != 0, "Epoch"},
		{fVersion, r.Version != 0, "Version"},
		{fSeq, r.Seq != 0, "Seq"},
		{fHolders, len(r.Holders) != 0, "Holders"},
		{fVals, len(r.Vals) != 0, "Vals"},
	} {
		if c.set && f&c.f == 0 {
			return fmt.Errorf("wire: %v record of key %d has %s set, which its kind does not carry", r.Kind, r.Key, c.name)
		}
	}
	return nil
}
