// Package wire is the byte form of what nodes say to each other.
//
// A frame is the unit that a transport carries. There are two types: the data
// frame holds records ([Record], one protocol message about one key each), and
// the hello ([Hello]) opens a connection. Numbers of fixed width are
// little-endian; varint is the base-128 form of encoding/binary, at most 64
// bits; zigzag maps the signed difference 0, -1, 1, -2 … to 0, 1, 2, 3 ….
//
// # The header
//
//	byte  0       4       5         6      7       8               16
//	      ┌───────┬───────┬─────────┬──────┬───────┬───────────────┬─────────
//	      │length │magic  │version  │type  │flags  │view           │records …, 0…7 zeros
//	      │u32    │'G'    │u8       │u8    │u8     │u64            │
//	      └───────┴───────┴─────────┴──────┴───────┴───────────────┴─────────
//
// length counts the whole frame, itself included: 16 … [MaxFrame]. Behind the
// records, a data frame is filled up with zeros to a multiple of 8, so that
// frames that were received one behind the other all lie where floats can be
// used in place. version is
// [Version]; length, magic and version keep their places in every version, so
// that nodes of different versions can say so. type is 1 for data and 2 for
// hello. No flag is defined; a set one is refused. view is the sender's view
// of the membership (0 in a hello).
//
// # A record
//
//	┌──────┬─────┬────┬───────┬────────┬──────┬───────┬─────────┬─────┬─────────┬───────┬─────┬────────┐
//	│head  │key  │op  │index  │origin  │hops  │epoch  │version  │seq  │holders  │count  │pad  │floats  │
//	│u8    │     │    │       │        │u8    │varint │varint   │var. │         │varint │0…3  │4·count │
//	└──────┴─────┴────┴───────┴────────┴──────┴───────┴─────────┴─────┴─────────┴───────┴─────┴────────┘
//
// A kind has the fields that the table in fields.go gives it and spends no
// byte on the others.
//
//	head     bits 0–4: kind; 5: op is that of the record before; 6: origin is
//	         that of the record before; 7: coming
//	key      zigzag difference to the key of the record before
//	op       varint; absent under bit 5
//	index    zigzag difference (32 bits) to the record before plus one; where
//	         op is written out, to 0. So the usual next one is one zero byte.
//	origin   varint; absent under bit 6
//	holders  count, then node, seq and version of each, all varints
//	count    the number of floats of Vals; 0 has neither pad nor floats
//	pad      zeros, until the floats start at a multiple of 4 from the frame's start
//
// "The record before" is the last one of the frame that had the field; before
// the first one, key, op and origin are 0 and index is -1.
//
// For example, the pushes of keys 7 and 8 (op 300, index 0 and 1, origin 2),
// with the values (1, 2) and (3, 4), in view 1 (testdata/example.hex):
//
//	30 00 00 00  47  02  01  00  01 00 00 00 00 00 00 00   header, 48 bytes
//	02  0e  ac 02  00  02  00  02                          push, key +7, op 300, index +0, origin 2, hops 0, 2 floats
//	00 00 80 3f  00 00 00 40                               no pad: 24 is a multiple of 4
//	62  02  00  00  02  00 00 00                           push, same op and origin, key +1, index next, hops 0, 2 floats, pad
//	00 00 40 40  00 00 80 40
//
// # What is demanded, what is promised
//
// The floats are handed out where they lie in the frame, without a copy, if
// the machine is little-endian and the frame starts at a multiple of 4 in
// memory (frames from a transport do); else, or under the build tag purego,
// they are copied. Neither encoding nor decoding allocates once its buffers
// have grown. A decoder believes no length before it has compared it with what
// is there, and answers any bytes with records or a [FormatError], never a
// panic.
//
// Encoder and Decoder each belong to one goroutine at a time.
package wire
