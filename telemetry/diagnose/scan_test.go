package diagnose

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// told is what a node tells after so many seconds, of which it trained some.
func told(node, second, trained int, items bool) record.Sample {
	n := uint64(trained*(node+2) + trained*trained/7)
	s := record.Sample{Time: int64(second) * 1e9, Steps: int64(n) * 10, Waits: []record.Wait{{For: "answers", N: n, Time: int64(n) * 1e6}, {For: "barrier", Time: int64(second) * 1e7}},
		Process:  record.Process{Processor: int64(second) * 9e8, Delayed: int64(second%5) * 1e7, GC: int64(n) * 1e5, Used: 1e9 + n%9, Available: 8e9 - n%7, Stalled: int64(n) * 1e3},
		Accesses: record.Accesses{Local: n * 100, Remote: n}, RoundTime: int64(n) * 1e6, Sent: []record.Sent{{Record: "refresh", Bytes: n * 900}},
		Peers: []record.Peer{{Node: godwit.NodeID(1 - node), Answers: record.Times{N: n, Sum: int64(n) * 1e6}, Last: record.Times{N: n / 2, Sum: int64(n) * 1e5}}},
		Leads: record.Times{N: n, Sum: int64(n) * 1e5}, Intents: record.Intents{N: n, Keys: n * 10, Ahead: n * 4}, Waste: record.Waste{Refreshes: n, Unread: n / 3},
		Tables: []record.Table{{Name: "a", Use: trace.Use{Accesses: n, Missed: n / 2}}}, Hot: []trace.KeyUse{{Key: 7, Use: trace.Use{Accesses: n}}}, Most: second}
	if second > 12 {
		s.Sent = append(s.Sent, record.Sent{Record: "delta", Bytes: n * 50})
	}
	if items {
		s.Items = int64(n) * 100
	}
	return s
}

// Who reads the samples of a run one by one finds the same as who holds all of them, also where a node trains with breaks, counts no examples or counts them late, and where a
// line is damaged.
func TestOneByOneSamplesSayTheSame(t *testing.T) {
	for name, trains := range map[string]func(node, second int) bool{
		"all the time":    func(node, second int) bool { return true },
		"with breaks":     func(node, second int) bool { return second%10 < 7 && (node == 0 || second > 4) },
		"at the end":      func(node, second int) bool { return second >= 39 },
		"only the first":  func(node, second int) bool { return node == 0 && second < 3 },
		"none of the two": func(node, second int) bool { return false },
	} {
		for _, counts := range []int{0, 1, 20} { // seconds from which on examples are counted; 0: never
			dir := t.TempDir()
			for node := range 2 {
				w, err := record.Create(record.Config{Dir: dir, Header: record.Header{Run: "r", Policy: "adaptive", Node: godwit.NodeID(node), Nodes: 2, Workers: 2, Host: "h"}})
				if err != nil {
					t.Fatal(err)
				}
				trained := 0
				for second := range 40 {
					if trains(node, second) {
						trained++
					}
					w.Add(told(node, second, trained, counts > 0 && second >= counts))
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(trace.NodeDir(dir, godwit.NodeID(node)), "000001.samples")
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				last := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
				torn := bytes.Replace(b[last:], []byte(`"sent_bytes"`), []byte("\x00sent_bytes\""), 1) // with all of its brackets
				if bytes.Equal(torn, b[last:]) {
					t.Fatalf("there is no sent_bytes in %s", torn)
				}
				if err := os.WriteFile(path, slices.Concat(b, b[len(b)/2:len(b)/2+700], []byte("\n{\"t\":99e9,\n"), torn), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			all, err := record.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			r, err := record.Outline(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Scan(r, func(int) {})
			if err != nil {
				t.Fatal(err)
			}
			want := From(all)
			for _, in := range []*Input{&got, &want} {
				for i := range in.Nodes {
					in.Nodes[i].Halves = [2]record.Usage{} // one halves by bytes, the other by numbers
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("trained %s, examples from %d s on:\n%+v, want\n%+v", name, counts, got, want)
			}
		}
	}
}

// The halves of the time are about the same, too.
func TestOneByOneSamplesHaveHalves(t *testing.T) {
	in := &Input{}
	s := scan{in: in, header: &record.Header{Workers: 1}}
	for second := 1; second < 10; second++ {
		s.pair(&record.Front{Sample: record.Sample{Time: int64(second-1) * 1e9, Items: int64(second - 1)}}, &record.Front{Sample: record.Sample{Time: int64(second) * 1e9, Items: int64(second)}, Half: second / 5})
	}
	if h := s.node.Halves; h[0].Seconds != 4 || h[1].Seconds != 5 || h[0].Items != 4 {
		t.Errorf("%+v", h)
	}
}
