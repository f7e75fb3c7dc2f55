package wordvec

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit/internal/vec"
)

// Questions are analogies whose answers are known: a is to b as c is to d.
type Questions struct {
	Sections []Section // in the order of the file
}

// A Section is questions of a kind.
type Section struct {
	Name      string      // such as "capital-world"
	Questions [][4]string // a, b, c, and d, the answer
}

// Syntactic reports whether the section is about forms of words, not meanings:
// in questions-words.txt the names of these begin with "gram".
func (s *Section) Syntactic() bool { return strings.HasPrefix(s.Name, "gram") }

// ReadQuestions reads a file in the format of questions-words.txt: lines of
// four words, in sections that a line ": name" begins. lower puts words in lower
// case.
func ReadQuestions(path string, lower bool) (*Questions, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("wordvec: %w", err)
	}
	defer f.Close() // it is only read
	q, err := parseQuestions(f, lower)
	if err != nil {
		return nil, fmt.Errorf("wordvec: %s, %w", path, err)
	}
	return q, nil
}

func parseQuestions(r io.Reader, lower bool) (*Questions, error) {
	q, n := &Questions{}, 0
	lines := bufio.NewScanner(r)
	line := 0
	for lines.Scan() {
		line++
		s := strings.TrimPrefix(lines.Text(), "\ufeff")
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("line %d: not valid UTF-8", line)
		}
		if name, ok := strings.CutPrefix(s, ":"); ok {
			q.Sections = append(q.Sections, Section{Name: strings.TrimSpace(name)})
			continue
		}
		if lower {
			s = strings.ToLower(s)
		}
		words := strings.Fields(s)
		switch {
		case len(words) == 0:
			continue
		case len(words) != 4:
			return nil, fmt.Errorf("line %d: %d words, want four, as in \"Athens Greece Oslo Norway\", or \": name of a section\"", line, len(words))
		case len(q.Sections) == 0:
			q.Sections = append(q.Sections, Section{Name: "questions"})
		}
		last := &q.Sections[len(q.Sections)-1]
		last.Questions = append(last.Questions, [4]string(words))
		n++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	if n == 0 {
		return nil, fmt.Errorf("line %d: the file ends without a question", line+1)
	}
	return q, nil
}

// A Known question is one whose four words are known, by their numbers.
type Known struct {
	A, B, C, D int32 // A is to B as C is to D, the answer
	Section    int   // index into Questions.Sections
}

// Known returns the questions of which all words have a number below most.
func (q *Questions) Known(id func(word string) (int32, bool), most int) []Known {
	var all []Known
	for s := range q.Sections {
	questions:
		for _, words := range q.Sections[s].Questions {
			var ids [4]int32
			for i, w := range words {
				n, ok := id(w)
				if !ok || int(n) >= most {
					continue questions
				}
				ids[i] = n
			}
			all = append(all, Known{ids[0], ids[1], ids[2], ids[3], s})
		}
	}
	return all
}

// Answers are answered at a time: so many questions against so many vectors.
const (
	tileQuestions = 64
	tileVectors   = 1024
)

// Answer adds to right[s] the questions of section s that vectors answer
// correctly. vals holds normalized vectors of dim floats; the numbers of the
// questions are rows of it.
func Answer(vals []float32, dim int, questions []Known, right []int64) {
	rows := len(vals) / dim
	queries := make([]float32, tileQuestions*dim)
	scores := make([]float32, tileQuestions*min(tileVectors, rows))
	row := func(i int32) []float32 { return vals[int(i)*dim : (int(i)+1)*dim] }
	for len(questions) > 0 {
		n := min(tileQuestions, len(questions))
		type best struct {
			id    int
			score float32
		}
		var found [tileQuestions]best
		for i, k := range questions[:n] {
			q := queries[i*dim : (i+1)*dim]
			copy(q, row(k.B))
			vec.Sub(q, row(k.A))
			vec.Add(q, row(k.C))
			found[i] = best{-1, 0}
		}
		for from := 0; from < rows; from += tileVectors {
			m := min(tileVectors, rows-from)
			s := scores[:n*m]
			vec.MulABt(s, queries[:n*dim], vals[from*dim:(from+m)*dim], n, m, dim)
			for i, k := range questions[:n] {
				for j, x := range s[i*m : (i+1)*m] {
					if f := &found[i]; f.id < 0 || x > f.score {
						if id := int32(from + j); id != k.A && id != k.B && id != k.C {
							*f = best{from + j, x}
						}
					}
				}
			}
		}
		for i, k := range questions[:n] {
			if found[i].id == int(k.D) {
				right[k.Section]++
			}
		}
		questions = questions[n:]
	}
}

// A Score says how questions were answered.
type Score struct {
	Sections []SectionScore // as in Questions
}

// A SectionScore says how the questions of a section were answered.
type SectionScore struct {
	Name      string `json:"name"`      // of the section
	Syntactic bool   `json:"syntactic"` // as in Section
	Right     int64  `json:"right"`     // questions that were answered rightly
	Known     int64  `json:"known"`     // questions of which all words are known: the others were not asked
	Asked     int64  `json:"asked"`     // all
}

// Score puts together what Answer counted.
func (q *Questions) Score(known []Known, right []int64) Score {
	var s Score
	for i := range q.Sections {
		x := &q.Sections[i]
		s.Sections = append(s.Sections, SectionScore{Name: x.Name, Syntactic: x.Syntactic(), Right: right[i], Asked: int64(len(x.Questions))})
	}
	for _, k := range known {
		s.Sections[k.Section].Known++
	}
	return s
}

// Sum adds up sections: all, or those that are syntactic, or those that are not.
func (s Score) Sum(name string, which func(SectionScore) bool) SectionScore {
	sum := SectionScore{Name: name}
	for _, x := range s.Sections {
		if which(x) {
			sum.Right += x.Right
			sum.Known += x.Known
			sum.Asked += x.Asked
		}
	}
	return sum
}

// All has [Score.Sum] add up all sections.
func All(SectionScore) bool { return true }

// Syntactic has [Score.Sum] add up the sections about forms of words.
func Syntactic(s SectionScore) bool { return s.Syntactic }

// Semantic has [Score.Sum] add up the sections about meanings.
func Semantic(s SectionScore) bool { return !s.Syntactic }

// Accuracy is the share of right answers among the known questions, 0 if there
// are none.
func (s SectionScore) Accuracy() float64 {
	if s.Known == 0 {
		return 0
	}
	return float64(s.Right) / float64(s.Known)
}
