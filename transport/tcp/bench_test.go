package tcp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/transport"
)

// both connects two ends over the loopback.
func both(b *testing.B, n Network) (here, there transport.Conn) {
	b.Helper()
	l, err := n.Listen(anyAddr())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan transport.Conn, 1)
	go func() {
		c, err := l.Accept(b.Context(), transport.Hello{}, secret)
		if err != nil {
			b.Error(err)
		}
		accepted <- c
	}()
	here, err = n.Dial(b.Context(), l.Addr(), transport.Hello{From: 1}, secret)
	if err != nil {
		b.Fatal(err)
	}
	there = <-accepted
	b.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func sized(n int) []byte {
	f := make([]byte, n)
	binary.LittleEndian.PutUint32(f, uint32(n))
	return f
}

// echo sends every frame back until the connection ends.
func echo(c transport.Conn) {
	for {
		f, err := c.ReadFrame()
		if err != nil || c.WriteFrame(f) != nil {
			return
		}
	}
}

// rawPingPong returns the time of one exchange of n bytes over plain sockets,
// the baseline of BenchmarkPingPong.
func rawPingPong(b *testing.B, n, rounds int) time.Duration {
	b.Helper()
	ln, err := net.Listen("tcp", anyAddr())
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, n)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, n)
	start := time.Now()
	for range rounds {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / time.Duration(rounds)
}

func BenchmarkPingPong(b *testing.B) {
	for _, n := range []int{64, 4096} {
		b.Run(fmt.Sprintf("%dB", n), func(b *testing.B) {
			here, there := both(b, Network{})
			go echo(there)
			f := sized(n)
			raw := rawPingPong(b, n, 5000)
			b.ReportAllocs()
			for b.Loop() {
				if err := here.WriteFrame(f); err != nil {
					b.Fatal(err)
				}
				if _, err := here.ReadFrame(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			raw = (raw + rawPingPong(b, n, 5000)) / 2 // before and after, as the machine changes
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(raw), "×raw")
		})
	}
}

func BenchmarkThroughput(b *testing.B) {
	for _, n := range []int{64, 4096, 1 << 20} {
		b.Run(fmt.Sprintf("%dB", n), func(b *testing.B) {
			here, there := both(b, Network{})
			b.SetBytes(int64(n))
			sent := make(chan error, 1)
			count := b.N
			b.ResetTimer()
			go func() {
				f := sized(n)
				for range count {
					if err := here.WriteFrame(f); err != nil {
						sent <- err
						return
					}
				}
				sent <- nil
			}()
			for range count {
				if _, err := there.ReadFrame(); err != nil {
					b.Fatal(err)
				}
			}
			if err := <-sent; err != nil {
				b.Fatal(err)
			}
		})
	}
}
