package w2v

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

func TestEveryBlockIsTrainedByOneWorkerOrHeldOut(t *testing.T) {
	c, q, _ := generated(t, 4, 2, 3000, 20)
	for _, holdOut := range []int{0, 2, 7, 1000} {
		cfg := small(SkipGram)
		cfg.HoldOut = holdOut
		task, _ := setup(t, cfg, c, q, 1, 1)
		seen := make([]int, c.Blocks())
		for chunk := range task.Chunks() {
			for step := range schedule.Steps(task.steps(), chunk) {
				seen[task.block(chunk, step)]++
			}
		}
		for b, n := range seen {
			want := 1
			if holdOut > 0 && b%holdOut == holdOut-1 {
				want = 0
			}
			if n != want {
				t.Errorf("with every %d-th held out, block %d is trained %d times, want %d", holdOut, b, n, want)
			}
		}
	}
}

func TestBatchesAreTheTextLessWhatIsLeftOut(t *testing.T) {
	c, q, _ := generated(t, 4, 2, 3000, 20)
	for _, subsample := range []float64{0, 0.01} {
		cfg := small(SkipGram)
		cfg.Subsample = subsample
		task, s := setup(t, cfg, c, q, 1, 1)
		tr := aTrainer(t, task, s.Workers(0)[0])
		var b, again train.Batch[Batch]
		r := c.Reader()
		defer r.Close()
		var text corpus.Text
		spans := map[uint8]int{}
		for at := range traintest.Steps(tr, task.Chunks(), 1) {
			step := at.Step
			tr.Load(&b, at)
			if err := r.Read(task.block(at.Chunk, at.Step), &text); err != nil {
				t.Fatal(err)
			}
			if b.Data.raw != text.Raw {
				t.Fatalf("%d words, want %d", b.Data.raw, text.Raw)
			}
			distinct := map[godwit.Key]bool{}
			for i, k := range b.Keys {
				if distinct[k] {
					t.Fatalf("key %d stands twice", k)
				}
				distinct[k] = true
				if i < b.Data.words && b.Keys[b.Data.words+i]-tr.keys.output != k-tr.keys.input {
					t.Fatalf("word %d has rows of different words", i)
				}
			}
			// The batch's sentences are found in the text, in order, with gaps.
			j := 0
			for _, tok := range b.Data.tokens {
				w := int32(b.Keys[tok] - tr.keys.input)
				for j < len(text.Words) && text.Words[j] != w {
					j++
				}
				if j++; j > len(text.Words) {
					t.Fatalf("step %d has words that are not in its block", step)
				}
			}
			if subsample == 0 && len(b.Data.tokens) < len(text.Words)-len(text.Ends) {
				t.Errorf("step %d has %d words of %d, and nothing was to be left out", step, len(b.Data.tokens), len(text.Words))
			}
			from := int32(0)
			for _, end := range b.Data.ends {
				if end < from+2 {
					t.Fatalf("step %d has a sentence of one word", step)
				}
				from = end
			}
			if len(b.Data.spans) != len(b.Data.tokens) || int(from) != len(b.Data.tokens) {
				t.Fatalf("step %d has %d words, %d spans, and its sentences end at %d", step, len(b.Data.tokens), len(b.Data.spans), from)
			}
			for _, x := range b.Data.spans {
				spans[x]++
			}
		}
		for x := 1; x <= cfg.Window; x++ {
			if spans[uint8(x)] == 0 {
				t.Errorf("no span is %d", x)
			}
		}
		if len(spans) != cfg.Window {
			t.Errorf("spans are %v, want 1 … %d", spans, cfg.Window)
		}
		// Who loads a block makes no difference.
		o := aTrainer(t, task, s.Workers(0)[0])
		o.Load(&again, train.At{Epoch: 1, Chunk: 2})
		for at := range traintest.Steps(tr, 3, 1) {
			tr.Load(&b, at)
		}
		if fmt.Sprint(b.Keys, b.Data.tokens, b.Data.spans) != fmt.Sprint(again.Keys, again.Data.tokens, again.Data.spans) {
			t.Error("a block gives another batch to another worker")
		}
		tr.Load(&b, train.At{Epoch: 2, Chunk: 1})
		tr.Load(&again, train.At{Epoch: 3, Chunk: 1})
		if fmt.Sprint(b.Data.tokens, b.Data.spans) == fmt.Sprint(again.Data.tokens, again.Data.spans) {
			t.Error("two epochs draw the same")
		}
	}
}

func TestFrequentWordsAreLeftOutAsInWord2vec(t *testing.T) {
	// "a" is half of the words, "b" an eighth, the others are rare.
	text := strings.Repeat("a a a a b x y z\n\n", 4000)
	c, err := corpus.FromText("x", []byte(text), corpus.Options{MinCount: 1, Block: 800})
	if err != nil {
		t.Fatal(err)
	}
	cfg := small(SkipGram)
	cfg.Subsample = 0.02
	task, s := setup(t, cfg, c, nil, 1, 1)
	tr := aTrainer(t, task, s.Workers(0)[0])
	kept, blocks := map[string]float64{}, 0
	var b train.Batch[Batch]
	for at := range traintest.Steps(tr, task.Chunks(), 1) {
		tr.Load(&b, at)
		for _, tok := range b.Data.tokens {
			kept[c.Vocabulary.Words[b.Keys[tok]-tr.keys.input]]++
		}
		blocks++
	}
	for word, share := range map[string]float64{"a": 0.5, "b": 0.125} {
		want := math.Sqrt(0.02/share) + 0.02/share
		n := share * 800 * float64(blocks)
		got := kept[word] / n
		// Five standard deviations, and the sentences that lose their last words.
		if math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/n)+0.02 {
			t.Errorf("of %s, a share of %.3f is kept, want %.3f", word, got, want)
		}
	}
}

func TestTheLearningRateFallsEvenlyOverAllEpochs(t *testing.T) {
	c, q, _ := generated(t, 4, 2, 3000, 20)
	cfg := small(SkipGram)
	cfg.LastLR = 0.1
	task, s := setup(t, cfg, c, q, 1, 1)
	tr, err := task.Trainer(s.Workers(0)[0], train.Partition{Count: 1, Epochs: 4})
	if err != nil {
		t.Fatal(err)
	}
	var b train.Batch[Batch]
	for _, x := range []struct {
		epoch    int
		progress float64
		want     float64
	}{{1, 0, 1}, {3, 0, 0.55}, {2, 0.5, 1 - 0.9*(1+0.5)/4}} {
		tr.Load(&b, train.At{Epoch: x.epoch, Progress: x.progress})
		if math.Abs(float64(b.Data.rate)-x.want) > 1e-6 {
			t.Errorf("epoch %d, progress %v: rate %v, want %v", x.epoch, x.progress, b.Data.rate, x.want)
		}
	}
}

func TestTheRateFallsLinearlyAndStaysBehindTheLastEpoch(t *testing.T) {
	l := &loader{task: &Task{cfg: Config{LastLR: 0.2}}, epochs: 2}
	for _, c := range []struct {
		at   train.At
		want float32
	}{{train.At{Epoch: 1}, 1}, {train.At{Epoch: 1, Progress: 0.5}, 0.8}, {train.At{Epoch: 2, Progress: 1}, 0.2}, {train.At{Epoch: 4}, 0.2}} {
		if got := l.rate(c.at); math.Abs(float64(got-c.want)) > 1e-6 {
			t.Errorf("at %+v the rate is %v, want %v", c.at, got, c.want)
		}
	}
}
