package dashboard

import (
	"encoding/binary"
	"math"

	"github.com/godwit-ps/godwit/dashboard/internal/index"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// object is a JSON object.
type object map[string]any

// of returns the run that a request is about, and its index.
func (s *Server) of(r *request) (*run, *index.Index, error) {
	run, err := s.runs.get(r.FormValue("run"))
	if err != nil {
		return nil, nil, err
	}
	ix, err := run.await(r.Context())
	if err != nil {
		return nil, nil, err
	}
	return run, ix, nil
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// list answers which runs there are.
func (s *Server) list(*request) (any, error) {
	found, err := s.runs.folders()
	if err != nil {
		return nil, err
	}
	list, current := []object{}, ""
	for i, f := range found {
		current = f.name
		list = append(list, object{"name": f.name, "policy": f.header.Policy, "nodes": f.header.Nodes, "start": seconds(f.header.Start), "live": i == len(found)-1 && recent(f.path)})
	}
	return object{"runs": list, "current": current}, nil
}

// run answers what a run is.
func (s *Server) run(r *request) (any, error) {
	run, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	x := ix.State()
	o := object{
		"name": run.name, "policy": x.Header.Policy, "tables": tables(x.Header.Tables), "traced": x.Header.Traced,
		"keys": x.Keys, "events": x.Events, "lost": x.Lost, "thinned": x.Thinned, "start": seconds(x.Start), "from": 0, "to": seconds(x.To), "live": run.growing(),
		"index": object{"done": x.Done, "progress": x.Progress, "window": seconds(x.Window)}, "named": x.Named,
	}
	run.describe(o, x.Header.Nodes)
	return o, nil
}

func tables(ts []trace.Table) []trace.Table {
	if ts == nil {
		return []trace.Table{}
	}
	return ts
}

// keys answers with a list of keys.
func (s *Server) keys(r *request) (any, error) {
	_, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	sel, at := r.selection(), r.time("t", math.MaxInt64)
	offset, limit := r.part(1000, 100)
	if r.err != nil {
		return nil, r.err
	}
	keys, total, err := ix.Keys(r.Context(), sel, at, offset, limit)
	if err != nil {
		return nil, err
	}
	list, header := []object{}, ix.State().Header
	for _, k := range keys {
		o := totals(&k.Totals)
		name(o, int64(k.Key), k.Name, header.Tables)
		o["owner"], o["replicas"] = owner(k.Owner), some(k.Replicas)
		list = append(list, o)
	}
	return object{"total": total, "keys": list}, nil
}

// name adds what a key is called.
func name(o object, key int64, name string, tables []trace.Table) {
	o["key"], o["name"] = key, nil
	if name != "" {
		o["name"] = name
	}
	for _, t := range tables {
		if key >= int64(t.First) && uint64(key-int64(t.First)) < t.Rows {
			o["table"], o["row"] = t.Name, key-int64(t.First)
		}
	}
}

func totals(t *index.Totals) object {
	return object{"accesses": t.Accesses, "missed": t.Missed, "moves": t.Moves, "copies": t.Copies, "refreshes": t.Refreshes, "intents": t.Intents}
}

func owner(n int) any {
	if n < 0 || n == index.None {
		return nil
	}
	return n
}

func some[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// heat answers with the allocation over time.
func (s *Server) heat(r *request) (any, error) {
	_, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	sel := r.selection()
	x := index.Range{From: r.time("from", 0), To: r.time("to", math.MaxInt64), Cols: r.number("cols", 800, 1, 2000), Rows: r.number("rows", 600, 1, 2000)}
	x.Offset, x.Limit = r.part(mostKeys, 0)
	if r.err != nil {
		return nil, r.err
	}
	t, err := ix.Tile(r.Context(), sel, x)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 40+8*t.Rows+4*len(t.Owner))
	b = append(b, "GDH1"...)
	for _, n := range []int{t.Rows, t.Cols, t.Keys} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = float(float(b, seconds(t.From)), seconds(t.To))
	b = binary.LittleEndian.AppendUint32(b, uint32(t.PerRow))
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, k := range t.First {
		b = float(b, float64(k))
	}
	for _, cells := range [][]uint8{t.Owner, t.Agree, t.Replicas, t.Heat} {
		b = append(b, cells...)
	}
	return b, nil
}

func float(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// instant answers with the allocation at a time.
func (s *Server) instant(r *request) (any, error) {
	_, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	sel, at := r.selection(), r.time("t", ix.State().To)
	offset, limit := r.part(mostKeys, 0)
	if r.err != nil {
		return nil, r.err
	}
	x, err := ix.At(r.Context(), sel, at, offset, limit)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 24+len(x.Keys)*(10+x.Bitmap)), "GDI1"...)
	for _, n := range []int{len(x.Keys), x.Bitmap, x.Total} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = float(b, seconds(x.Time))
	for _, k := range x.Keys {
		b = float(b, float64(k))
	}
	b = append(append(append(b, x.Owner...), x.Heat...), x.Replicas...)
	return b, nil
}

// affinity answers what nodes had to do with keys.
func (s *Server) affinity(r *request) (any, error) {
	_, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	header := ix.State().Header
	sel, these := r.selection(), r.keyed("keys", header.Tables)
	if r.err != nil {
		return nil, r.err
	}
	a, err := ix.Affinity(r.Context(), sel, these)
	if err != nil {
		return nil, err
	}
	nodes, techniques := []object{}, []object{}
	for n, x := range a.Nodes {
		nodes = append(nodes, object{"id": n, "owned": x.Owned, "replicated": x.Replicated, "moves": x.Counts[index.Moves], "copies": x.Counts[index.Copies],
			"accesses": x.Counts[index.Accesses], "missed": x.Counts[index.Misses]})
	}
	for _, x := range a.Techniques {
		o := object{"accesses": x.Totals.Accesses, "moves": x.Totals.Moves, "copies": x.Totals.Copies, "replicated": x.Replicated, "technique": technique(&x.Totals)}
		name(o, int64(x.Key), x.Name, header.Tables)
		techniques = append(techniques, o)
	}
	return object{"keys": a.Keys, "nodes": nodes, "techniques": techniques}, nil
}

// technique says by what accesses to a key were made local.
func technique(t *index.Totals) string {
	switch {
	case t.Moves > 0 && t.Copies > 0:
		return "both"
	case t.Moves > 0:
		return "moves"
	case t.Copies > 0:
		return "replicates"
	}
	return "stays"
}

// seriesNames are what counts are called.
var seriesNames = [index.Tallied]string{index.Accesses: "accesses", index.Misses: "missed", index.Moves: "moves", index.Copies: "copies", index.Refreshes: "refreshes",
	index.Drops: "drops", index.Intents: "intents", index.Asks: "asks"}

// rates returns what a series counts as events per second.
func rates(counts []float64, s *index.Series) []float64 {
	r := make([]float64, len(counts))
	for i, n := range counts {
		from, to := s.Window(i)
		r[i] = n / seconds(to-from)
	}
	return r
}
