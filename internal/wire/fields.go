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
	fRough // Rough, Whole: of pulls; no kind has it and fVals
	fSide  // Odd; no kind has both
	fSaved // Saved; no kind has it and fRoute
)

// fieldsOf says which fields each kind has on the wire. It is the only place
// that does; the comments of the kinds say what they mean.
var fieldsOf = [256]field{
	Pull:     fKey | fOp | fIndex | fOrigin | fRoute | fRough,
	Push:     fKey | fOp | fIndex | fOrigin | fRoute | fVals | fSide,
	Set:      fKey | fOp | fIndex | fOrigin | fRoute | fSeq | fVals | fSide,
	Localize: fKey | fOp | fIndex | fOrigin | fRoute,

	PullReply: fKey | fOp | fIndex | fVals,
	Done:      fKey | fOp | fIndex,

	Interest: fKey | fOrigin | fRoute | fSeq,
	Delta:    fKey | fOrigin | fRoute | fSeq | fVals | fSide,
	End:      fKey | fOrigin | fRoute | fSeq | fVals | fSide,

	Refresh: fKey | fEpoch | fVersion | fSeq | fVals,
	Ack:     fKey | fVersion | fSeq,
	Dropped: fKey | fSeq,
	Refuse:  fKey,

	Transfer: fKey | fEpoch | fVersion | fHolders | fVals | fSide | fSaved,
	Claim:    fKey | fOrigin | fEpoch,
	Release:  fKey | fOrigin | fEpoch,
	Drained:  fKey | fEpoch,

	SyncMark: fOp,
	SyncAck:  fOp,

	Scan:      fKey | fOp | fSeq,
	InUse:     fKey | fOp,
	Scanned:   fKey | fOp,
	Settled:   fKey | fOp | fVersion | fSeq,
	PullAfter: fKey | fOp | fIndex | fOrigin | fRoute | fSeq,
	Rebound:   fKey | fOp | fVersion | fSeq,
	Wish:      fKey | fOrigin | fRoute | fSeq,
	Bid:       fKey | fVersion | fSeq,
	BidReply:  fKey | fVersion,
	Cut:       fKey | fOp | fVersion | fSeq,
	RoundMark: fOp,
	RoundDone: fOp,
}

// The flags of a run.
const (
	sameOp     = 1 << 0
	sameOrigin = 1 << 1
	coming     = 1 << 2
	coded      = 1 << 3
	dense      = 1 << 4
	listed     = 1 << 5
	remember   = 1 << 6
	rough      = 1 << 7 // of a kind with fRough
	whole      = 1 << 3 // … with fRough
	odd        = 1 << 7 // … with fSide
	saved      = 1 << 2 // … with fSaved
)

// flags returns the flags that a run of records with these fields may have.
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
	if f&fVals != 0 {
		b |= coded
	}
	if f&fRough != 0 {
		b |= rough | whole
	}
	if f&fSide != 0 {
		b |= odd
	}
	if f&fSaved != 0 {
		b |= saved
	}
	if f.listed() {
		b |= dense | listed | remember
	}
	return b
}

// listed reports whether nothing but key, index and values tells the records of
// a run apart.
func (f field) listed() bool { return f&fKey != 0 && f&(fEpoch|fVersion|fSeq|fHolders) == 0 }

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
		{fSide, r.Odd, "Odd"},
		{fSaved, r.Saved, "Saved"},
		{fEpoch, r.Epoch != 0, "Epoch"},
		{fVersion, r.Version != 0, "Version"},
		{fSeq, r.Seq != 0, "Seq"},
		{fHolders, len(r.Holders) != 0, "Holders"},
		{fVals, len(r.Vals) != 0, "Vals"},
		{fVals, r.Coding != 0, "Coding"},
		{fVals, r.Step != 0, "Step"},
		{fRough, r.Rough, "Rough"},
		{fRough, r.Whole, "Whole"},
	} {
		if c.set && f&c.f == 0 {
			return fmt.Errorf("wire: %v record of key %d has %s set, which its kind does not carry", r.Kind, r.Key, c.name)
		}
	}
	if !r.Coding.valid() {
		return fmt.Errorf("wire: %v record of key %d has coding %#02x, which does not exist", r.Kind, r.Key, r.Coding)
	}
	return nil
}
