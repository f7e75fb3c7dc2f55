package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/job/cli"
)

// inputFiles are files of users, by name: most of them are wrong.
func inputFiles(t *testing.T) (dir string) {
	dir = t.TempDir()
	graph := func(first string) string {
		var b strings.Builder
		b.WriteString(first)
		for i := range 120 {
			fmt.Fprintf(&b, "a%d\tknows\ta%d\n", i%11, (i*i+i+1)%13)
		}
		return b.String()
	}
	some := "a1\tknows\ta3\na2\tknows\ta7\n"
	files := map[string]string{
		"titles/train.txt": graph("head\trelation\ttail\n"), "titles/valid.txt": some, "titles/test.txt": some,
		"spalten/train.txt": graph("Kopf\tArt\tEnde\n"), "spalten/valid.txt": "Kopf\tArt\tEnde\n" + some, "spalten/test.txt": some,
		"odd/train.txt": graph("Kopf\tArt\tEnde\n"), "odd/valid.txt": some, "odd/test.txt": some,
		"unseen/train.txt": graph(""), "unseen/valid.txt": "", "unseen/test.txt": "a1\tknows\tzebra\na0\tlikes\ta1\n",
		"onefile/train.txt": graph(""),
		"linear.txt":        "1 1:1\n0 2:1\n1 2=1\n",
		"kinds.txt":         strings.Repeat("1 1:1\n2 2:1\n3 1:1 2:1\n", 20),
		"amounts.txt":       strings.Repeat("1.5 1:1\n2 2:1\n3 1:1 2:1\n", 20),
		"oneclass.txt":      strings.Repeat("1 1:1 3:1\n", 40),
		"heldout.txt":       strings.Repeat("1 1:1\n"+strings.Repeat("1 1:1\n-1 2:1\n-1 3:1\n", 3), 4),
		"farnumbers.txt":    strings.Repeat("1 1:1\n-1 4294967294:1\n1 1:1 2:1\n", 10),
		"matrix.csv":        "user,item,rating\n1,1,5\n1,2\n",
		"short.txt":         "hardly a word\n",
		"empty/notes.md":    "nothing to train\n",
	}
	var wide, first strings.Builder
	for i := range 120 {
		fmt.Fprintf(&wide, "%d,\"town, %d\",lies in,\"land \"\"%d\"\"\"\n", i, i%30, i%7)
		fmt.Fprintf(&first, "knows\ta%d\ta%d\n", i/11, i%11)
	}
	files["wide.csv"], files["first.tsv"] = wide.String(), first.String()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprint(w, graph(""))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files["cut/train.txt.gz"] = z.String()[:z.Len()/2]
	files["cut/valid.txt"], files["cut/test.txt"] = some, some
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Every input that a command cannot use has an exit code and words that name it; what
// can be used and is doubtful, a warning.
func TestInputsHaveAnExitCodeAndWords(t *testing.T) {
	t.Parallel()
	dir := inputFiles(t)
	quick := " --epochs 1 --dim 4 --batch 8 --negatives 4"
	for _, c := range []struct {
		args string // in the folder of the files
		code int
		says string
	}{
		// The command line.
		{"tarin", cli.WrongUsage, "tarin"},
		{"explain --run x", cli.WrongUsage, "Usage: godwit explain KEY|NAME --run RUN"},
		{"predict", cli.WrongUsage, "Usage: godwit predict MODEL [FILE]"},
		{"train --epochs 3", cli.WrongUsage, "want the task before the flags, as in 'godwit train kge --epochs"},
		{"train --resume=", cli.WrongUsage, "--resume"},
		{"train kge --data=", cli.WrongUsage, "--data is empty"},
		{"train mf --export=", cli.WrongUsage, "--export is empty"},
		{"train w2v --checkpoint= --resume=", cli.WrongUsage, "--checkpoint is empty"},
		{"train kge --nodes 2 --etcd=", cli.WrongUsage, "--etcd is empty"},
		{"train kge --nodes 2 --tls-cert= --tls-key= --tls-ca=", cli.WrongUsage, "--tls-cert is empty"},
		{"node --etcd 127.0.0.1:1 --run=", cli.WrongUsage, "--run is empty"},
		{"train kge --nodes 2 --listen 127.0.0.1", cli.WrongUsage, `--listen "127.0.0.1": want host:port`},
		{"train kge --nodes 2 --await --listen 0.0.0.0:0", cli.WrongUsage, `--listen "0.0.0.0:0": want one address, or beside all of them`},
		{"train kge --nodes 2 --listen ::1:0", cli.WrongUsage, `--listen "::1:0": want host:port, such as`},
		{"train kge --nodes 2 --listen 127.0.0.1:99999", cli.WrongUsage, "the port is no number"},
		{"train kge --nodes 2 --advertise a:b:c", cli.WrongUsage, `--advertise "a:b:c": want a host, or host:port`},
		{"node --etcd 127.0.0.1:1 --run x --advertise [::1", cli.WrongUsage, `--advertise "[::1": want a host, or host:port`},
		{"train kge --data onefile --export s3://models/kge" + quick, cli.Failure, "want a folder of this machine"},
		{"train kge --data onefile --plot onefile/train.txt" + quick, cli.Failure, "it holds something else"},
		{"help tarin", cli.WrongUsage, `no command "godwit tarin"`},
		{"help train tarin", cli.WrongUsage, `no command "godwit train tarin"`},
		{"train kge graph", cli.WrongUsage, "graph"},
		{"train kge --epoch 3", cli.WrongUsage, "unknown flag: --epoch"},
		{"train kge --epochs many", cli.WrongUsage, "--epochs"},
		{"node --run x", cli.WrongUsage, "--etcd and --run"},

		// Values of flags.
		{"train kge --epochs 0", cli.WrongUsage, "--epochs 0: want at least 1"},
		{"train kge --eval-every -1", cli.WrongUsage, "--eval-every -1"},
		{"train kge --patience 2", cli.WrongUsage, "--patience 2: want evaluations to count"},
		{"train kge --nodes 0", cli.WrongUsage, "--nodes 0: want 1"},
		{"train kge --ttl 1000000h", cli.WrongUsage, "want 1s … 24h"},
		{"train kge --ttl 1ms", cli.WrongUsage, "want 1s … 24h"},
		{"train kge --policy clever", cli.WrongUsage, "there are adapm, adaptive"},
		{"train kge --policies static,nonuniform(factor=50,best=1)", cli.WrongUsage, "it has no parameter best"},
		{"train kge --model conve", cli.WrongUsage, "conve"},
		{"train kge --dim 0", cli.WrongUsage, "--dim 0: want 1 … 16384 floats"},
		{"train kge --dim NaN", cli.WrongUsage, "NaN"},
		{"train kge --lr NaN", cli.WrongUsage, "--lr NaN: want a positive learning rate, or 0"},
		{"train kge --rule nope", cli.WrongUsage, "--rule nope: want one of adagrad"},
		{"train kge --sampling random", cli.WrongUsage, "random"},
		{"train linear --solver newton", cli.WrongUsage, "stochastic and blocks"},
		{"train linear --solver blocks --factors 2", cli.WrongUsage, "no factors"},
		{"train linear --rule sgd", cli.WrongUsage, "ftrl or adagrad"},
		{"train linear --blocks -1", cli.WrongUsage, "--blocks -1"},
		{"train linear --hash 99", cli.WrongUsage, "--hash 99"},
		{"train linear --min-count 0", cli.WrongUsage, "--min-count 0"},
		{"train linear --min-count 256", cli.WrongUsage, "255"},
		{"train linear --hold-test 1", cli.WrongUsage, "--hold-test 1: want 0 (hold out none) or 2 and more"},
		{"train mf --rule adagrad --bold-driver", cli.WrongUsage, "--bold-driver true: want false with"},
		{"train mf --order rows", cli.WrongUsage, "plain, columns, blocks"},
		{"train lda --topics 1", cli.WrongUsage, "--topics 1"},
		{"train lda --hold 1", cli.WrongUsage, "--hold 1"},
		{"train lda --skip -1", cli.WrongUsage, "--skip -1"},
		{"train sketch --depth 0", cli.WrongUsage, "--depth 0: want 1 … 32"},

		// Of generated data.
		{"train kge --entities 3", cli.WrongUsage, "--entities 3: want 50 … 16777216"},
		{"train kge --triples 10", cli.WrongUsage, "--triples 10: want 15000 (five for each entity)"},
		{"train kge --zipf -1", cli.WrongUsage, "--zipf -1: want 0 … 2"},
		{"train mf --rows 0", cli.WrongUsage, "--rows 0"},
		{"train mf --cells 7", cli.WrongUsage, "--cells 7"},
		{"train lda --words 1", cli.WrongUsage, "--words 1: want 2 … 1048576"},
		{"train w2v --stems 1", cli.WrongUsage, "--stems 1"},
		{"train linear --examples 0", cli.WrongUsage, "--examples 0"},
		{"train linear --per-example 0", cli.WrongUsage, "--per-example 0"},
		{"train sketch --distinct 0", cli.WrongUsage, "--distinct 0"},

		// What is no value of its flag.
		{"train kge --nodes four", cli.WrongUsage, `--nodes "four": want a whole number` + "\n"},
		{"train kge -n 99999999999999999999", cli.WrongUsage, `--nodes "99999999999999999999": want a number nearer to 0`},
		{"train kge -n -99999999999999999999", cli.WrongUsage, `--nodes "-99999999999999999999": want a number nearer to 0`},
		{"train kge --seed -1", cli.WrongUsage, `--seed "-1": want a whole number, 0 or more`},
		{"train kge --lr fast", cli.WrongUsage, `--lr "fast": want a number`},
		{"train kge --ttl 10", cli.WrongUsage, `--ttl "10": want a time with its unit, such as 10s or 5m`},
		{"train kge --json=yes", cli.WrongUsage, `--json "yes": want true or false`},

		// Flags that have no effect, or not together.
		{"train kge --await", cli.WrongUsage, "--nodes"},
		{"train kge --policies all --profile x", cli.WrongUsage, "--profile"},
		{"train kge --policies static,relocate --data /dev/stdin", cli.WrongUsage, "/dev/stdin can be read only once: write them to a file, or choose one policy"},
		{"train kge --policies static,relocate --data /dev/null", cli.WrongUsage, "/dev/null can be read only once"},
		{"train kge --tls-cert cert.pem", cli.WrongUsage, "go together"},
		{"train kge --tls-cert a --tls-key b --tls-ca c", cli.WrongUsage, "--tls-cert has no effect: one node has no connections"},
		{"train kge --listen 127.0.0.1:0", cli.WrongUsage, "--listen has no effect"},
		{"train kge --advertise somewhere", cli.WrongUsage, "--advertise has no effect"},
		{"train kge --etcd 127.0.0.1:1", cli.WrongUsage, "--etcd has no effect"},
		{"train kge --nodes 2 --etcd 127.0.0.1:1 --etcd-listen 127.0.0.1:0", cli.WrongUsage, "--etcd-listen has no effect"},

		{"train kge --data onefile --entities 500", cli.WrongUsage, "--entities has no effect: it describes generated data"},
		{"train kge --header no", cli.WrongUsage, "--header has no effect: it says how data are read"},
		{"train kge --data titles --split 0.8,0.1,0.1", cli.WrongUsage, "titles has files of its own to validate or to test on; leave it out"},
		{"train mf --data matrix.csv --rank 3", cli.WrongUsage, "--rank has no effect"},
		{"train linear --solver blocks --lr 0.3", cli.WrongUsage, "--lr has no effect: it is for the solver stochastic; leave it out"},

		{"train kge --policy static --policies static,relocate", cli.WrongUsage, "--policy has no effect: --policies says"},
		{"train kge --filters s2", cli.WrongUsage, "--filters has no effect: one node sends nothing"},
		{"train kge --keep 2", cli.WrongUsage, "--keep has no effect: there are no checkpoints"},
		{"train kge --nodes 2 --restarts 2", cli.WrongUsage, "--restarts has no effect: a run goes on from its checkpoints"},
		{"train kge --checkpoint c --restarts 2", cli.WrongUsage, "--restarts has no effect: one node"},
		{"train kge --checkpoint c --nodes 2 --await --restarts 2", cli.WrongUsage, "--restarts has no effect: with --await"},

		// Data.
		{"train kge --data nowhere", cli.Failure, "nowhere"},
		{"train kge --data empty", cli.Failure, "no train.txt in"},
		{"train kge --data wide.csv", cli.Failure, "wide.csv:1: 4 fields separated by commas, want 3: head, relation, tail; if the others are not needed, say which columns are which (--columns"},
		{"train kge --data first.tsv", cli.Failure, "the columns seem to be relation,head,tail"},
		{"train kge --split 0.5,0.1", cli.WrongUsage, "--split [0.5 0.1]: want three shares"},
		{"train kge --split some", cli.WrongUsage, "such as 0.8,0.1,0.1"},
		{"train kge --columns head,tail", cli.WrongUsage, `--columns "head,tail": want head, relation and tail once each`},
		{"train kge --header maybe", cli.WrongUsage, `--header "maybe": want auto, yes or no`},
		{"train kge --data spalten", cli.Failure, `train.txt:1: "Kopf", "Art" and "Ende"`},
		{"train kge --data cut", cli.Failure, "train.txt.gz:"},
		{"train kge --data cut", cli.Failure, "is the file truncated?"},
		{"train linear --data nowhere", cli.Failure, "nowhere"},
		{"train linear --data linear.txt", cli.Failure, "linear.txt:3"},
		{"train linear --data empty", cli.Failure, "notes.md:1"},
		{"train linear --data kinds.txt", cli.Failure, `kinds.txt:3: label "3" is the third one, and all are whole numbers: say whether they are classes (--target classes) or values (--target values)`},
		{"train linear --data kinds.txt --target kinds", cli.WrongUsage, `target "kinds", want auto, classes or values`},
		{"train linear --data kinds.txt --target classes --epochs 1", cli.OK, "macro F1"},
		{"train linear --data kinds.txt --target values --epochs 1", cli.OK, "RMSE"},
		{"train linear --data amounts.txt --epochs 1", cli.OK, "RMSE"},
		{"train linear --data amounts.txt --solver blocks", cli.Failure, "blocks train two classes, and the labels are values"},
		{"train linear --data oneclass.txt", cli.Failure, "the same label: there is nothing to tell apart"},
		{"train linear --examples 90 --min-count 100", cli.Failure, "stands in 100 of"},
		{"train kge --nodes 2 --data /dev/stdin" + quick, cli.Failure, "/dev/stdin can be read only once"},
		{"train kge --nodes 2 --data /dev/null" + quick, cli.Failure, "/dev/null can be read only once"},
		{"train mf --data nowhere", cli.Failure, "nowhere"},
		{"train mf --data matrix.csv", cli.Failure, "matrix.csv:3"},
		{"train mf --data empty --split u1", cli.Failure, "no u1.base"},
		{"train lda --data nowhere", cli.Failure, "nowhere"},
		{"train lda --data short.txt", cli.Failure, "short.txt"},
		{"train sketch --data nowhere", cli.Failure, "nowhere"},

		// What users have.
		{"train kge --data onefile" + quick, cli.OK, "7 to validate, 7 to test"},
		{"train kge --data onefile/train.txt" + quick, cli.OK, "7 to validate, 7 to test"},
		{"train kge --data onefile --split 1,0,0" + quick, cli.OK, "warning: no fact is held out"},
		{"train kge --data titles" + quick, cli.OK, `warning: the first line names the columns and is no fact: train.txt: "head" "relation" "tail"`},
		{"train kge --data spalten --header yes" + quick, cli.OK, "120 triples to train"},
		{"train kge --data wide.csv --columns -,head,relation,tail" + quick, cli.OK, "triples to train"},
		{"train kge --data first.tsv --columns relation,head,tail --split 0.5,0.25,0.25" + quick, cli.OK, "60 triples to train, 30 to validate, 30 to test"},

		// What is doubtful.
		{"train kge --data odd" + quick, cli.OK, `warning: the first fact of train, "Kopf" "Art" "Ende"`},
		{"train kge --data odd" + quick, cli.OK, "warning: 2 of 2 facts of test are facts to train, too"},
		{"train kge --quiet --nodes 2 --data unseen" + quick, cli.OK, "warning: 2 of 2 facts of test have an entity or a relation that no fact to train has"},
		{"train mf --rule adagrad --epochs 1 --rows 200 --columns 100 --cells 5000", cli.OK, "RMSE"},
		{"train linear --epochs 1 --data farnumbers.txt", cli.OK, "warning: the numbers of features reach 4294967294, and 3 features are used: an export has a row for each number, and takes 17.2 GB"},
		{"train linear --epochs 1 --data heldout.txt", cli.OK, "all 4 examples to test have the label 1: the figures of them say little"},
	} {
		p := prepare(t, strings.Fields(c.args)...)
		p.cmd.Dir = dir
		p.start()
		code := p.wait(limit)
		_, errs := p.said()
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("godwit %s: exit code %d, want %d, and a message with %q:\n%s", c.args, code, c.code, c.says, errs)
		}
		if strings.Contains(errs, "goroutine ") {
			t.Errorf("godwit %s: a stack trace:\n%s", c.args, errs)
		}
	}
}
