package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/job/cli"
)

// smallText are the flags of a run that makes word vectors in a second or two.
var smallText = []string{"train", "w2v", "--stems", "12", "--forms", "3", "--words", "40000", "--dim", "20", "--epochs", "4", "--batch", "100", "--untrained=false"}

// within runs a command that starts no processes, within this one.
func within(t *testing.T, args ...string) (code int, stdout, failure string) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.Execute()
	if err != nil {
		failure = err.Error()
	}
	return cli.ExitCode(err), out.String(), failure
}

func TestARuleOfWordVectorsHasARateThatSuitsIt(t *testing.T) {
	t.Parallel()
	for flags, says := range map[string]string{
		"":                   `"Rule":"rowadagrad","LR":0.2,`,
		"--rule sgd":         `"Rule":"sgd","LR":0.025,`,
		"--rule sgd --lr .1": `"Rule":"sgd","LR":0.1,`,
		"--rule adagrad":     `"Rule":"adagrad","LR":0.15,`,
	} {
		args := append(slices.Clone(smallText), "--words", "24000", "--epochs", "1", "--json")
		if code, out, errs := run(t, append(args, strings.Fields(flags)...)...); code != cli.OK || !strings.Contains(out, says) {
			t.Errorf("w2v %s: exit code %d, want 0, and %s:\n%s%s", flags, code, says, out, errs)
		}
	}
}

// The steps of adam are about as long as its rate, and do not fall with the gradients.
func TestAdamHasARateOfItsOwnUnlessOneIsGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags string
		code  int
		says  string
	}{
		{"", cli.OK, `"LR":0.01,"LastLR":1,`},
		{"--lr 0.02 --last-lr 1", cli.OK, `"LR":0.02,"LastLR":1,`},
		{"--last-lr 0.5", cli.WrongUsage, "--last-lr 0.5: want 1 with the rule adam"},
	} {
		args := append(slices.Clone(smallText), "--words", "24000", "--epochs", "1", "--json", "--rule", "adam")
		code, out, errs := run(t, append(args, strings.Fields(c.flags)...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("adam %s: exit code %d, want %d, and %s:\n%s%s", c.flags, code, c.code, c.says, out, errs)
		}
	}
}

func TestVectorsThatAreNotThereAreSaidToBeMissing(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for _, args := range [][]string{{"nearest", nowhere, "king"}, {"analogy", nowhere, "man", "king", "woman"}} {
		code, _, failure := within(t, args...)
		if code != cli.Failure || !strings.Contains(failure, nowhere+": no such file") || strings.Contains(failure, "ending") {
			t.Errorf("%s: exit code %d, %s", args[0], code, failure)
		}
	}
}

func TestWordVectorsAreTrainedExportedAndAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vectors := filepath.Join(dir, "vectors")
	p := start(t, append(smallText, "--nodes", "2", "--json", "--export", vectors)...)
	p.until("start", isStart)
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	if a := r.Test.At("analogies"); !(a > 0.3) {
		t.Errorf("%v of the analogies are answered right, want more than 0.3", a)
	}
	words, err := os.ReadFile(filepath.Join(vectors, "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var stem string // with its forms
	known := map[string]bool{}
	for _, w := range strings.Fields(string(words)) {
		known[w] = true
	}
	for w := range known {
		if known[w+"s"] && known[w+"ed"] {
			stem = w
		}
	}

	code, out, errs := within(t, "nearest", vectors, stem, stem+"ed", "--top", "3")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != 8 || lines[0] != stem || !strings.HasPrefix(lines[1], "  0.") {
		t.Errorf("nearest exits with %d:\n%s%s", code, out, errs)
	}
	code, out, errs = within(t, "analogy", filepath.Join(vectors, "vectors.txt"), stem, stem+"s", stem+"ed", "--json", "--top", "2")
	var answer near
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || len(answer.Nearest) != 2 || len(answer.Of) != 3 {
		t.Errorf("analogy exits with %d, %v:\n%s%s", code, err, out, errs)
	}

	questions := filepath.Join(dir, "questions.txt")
	text := ": gram1-first\n" + stem + " " + stem + "s " + stem + "ed " + strings.ToUpper(stem) + "\n: second\na b c unknownword\n"
	if err := os.WriteFile(questions, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, errs = within(t, "analogy", filepath.Join(vectors, "words.npy"), "--questions", questions)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != 6 || !strings.Contains(lines[1], "gram1-first") || !strings.Contains(lines[2], "-") {
		t.Errorf("analogy exits with %d:\n%s%s", code, out, errs)
	}

	for _, x := range []struct {
		code int
		want string
		args []string
	}{
		{cli.Failure, `"Nothing"`, []string{"nearest", vectors, "Nothing"}},
		{cli.Failure, `"` + stem + `" is`, []string{"nearest", vectors, strings.ToUpper(stem)}},
		{cli.Failure, "none of", []string{"nearest", dir, stem}},
		{cli.Failure, "nowhere.bin", []string{"analogy", filepath.Join(dir, "nowhere.bin"), "a", "b", "c"}},
		{cli.Failure, "nothing.txt", []string{"analogy", vectors, "--questions", "nothing.txt"}},
		{cli.WrongUsage, "--top", []string{"nearest", vectors, stem, "--top", "0"}},
		{cli.WrongUsage, "A B C", []string{"analogy", vectors, stem}},
		{cli.WrongUsage, "alone", []string{"analogy", vectors, stem, stem, stem, "--questions", questions}},
		{cli.Failure, "none.txt", []string{"train", "w2v", "--data", "none.txt"}},
		{cli.Failure, "nothing.txt", []string{"train", "w2v", "--questions", "nothing.txt"}},
		{cli.WrongUsage, "csv", []string{"train", "w2v", "--format", "csv"}},
	} {
		ask := within
		if x.args[0] == "train" { // whose flags would stay in the settings of this process
			ask = run
		}
		code, _, err := ask(t, x.args...)
		if code != x.code || !strings.Contains(err, x.want) {
			t.Errorf("%v: exit code %d, want %d, and to hear of %s: %s", x.args, code, x.code, x.want, err)
		}
	}
}
