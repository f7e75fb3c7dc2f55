// Package wire is the byte form of what nodes say to each other.
//
// A frame is the unit that a transport carries. The data frame holds records
// ([Record], one protocol message about one key each); nonce, hello and proof
// ([Nonce], [Hello], [Proof]) open a connection, two more types are about lists of
// keys that both ends of a connection remember (lists.go), three are about the
// connection itself and its end (notice.go), and two are questions about anything else
// and their answers (ask.go). Numbers of fixed width are
// little-endian; varint is the base-128 form of encoding/binary, at most 64
// bits; zigzag maps the signed difference 0, -1, 1, -2 … to 0, 1, 2, 3 ….
//
// # The header
//
//	byte  0       4       5         6      7       8               16
//	      ┌───────┬───────┬─────────┬──────┬───────┬───────────────┬───
//	      │length │magic  │version  │type  │flags  │view           │…
//	      │u32    │'G'    │u8       │u8    │u8     │u64            │
//	      └───────┴───────┴─────────┴──────┴───────┴───────────────┴───
//
// length counts the whole frame, itself included: 16 … [MaxFrame]. version is
// [Version]; length, magic and version keep their places in every version, so
// that nodes of different versions can say so. type is 1 for data, 2 for
// hello, 3 for a question for a list, 4 for the answer, 5 for a goodbye, 6 for a
// nonce, 7 for a proof, 8 for a heartbeat, 9 for suspicions, 10 for a question about anything
// else and 11 for its answer. Flags 1 and 2 are the
// two compressions of [Features], see [Compress]; a [Decoder] takes frames without flags
// only. view is the sender's view of the membership (0 in hello, nonce and proof;
// heartbeats, questions and answers have something else there).
//
// # A data frame
//
//	byte  16      20      24
//	      ┌───────┬───────┬────────────┬────────────┬─────────┐
//	      │values │size   │values …    │runs …      │0…7 zeros│
//	      │u32    │u32    │            │            │         │
//	      └───────┴───────┴────────────┴────────────┴─────────┘
//
// values is the number of bytes of the values, which belong to the records in
// their order. size is 0, but of a compressed frame the length before: all
// behind the size is compressed as one, the upper three bits of the flags are how
// many zeros follow, and flags, size and length are the only bytes before it that
// differ. Zeros fill the frame up to a multiple of 8, so that frames
// that were received one behind the other all lie where floats can be used in
// place.
//
// # A run
//
// Consecutive records of the same kind, op, origin, hops, coming, rough, whole, odd, saved, number of
// floats and coding form a run of 1 … 65535: a head, and an entry for each.
//
//	┌──────┬───────┬───────┬─────────┬─────────┬──────┬─────────┬────────┬──────┬───────────
//	│kind  │flags  │count  │op       │origin   │hops  │floats   │coding  │step  │entries …
//	│u8    │u8     │u16    │varint   │varint   │u8    │varint   │u8      │f32   │
//	└──────┴───────┴───────┴─────────┴─────────┴──────┴─────────┴────────┴──────┴───────────
//
//	flags    bit 0: op is that of the run before; 1: origin is that of the run
//	         before; 2: coming, or of a row that moves, saved; 3: values have a
//	         coding; of pulls, which have none, the whole row is asked for; 4: keys and indexes of all entries but the first are the next
//	         ones, and no bytes; 5: the entries are those of a remembered list,
//	         whose hash of 16 bytes stands here; 6: these entries are to be
//	         remembered. Of bits 4 to 6, one at most. 7: of pulls, the values
//	         asked for may be rounded; of what changes a row, it is of an odd side
//	         of cuts
//	op       absent under bit 0
//	origin   absent under bit 1
//	floats   of the values of each record
//	coding   a [Coding]; and bit 7: the step is with the values. Only under bit 3
//	step     of fixed point whose step is not with the values
//
// A kind has the fields that the table in fields.go gives it and spends no
// byte on the others. "The run before" is the last one of the frame that had
// the field; before the first one, op and origin are 0. A kind without a key
// has runs of one record and no entries.
//
// # An entry
//
//	┌────────┬────────┬─────────┬─────────┬────────┬─────────┐
//	│key     │index   │epoch    │version  │seq     │holders  │
//	│varint  │varint  │varint   │varint   │varint  │         │
//	└────────┴────────┴─────────┴─────────┴────────┴─────────┘
//
//	key      zigzag difference to the key before plus one; of kinds with an
//	         index, twice that, plus one if an index follows
//	index    zigzag difference (32 bits) to the index before plus one. Where
//	         none follows, the difference of indexes is the same as between
//	         the two records before, at first 1
//	epoch, version, seq: zigzag differences to those before
//	holders  count, then node, seq and version of each, all varints
//
// "Before" the first entry of a run, key and index are -1 and all else is 0:
// the entries say the same wherever the run stands. A difference of keys that
// takes more than 62 bits stands behind an all-ones varint (but for the bit of
// the index).
//
// So keys in order with the next index each cost a byte for gaps up to 32, two
// up to 4096, and none at all where there are no gaps.
//
// # Values
//
// Raw values of a record begin at a multiple of 4; zeros fill up to there. The
// others begin where those before end: the step, if it is here; for sparse
// ones a bit for each value, from the lowest of the first byte, which is set
// where there is a value other than +0; and the values, each as its coding has
// it.
//
// For example, the pushes of keys 7 and 8 (op 300, index 0 and 1, origin 2),
// with the values (1, 2) and (3, 4), in view 1 (testdata/example.hex):
//
//	38 00 00 00  47  06  01  00  01 00 00 00 00 00 00 00   header, 56 bytes
//	10 00 00 00  00 00 00 00                               16 bytes of values, not compressed
//	00 00 80 3f  00 00 00 40                               the values of key 7
//	00 00 40 40  00 00 80 40                               … and of key 8
//	02 10 02 00  ac 02  02  00  02                         pushes, dense, 2 of them, op 300, origin 2, hops 0, 2 floats
//	1c                                                     key +7, the next index; key 8 is the next key
//	00 00 00 00  00 00                                     to a multiple of 8
//
// # What is demanded, what is promised
//
// Raw floats are handed out where they lie in the frame, without a copy, if
// the machine is little-endian and the frame starts at a multiple of 4 in
// memory (frames from a transport do); else, or under the build tag purego,
// they are copied, as all others are. Neither encoding nor decoding allocates
// once its buffers have grown. A decoder believes no length before it has
// compared it with what is there, and answers any bytes with records or a
// [FormatError], never a panic; the memory that it takes for values is less than
// twice MaxFrame.
//
// Encoder and Decoder each belong to one goroutine at a time.
package wire
