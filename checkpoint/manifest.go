package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godwit-ps/godwit"
)

// Formats of checkpoints. A change that old readers would misunderstand gets a new number; added fields that
// they can ignore do not. Checkpoints with all rows are still written in the first format. Readers of that one
// would take the changes of an incremental checkpoint for all of its rows, hence the second one.
const (
	Format            = 1 // all rows are in the checkpoint's own parts
	FormatIncremental = 2 // rows are also in the parts of earlier checkpoints
)

// A Manifest describes a checkpoint. docs/file-formats.md describes it for people.
type Manifest struct {
	// Format is the version of the checkpoint, [Format] or [FormatIncremental].
	Format int `json:"format"`
	ID
	// Run, Task and Program are the name of the run, what it trains, and the version of the program.
	Run     string `json:"run"`
	Task    string `json:"task"`              // see above
	Program string `json:"program,omitempty"` // see above
	// Written is the time, to the second.
	Written time.Time `json:"written"`
	// Epochs is how many epochs were complete.
	Epochs int `json:"epochs"`
	// Nodes is the number of nodes that wrote the checkpoint.
	Nodes int `json:"nodes"`
	// Seed is that of the run: together with the initializers of the tables it says what the
	// rows are that were not written.
	Seed uint64 `json:"seed"`
	// Tables are those of the model, in their order.
	Tables []Table `json:"tables"`
	// Score is how good the model is, nil where it was not evaluated since it changed.
	Score *Score `json:"score,omitempty"`
	// BuildsOn are the parts of earlier checkpoints that an incremental one builds on, the oldest first, which has all rows. The
	// checkpoint's own parts have the rows that changed since the last of them. It is empty if the own parts have all rows.
	BuildsOn []Layer `json:"builds_on,omitempty"`
	// Resumed is what the run went on from, nil if from nothing at this place, or if an older program wrote the checkpoint.
	Resumed *Resumed `json:"resumed,omitempty"`
	Contents
}

// A Resumed says where a run went on. Those between the two are of a course that was given up then: how good they were says nothing of
// this one.
type Resumed struct {
	From uint64 `json:"from"` // the number of the checkpoint that the run resumed
	Next uint64 `json:"next"` // the first number that it could write
}

// A Layer is the rows of a checkpoint as a later one names them.
type Layer struct {
	ID
	Parts  []Part `json:"parts"`  // the objects with rows
	Rows   uint64 `json:"rows"`   // in the parts
	Digest Digest `json:"digest"` // of these rows
}

// Layers returns all parts that have rows of the checkpoint: those that it builds on, the oldest first, and then its own. A
// row is as in the last layer that has it. A later checkpoint builds on these.
func (m *Manifest) Layers() []Layer {
	return append(slices.Clip(m.BuildsOn), Layer{m.ID, m.Parts, m.Rows, m.Digest})
}

// ReadBytes is the size of all objects that are read to restore the checkpoint; Bytes is that of its own ones.
func (m *Manifest) ReadBytes() int64 {
	n := m.Bytes()
	for i := range m.BuildsOn {
		n += m.BuildsOn[i].bytes()
	}
	return n
}

func (l *Layer) bytes() (n int64) {
	for _, p := range l.Parts {
		n += p.Bytes
	}
	return n
}

// An incremental checkpoint is written if what it builds on has at most mostLayers layers, and
// at most 1 + 1/growth times the bytes of the oldest one, which has all rows.
const (
	mostLayers = 32
	growth     = 2
)

// Incremental reports whether the checkpoint after last is to have only the rows that changed since; nil: there is none, so it
// is to have all. If the attempt to write one fails, whoever keeps track of changes decides whether it still knows them.
func Incremental(last *Manifest) bool {
	if last == nil {
		return false
	}
	layers := last.Layers()
	var changes int64
	for i := range layers[1:] {
		changes += layers[1+i].bytes()
	}
	return len(layers) <= mostLayers && changes <= layers[0].bytes()/growth
}

// A Table is one table of the model.
type Table struct {
	Name string `json:"name"` // unique in the model
	Rows uint64 `json:"rows"` // of the table, written or not
	Dim  int    `json:"dim"`  // the floats of a value
	// Width is the floats of a row: its value, then the state of its update rule.
	Width int    `json:"width"`
	Rule  string `json:"rule"` // by its name, with its parameters
	Init  string `json:"init"` // says what rows are that were not written
}

// String describes a table for people.
func (t Table) String() string {
	return fmt.Sprintf("%q: %d rows of %d floats and %d of state, rule %s, first values %s", t.Name, t.Rows, t.Dim, t.Width-t.Dim, t.Rule, t.Init)
}

// Tables describes the tables of a model.
func Tables(m *godwit.Model) []Table {
	tables := make([]Table, m.Tables())
	for i := range tables {
		t := m.Table(i)
		tables[i] = Table{t.Name, t.Rows, t.Dim, m.TableRowLen(i), t.Rule.Name(), t.Init.Name()}
	}
	return tables
}

// CheckTables returns an error if a model of so many tables fits in no checkpoint, so that who is to write checkpoints of it can say so before it trains.
func CheckTables(n int) error {
	if err := checkTables(n); err != nil {
		return fmt.Errorf("checkpoint: no checkpoint can hold the model: it has %w", err)
	}
	return nil
}

func checkTables(n int) error {
	if n < 1 || n > maxTables {
		return fmt.Errorf("%d tables, want 1 … %d", n, maxTables)
	}
	return nil
}

// A Score is a figure by which checkpoints of a run are compared.
type Score struct {
	Name          string  `json:"name"`                      // such as "valid MRR"
	Value         float64 `json:"value"`                     // of the figure
	LowerIsBetter bool    `json:"lower_is_better,omitempty"` // as of an error
}

// better reports whether a score is better than another one.
func (a *Score) better(b *Score) bool {
	if a.LowerIsBetter {
		return a.Value < b.Value
	}
	return a.Value > b.Value
}

// Contents are what objects hold: those of a node, or of a whole checkpoint.
type Contents struct {
	Parts    []Part    `json:"parts"`    // the objects with rows
	Sections []Section `json:"sections"` // those with all else
	Rows     uint64    `json:"rows"`     // in the parts
	Digest   Digest    `json:"digest"`   // of these rows
}

// Bytes is the size of all objects together.
func (c *Contents) Bytes() (n int64) {
	for _, p := range c.Parts {
		n += p.Bytes
	}
	for _, s := range c.Sections {
		n += s.Bytes
	}
	return n
}

// A Piece is what one node wrote of a checkpoint. It goes to the leader as JSON.
type Piece struct{ Contents }

// A Part is an object with rows.
type Part struct {
	Name   string `json:"name"`   // of the object
	Bytes  int64  `json:"bytes"`  // of the object
	Blocks int    `json:"blocks"` // entries of its index
	Rows   uint64 `json:"rows"`   // in all blocks together
	// Index is the SHA-256 of the part's index, in lower-case hexadecimal. The index has that of each block.
	Index string `json:"index_sha256"`
}

// fits reports whether a part of the size has room for its blocks. Their number may be any: no product is taken of it.
func (p *Part) fits() bool {
	const ends = headerBytes + footerBytes
	return p.Blocks >= 0 && p.Bytes >= ends && int64(p.Blocks) <= (p.Bytes-ends)/entryBytes
}

// A Section is an object with other state of the run.
type Section struct {
	Name   string `json:"name"`   // what its writer calls it
	Object string `json:"object"` // that holds it
	Bytes  int64  `json:"bytes"`  // of the object
	SHA256 string `json:"sha256"` // in lower-case hexadecimal
}

// Bounds of a manifest, which may come from anywhere.
const (
	maxManifest    = 64 << 20 // bytes
	maxTables      = 1 << 12
	maxParts       = 1 << 16 // with those of the layers that it builds on
	maxLayers      = 1 << 10
	maxSections    = 1 << 18
	maxSectionName = 1 << 10
	maxRowFloats   = 1 << 26
)

// seal is the second line of a manifest.
type seal struct {
	SHA256 string `json:"sha256"` // of the first line, without its end
}

// encode returns the manifest as its file holds it: a line with the manifest, and a line with its checksum.
func (m *Manifest) encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("checkpoint: the manifest is wrong: %w", err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	s, err := sealed(b)
	if err != nil {
		return nil, err
	}
	return append(append(append(b, '\n'), s...), '\n'), nil
}

// sealed is the second line of a manifest whose first is b.
func sealed(b []byte) ([]byte, error) { return json.Marshal(seal{sum(b)}) }

// sum is the SHA-256 of bytes as the formats write it.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func decodeManifest(b []byte) (*Manifest, error) {
	line, rest, ok := bytes.Cut(b, []byte{'\n'})
	last, tail, ended := bytes.Cut(rest, []byte{'\n'})
	var s seal
	switch {
	case !ok || !ended || len(tail) > 0:
		return nil, errors.New("it is cut short, or no manifest: want two lines")
	case json.Unmarshal(last, &s) != nil || s.SHA256 == "":
		return nil, errors.New("its second line has no checksum")
	case s.SHA256 != sum(line):
		return nil, errors.New("its checksum is wrong: it was changed, or copied in part")
	}
	if want, err := sealed(line); err != nil || !bytes.Equal(last, want) {
		return nil, errors.New("its second line was changed")
	}
	var version struct {
		Format  int    `json:"format"`
		Program string `json:"program"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	if version.Format < Format || version.Format > FormatIncremental {
		return nil, fmt.Errorf("format %d of checkpoints, and this version of godwit reads %d … %d: use the version that wrote it, %.100q", version.Format, Format, FormatIncremental, version.Program)
	}
	var m Manifest
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	return &m, nil
}

// check returns an error for what a manifest cannot have. Sizes are not compared with
// those of objects.
func (m *Manifest) check() error {
	switch {
	case m.Format != formatOf(m.BuildsOn):
		return fmt.Errorf("format %d, want %d of a checkpoint that builds on %d", m.Format, formatOf(m.BuildsOn), len(m.BuildsOn))
	case m.Number < 1 || m.Number > maxNumber:
		return fmt.Errorf("number %d, want 1 … %d", m.Number, uint64(maxNumber))
	case !isAttempt(m.Attempt):
		return fmt.Errorf("%q is no attempt", m.Attempt)
	case m.Nodes < 1 || m.Nodes > godwit.MaxNodes:
		return fmt.Errorf("%d nodes, want 1 … %d", m.Nodes, godwit.MaxNodes)
	case m.Epochs < 0:
		return fmt.Errorf("%d epochs", m.Epochs)
	case len(m.BuildsOn) > maxLayers || m.parts() > maxParts || len(m.Sections) > maxSections:
		return fmt.Errorf("%d parts and %d sections, and it builds on %d checkpoints; at most %d, %d and %d are possible",
			m.parts(), len(m.Sections), len(m.BuildsOn), maxParts, maxSections, maxLayers)
	case m.Resumed != nil && (m.Resumed.From < 1 || m.Resumed.From >= m.Resumed.Next || m.Resumed.Next > m.Number):
		return fmt.Errorf("checkpoint %d of a run that resumed %d and went on with %d", m.Number, m.Resumed.From, m.Resumed.Next)
	case m.Score != nil && (math.IsNaN(m.Score.Value) || math.IsInf(m.Score.Value, 0)):
		return fmt.Errorf("score %v", m.Score.Value)
	}
	if err := checkTables(len(m.Tables)); err != nil {
		return err
	}
	for _, text := range []string{m.Run, m.Task, m.Program} {
		if !utf8.ValidString(text) {
			return notUTF8("the name of its run, task or program", text)
		}
	}
	names := map[string]bool{}
	for _, t := range m.Tables {
		for _, text := range []string{t.Name, t.Rule, t.Init} {
			if !utf8.ValidString(text) {
				return notUTF8("the name of a table, of its rule or of its first values", text)
			}
		}
		if t.Name == "" || names[t.Name] || t.Rows < 1 || t.Rows > 1<<48 || t.Dim < 1 || t.Width < t.Dim || t.Width > maxRowFloats {
			return fmt.Errorf("table %q with %d rows of %d floats, %d with state, or a second one of the name", t.Name, t.Rows, t.Dim, t.Width)
		}
		names[t.Name] = true
	}
	return m.checkContents()
}

// notUTF8 is the error of a text that would be another one when it is read.
func notUTF8(what, text string) error { return fmt.Errorf("%s, %.100q, is not UTF-8", what, text) }

// formatOf is the format of a checkpoint that builds on layers.
func formatOf(layers []Layer) int {
	if len(layers) == 0 {
		return Format
	}
	return FormatIncremental
}

// parts is the number of all parts that have rows of the checkpoint.
func (m *Manifest) parts() (n int) {
	for _, l := range m.Layers() {
		n += len(l.Parts)
	}
	return n
}

// check returns an error for what a layer cannot have.
func (l *Layer) check() error {
	objects := map[string]bool{}
	var rows uint64
	for _, p := range l.Parts {
		if !l.owns(p.Name) || !strings.HasSuffix(p.Name, ".rows") || objects[p.Name] {
			return fmt.Errorf("%q is no part of checkpoint %d, or named twice", p.Name, l.Number)
		}
		if !p.fits() || !isSum(p.Index) {
			return fmt.Errorf("part %s: %d bytes, %d blocks, checksum %q", p.Name, p.Bytes, p.Blocks, p.Index)
		}
		objects[p.Name] = true
		rows += p.Rows
	}
	if rows != l.Rows {
		return fmt.Errorf("%d rows, and the parts of checkpoint %d have %d", l.Rows, l.Number, rows)
	}
	return nil
}

func (m *Manifest) checkContents() error {
	former := uint64(0)
	for _, l := range m.Layers() {
		if l.Number <= former {
			return fmt.Errorf("checkpoint %d builds on %d", l.Number, former)
		}
		if err := l.check(); err != nil {
			return err
		}
		former = l.Number
	}
	objects, names := map[string]bool{}, map[string]bool{}
	for _, s := range m.Sections {
		if !m.owns(s.Object) || !strings.HasSuffix(s.Object, ".section") || objects[s.Object] {
			return fmt.Errorf("%q is no section of this checkpoint, or named twice", s.Object)
		}
		if !isSectionName(s.Name) || names[s.Name] || s.Bytes < 0 || !isSum(s.SHA256) {
			return fmt.Errorf("section %.100q: %d bytes, checksum %q, or named twice", s.Name, s.Bytes, s.SHA256)
		}
		objects[s.Object], names[s.Name] = true, true
	}
	return nil
}

func isSectionName(s string) bool {
	return s != "" && len(s) <= maxSectionName && utf8.ValidString(s)
}

func isSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == s
}
