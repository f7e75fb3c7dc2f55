package directory

import "github.com/godwit-ps/godwit"

// An Owner is a directory entry: who owns a key, since which epoch.
type Owner struct {
	Node  godwit.NodeID
	Epoch godwit.Epoch
}

// A Directory is one shard's part of what a node knows of places: at the home
// of a key, the truth about keys that live elsewhere; for all other keys, a
// hint where it was seen, if that was not at home. Its memory follows the keys that
// are not at home. It belongs to its shard and has no lock of its own.
type Directory struct {
	homes *Homes
	self  godwit.NodeID
	away  owners
	shift uint // log2 of the stride of the shard's keys
	off   bool // without hints
	hints hints
}

// New returns a node's directory of a shard that has one of every 1<<shift keys of
// the model, with hints if they are wanted.
func New(homes *Homes, self godwit.NodeID, shift uint, hints bool) *Directory {
	return &Directory{homes: homes, self: self, shift: shift, off: !hints}
}

// Away returns the owner of a key that is homed here and lives elsewhere.
func (d *Directory) Away(k godwit.Key) (Owner, bool) {
	return d.away.get(uint64(k) >> d.shift)
}

// SetAway notes that a key homed here is owned by another node.
func (d *Directory) SetAway(k godwit.Key, o Owner) {
	d.away.set(uint64(k)>>d.shift, o)
}

// Back notes that a key homed here is owned here again.
func (d *Directory) Back(k godwit.Key) { d.away.drop(uint64(k) >> d.shift) }

// AwayLen returns how many keys homed here live elsewhere.
func (d *Directory) AwayLen() int { return d.away.n }

// Hint returns where a key was seen last, if that was another node than its home
// and this one.
func (d *Directory) Hint(k godwit.Key) (godwit.NodeID, bool) {
	return d.hints.get(uint64(k) >> d.shift)
}

// Hintless reports whether there are no hints, so that to see a key at its home says nothing new.
func (d *Directory) Hintless() bool { return d.hints.n == 0 }

// SetHint notes where a key was seen. Of keys that are homed here, the directory
// knows better.
func (d *Directory) SetHint(k godwit.Key, n godwit.NodeID) {
	if d.off {
		return
	}
	switch home := d.homes.Home(k); {
	case home == d.self:
	case n == home, n == d.self:
		d.hints.drop(uint64(k) >> d.shift)
	default:
		d.hints.set(uint64(k)>>d.shift, n)
	}
}

// Bytes returns about the memory that the directory takes.
func (d *Directory) Bytes() int { return 8*len(d.hints.places) + 16*len(d.away.places) }
