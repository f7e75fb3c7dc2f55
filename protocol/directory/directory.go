package directory

import "github.com/godwit-ps/godwit"

// An Owner is a directory entry: who owns a key, since which epoch.
type Owner struct {
	Node  godwit.NodeID
	Epoch godwit.Epoch
}

// A Directory is one shard's part of what a node knows of places: at the home
// of a key, the truth about keys that live elsewhere; for all other keys, a
// hint, one byte a key. It belongs to its shard and has no lock of its own.
type Directory struct {
	away  map[godwit.Key]Owner
	hints []uint8 // by key/stride: node+1, 0 is unknown; nil where hints are off
	shift uint    // log2 of the stride of the shard's keys
}

// New returns the directory of a shard that has one of every 1<<shift keys of
// the model, with room for hints if they are wanted.
func New(keys uint64, shift uint, hints bool) *Directory {
	d := &Directory{away: map[godwit.Key]Owner{}, shift: shift}
	if hints {
		d.hints = make([]uint8, keys>>shift+1)
	}
	return d
}

// Away returns the owner of a key that is homed here and lives elsewhere.
func (d *Directory) Away(k godwit.Key) (Owner, bool) {
	o, ok := d.away[k]
	return o, ok
}

// SetAway notes that a key homed here is owned by another node.
func (d *Directory) SetAway(k godwit.Key, o Owner) { d.away[k] = o }

// Back notes that a key homed here is owned here again.
func (d *Directory) Back(k godwit.Key) { delete(d.away, k) }

// AwayLen returns how many keys homed here live elsewhere.
func (d *Directory) AwayLen() int { return len(d.away) }

// Hint returns where a key was seen last.
func (d *Directory) Hint(k godwit.Key) (godwit.NodeID, bool) {
	if d.hints == nil {
		return 0, false
	}
	h := d.hints[k>>d.shift]
	return godwit.NodeID(h) - 1, h != 0
}

// SetHint notes where a key was seen. Nodes beyond the 255 that fit in a byte
// are not noted; their keys are asked for at the home.
func (d *Directory) SetHint(k godwit.Key, n godwit.NodeID) {
	if d.hints != nil && n < 255 {
		d.hints[k>>d.shift] = uint8(n) + 1
	}
}
