package wire

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

// The benchmarks code frames of 100 pushes of 100 floats each, and report the
// time of a record as a multiple of what it takes to copy its floats alone.
const benchRecords, benchFloats = 100, 100

func benchFrame() []Record {
	recs := make([]Record, benchRecords)
	for i := range recs {
		recs[i] = Record{Kind: Push, Key: godwit.Key(i * i * 37), Op: 1 << 20, Index: uint32(i), Origin: 2, Vals: make([]float32, benchFloats)}
	}
	return recs
}

func report(b *testing.B, recs []Record) {
	per := float64(b.Elapsed().Nanoseconds()) / float64(b.N*len(recs))
	b.ReportMetric(per, "ns/record")
	if len(recs[0].Vals) == 0 {
		return
	}
	dst := make([]float32, benchFloats*len(recs))
	const rounds = 2000
	start := time.Now()
	for range rounds {
		for i := range recs {
			copy(dst[i*benchFloats:], recs[i].Vals)
		}
	}
	b.ReportMetric(per/(float64(time.Since(start).Nanoseconds())/float64(rounds*len(recs))), "×memcpy")
}

func benchEncode(b *testing.B, recs []Record) {
	var e Encoder
	var buf []byte
	for b.Loop() {
		e.Reset(buf, 1)
		for i := range recs {
			e.Append(&recs[i])
		}
		buf = e.Frame()
	}
	report(b, recs)
}

// benchDecode reads all records and, where they have floats, copies them out.
func benchDecode(b *testing.B, recs []Record) {
	frame := encode(1, recs)
	dst := make([]float32, benchFloats)
	var d Decoder
	var r Record
	for b.Loop() {
		if err := d.Reset(frame); err != nil {
			b.Fatal(err)
		}
		for {
			ok, err := d.Next(&r)
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			copy(dst, r.Vals)
		}
	}
	report(b, recs)
}

func benchPulls() []Record {
	recs := benchFrame()
	for i := range recs {
		recs[i].Kind, recs[i].Vals = Pull, nil
	}
	return recs
}

func BenchmarkEncodePush100(b *testing.B) { benchEncode(b, benchFrame()) }
func BenchmarkDecodePush100(b *testing.B) { benchDecode(b, benchFrame()) }
func BenchmarkEncodePull(b *testing.B)    { benchEncode(b, benchPulls()) }
func BenchmarkDecodePull(b *testing.B)    { benchDecode(b, benchPulls()) }
