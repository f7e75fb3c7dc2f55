"""Godwit on one node beside the programs that people use for one of its tasks.

Both get the same data, in files, and the same number of threads. Each is run as a process with few
epochs and with more, alternating with the other; the difference, over the epochs between, is
what an epoch costs: starting, reading and evaluating cancel out. The processor time is that of
the process and what it started, as the system counts it.

    python peers.py --godwit ./godwit [--rows mf,lda] [--runs 5] [--threads 2] [--json]
"""

import argparse
import contextlib
import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


class Row:
    """A task: its data, Godwit's command, the peer's program. Epochs are (few, more)."""

    name, peer, unit, quality, better = "", "", "", "", "higher"
    epochs = (2, 12)
    # Where an epoch of the two is not the same, all epochs of the longer run are compared, without
    # starting and reading. The peer's is what it took by itself: (wall, processor) seconds.
    only_more, took = False, None

    def make(self, folder: Path, scale: float):
        """Writes the data; returns how many units an epoch has."""

    def godwit(self, folder: Path, epochs: int, threads: int) -> list[str]:
        """The arguments of the command."""

    def judge(self, folder: Path, out: list[dict]) -> float:
        """The quality of Godwit's run, of what it printed."""
        return test_metric(out, self.quality)

    def run_peer(self, folder: Path, epochs: int, threads: int) -> float:
        """Trains in this process; returns the quality."""


def test_metric(out, name):
    return next(e["result"]["test"][name] for e in reversed(out) if "result" in e)


def exported(out):
    """The folder of the model that a run of Godwit wrote."""
    return Path(next(e["result"]["exported"] for e in reversed(out) if "result" in e))


def popular(rng, n, size, exponent=1.0):
    """Numbers below n, by Zipf's law."""
    p = 1 / np.arange(1, n + 1) ** exponent
    return rng.choice(n, size, p=p / p.sum())


class MF(Row):
    name, peer, unit, quality, better = "mf, k = 64", "LIBMF", "cells", "RMSE", "lower"
    epochs = (5, 45)

    def make(self, folder, scale):
        rng = np.random.default_rng(1)
        rows, cols, cells, rank = 10_000, 5_000, int(440_000 * scale), 5
        p, q = rng.normal(size=(rows, rank)), rng.normal(size=(cols, rank))
        i, j = popular(rng, rows, cells, 0.5), popular(rng, cols, cells, 0.7)
        x = (p[i] * q[j]).sum(1) / math.sqrt(rank) + 0.3 * rng.normal(size=cells)
        np.savez(folder / "cells.npz", i=i, j=j, x=x, train=cells * 10 // 11)
        for name, part in ("u1.base", slice(0, cells * 10 // 11)), ("u1.test", slice(cells * 10 // 11, cells)):
            with open(folder / name, "w") as f:
                f.writelines(f"{a + 1}\t{b + 1}\t{v:.4f}\t0\n" for a, b, v in zip(i[part], j[part], x[part]))
        return cells * 10 // 11

    def godwit(self, folder, epochs, threads):
        return ["mf", "--data", folder, "--split", "u1", "--dim", 64, "--biased=false", "--epochs", epochs, "--lr", 0.05, "--l2", 0.05]

    def run_peer(self, folder, epochs, threads):
        from libmf import mf
        d = np.load(folder / "cells.npz")
        n = int(d["train"])
        all = np.column_stack([d["i"], d["j"], d["x"]])
        # By default the package has L1 penalties, which keep these factors at 0. Its predict is not the product of the factors.
        m = mf.MF(k=64, nr_threads=threads, nr_iters=epochs, eta=0.1, lambda_p1=0, lambda_q1=0, lambda_p2=0.05, lambda_q2=0.05, quiet=True)
        m.fit(all[:n].copy())
        predicted = (m.p_factors()[d["i"][n:]] * m.q_factors()[d["j"][n:]]).sum(1)
        return float(np.sqrt(np.mean((predicted - d["x"][n:]) ** 2)))


class LDA(Row):
    name, peer, unit, quality = "lda, K = 50", "tomotopy", "words", "log-likelihood a word"
    epochs = (10, 60)

    def make(self, folder, scale):
        rng = np.random.default_rng(2)
        vocabulary, topics, documents, length = 2_000, 20, int(3_000 * scale), 150
        words = rng.dirichlet(np.full(vocabulary, 0.05), topics)
        with open(folder / "documents.txt", "w") as f:
            for mix in rng.dirichlet(np.full(topics, 0.1), documents):
                f.write(" ".join(f"w{w}" for w in rng.choice(vocabulary, length, p=mix @ words)) + "\n")
        return documents * length

    def godwit(self, folder, epochs, threads):
        return ["lda", "--data", folder / "documents.txt", "--document", "line", "--format", "lines", "--min-count", 1, "--skip", 0,
                "--topics", 50, "--epochs", epochs, "--hold", 1_000_000, "--export", folder / f"lda-{epochs}"]

    def judge(self, folder, out):
        """Of the words under the exported topics, as the peer's own model is judged below."""
        name = exported(out)
        return lda_score(folder, (name / "words.txt").read_text().split(), np.load(name / "counts.npy"))

    def run_peer(self, folder, epochs, threads):
        import tomotopy as tp
        m = tp.LDAModel(k=50, alpha=0.1, eta=0.1, seed=1)
        for line in open(folder / "documents.txt"):
            m.add_doc(line.split())
        m.optim_interval = 0
        m.train(epochs, workers=threads)
        counts = np.array([m.get_topic_word_dist(t, normalize=False) for t in range(50)]).T
        return lda_score(folder, list(m.used_vocabs), counts)


def lda_score(folder, words, counts):
    """The mean logarithm of a word's probability under topics fitted to it: one scorer for both models."""
    phi = (counts + 0.1) / (counts + 0.1).sum(0)
    number = {w: n for n, w in enumerate(words)}
    total = n = 0
    for k, line in enumerate(open(folder / "documents.txt")):
        if k % 10:
            continue
        p = phi[[number[w] for w in line.split() if w in number]]
        mix = np.full(phi.shape[1], 1 / phi.shape[1])
        for _ in range(30):
            mix = (p * mix / (p @ mix)[:, None]).sum(0) + 0.1
            mix /= mix.sum()
        total, n = total + np.log(p @ mix).sum(), n + len(p)
    return float(total / n)


class W2V(Row):
    name, peer, unit, quality = "w2v, skip-gram, 100 floats", "gensim", "words", "neighbours found"
    epochs = (1, 5)

    def make(self, folder, scale):
        """A text of 40 groups of 50 words each, with ten words of one group and ten of another in a line."""
        rng = np.random.default_rng(3)
        groups, per, words = 40, 50, int(600_000 * scale)
        with open(folder / "text.txt", "w") as f:
            for _ in range(words // 20):
                a, b = rng.integers(groups, size=2)
                f.write(" ".join(f"g{a if k < 10 else b}w{w}" for k, w in enumerate(popular(rng, per, 20, 0.5))) + "\n")
        self.hold_out = max(2, words // 250 // 2)  # two steps of 250 words: Godwit trains what gensim does
        return words // 20 * 20

    def godwit(self, folder, epochs, threads):
        return ["w2v", "--data", folder / "text.txt", "--format", "lines", "--min-count", 1, "--subsample", 0, "--hold-out", self.hold_out, "--epochs", epochs,
                "--export", folder / f"w2v-{epochs}"]

    def judge(self, folder, out):
        name = exported(out)
        return neighbours((name / "words.txt").read_text().split(), np.load(next(name.glob("*.npy")))[:, :100])

    def run_peer(self, folder, epochs, threads):
        from gensim.models import Word2Vec
        m = Word2Vec(corpus_file=str(folder / "text.txt"), vector_size=100, sg=1, window=5, negative=5, min_count=1, sample=0,
                     workers=threads, epochs=epochs, seed=1)
        return neighbours(m.wv.index_to_key, m.wv.vectors)


def neighbours(words, vectors):
    """The share of words whose nearest word is of the same group."""
    v = vectors[: len(words)] / np.linalg.norm(vectors[: len(words)], axis=1, keepdims=True)
    near = v @ v.T
    np.fill_diagonal(near, -2)
    group = [w.split("w")[0] for w in words]
    return float(np.mean([group[k] == group[int(j)] for k, j in enumerate(near.argmax(1))]))


class FTRL(Row):
    name, peer, unit, quality = "linear, FTRL, 1 M features", "Vowpal Wabbit", "examples", "accuracy"
    epochs = (1, 6)
    features = 1_000_000

    def make(self, folder, scale):
        rng = np.random.default_rng(4)
        n, per = int(220_000 * scale), 26
        weights = rng.normal(size=self.features) * (rng.random(self.features) < 0.2)
        where = popular(rng, self.features, (n, per), 1.05)
        label = rng.random(n) < 1 / (1 + np.exp(-weights[where].sum(1)))
        held = n * 10 // 11
        (folder / "svm").mkdir()
        for name, part in ("train", range(held)), ("valid", range(held, held + 100)), ("test", range(held, n)):
            with open(folder / "svm" / f"{name}.svm", "w") as f, open(folder / f"{name}.vw", "w") as g:
                for k in part:
                    features = " ".join(f"{w}:1" for w in sorted(set(where[k] + 1)))
                    f.write(f"{1 if label[k] else -1} {features}\n")
                    g.write(f"{1 if label[k] else -1} | {features}\n")
        return held

    def godwit(self, folder, epochs, threads):
        return ["linear", "--data", folder / "svm", "--epochs", epochs, "--l1", 1, "--l2", 1]

    def run_peer(self, folder, epochs, threads):
        import vowpalwabbit
        held = folder / "test.vw"
        vw = vowpalwabbit.Workspace(f"-d {folder / 'train.vw'} --ftrl --loss_function logistic --passes {epochs} --cache_file {folder / 'vw.cache'} -k "
                                    f"--holdout_off -b 20 --noconstant --ftrl_alpha 0.1 --ftrl_beta 1 --l1 1 --l2 1 --quiet")
        vw.run_parser()
        right = [vw.predict(line) * (1 if line.startswith("1") else -1) > 0 for line in open(held)]
        vw.finish()
        return float(np.mean(right))


class FTRLxLearn(FTRL):
    peer, epochs = "xLearn", (2, 12)

    def run_peer(self, folder, epochs, threads):
        os.environ.setdefault("USER", "peers")  # names its logs; without it, it aborts
        import xlearn
        data = folder / "svm"
        with contextlib.chdir(folder):
            m = xlearn.create_linear()
            m.setTrain(str(data / "train.svm"))
            m.setQuiet()
            m.disableNorm()
            m.fit({"task": "binary", "opt": "ftrl", "alpha": 0.1, "beta": 1.0, "lambda_1": 1.0, "lambda_2": 1.0, "epoch": epochs, "nthread": threads}, str(folder / "xl.model"))
            m.setTest(str(data / "test.svm"))
            m.setSign()
            m.predict(str(folder / "xl.model"), str(folder / "xl.out"))
        for copy in data.glob("*.bin"):  # what it read, for a next time
            copy.unlink()
        said = [float(x) > 0 for x in open(folder / "xl.out")]
        return float(np.mean([s == (not line.startswith("-")) for s, line in zip(said, open(data / "test.svm"))]))


class L1(Row):
    name, peer, unit, quality, better = "linear, L1 by blocks", "liblinear", "optima", "objective", "lower"
    epochs = (1, 7)
    only_more = True

    def make(self, folder, scale):
        rng = np.random.default_rng(5)
        n, features, per = int(32_000 * scale), 300, 14
        where = rng.integers(features, size=(n, per))
        weights = rng.normal(size=features)
        label = rng.random(n) < 1 / (1 + np.exp(-weights[where].sum(1) / 2))
        with open(folder / "train.svm", "w") as f:
            for k in range(n):
                f.write(f"{1 if label[k] else -1} " + " ".join(f"{w}:1" for w in sorted(set(where[k] + 1))) + "\n")
        few = "".join(open(folder / "train.svm").readlines()[:100])
        for name in "valid.svm", "test.svm":
            (folder / name).write_text(few)
        return 1

    def godwit(self, folder, epochs, threads):
        return ["linear", "--data", folder, "--solver", "blocks", "--epochs", epochs, "--l1", 1, "--l2", 0, "--bias=false", "--export", folder / f"l1-{epochs}"]

    def judge(self, folder, out):
        return objective(folder, np.load(exported(out) / "weights.npy")[:, 0])

    def run_peer(self, folder, epochs, threads):
        from sklearn.linear_model import LogisticRegression
        x, y = examples(folder)
        wall, processor = time.monotonic(), time.process_time()
        m = LogisticRegression(l1_ratio=1, C=1, solver="liblinear", fit_intercept=False, tol=1e-3).fit(x, y)
        self.took = time.monotonic() - wall, time.process_time() - processor
        return objective(folder, m.coef_[0])


def examples(folder):
    from sklearn.datasets import load_svmlight_file
    x, y = load_svmlight_file(str(folder / "train.svm"), zero_based=True)
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
    return x, y


def objective(folder, w):
    """The summed logistic loss and the magnitudes of the weights: one scorer for both models."""
    x, y = examples(folder)
    w = np.pad(w, (0, max(0, x.shape[1] - len(w))))[: x.shape[1]]
    return float(np.logaddexp(0, -y * (x @ w)).sum() + np.abs(w).sum())


class Sketch(Row):
    name, peer, unit, quality, better = "sketch, count-min 4 × 65,536", "numpy", "items", "mean excess", "lower"
    epochs = (1, 41)
    odd = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)

    def make(self, folder, scale):
        items = popular(np.random.default_rng(6), 200_000, int(1_000_000 * scale))
        np.save(folder / "items.npy", items)
        (folder / "items.txt").write_text("\n".join(" ".join(f"i{v}" for v in line) for line in np.array_split(items, 10_000)) + "\n")
        return len(items)

    def godwit(self, folder, epochs, threads):
        return ["sketch", "--data", folder / "items.txt", "--depth", 4, "--width", 65_536, "--epochs", epochs]

    def run_peer(self, folder, epochs, threads):
        items = np.load(folder / "items.npy").astype(np.uint64)
        cells = np.zeros((4, 65_536), np.int64)
        for _ in range(epochs):
            for batch in np.array_split(items, max(1, len(items) // 100_000)):
                for d in range(4):
                    cells[d] += np.bincount((batch * self.odd[d]) >> np.uint64(48), minlength=65_536)
        return self.excess(folder, epochs, cells)

    def excess(self, folder, epochs, cells):
        items = np.load(folder / "items.npy").astype(np.uint64)
        seen, counts = np.unique(items, return_counts=True)
        found = np.min([cells[d][(seen * self.odd[d]) >> np.uint64(48)] for d in range(4)], axis=0)
        return float(np.mean(found - counts * epochs))


class SketchCPP(Sketch):
    peer = "C++, one thread"

    def make(self, folder, scale):
        n = super().make(folder, scale)
        np.load(folder / "items.npy").astype("<u8").tofile(folder / "items.bin")
        subprocess.run([CXX, "-O3", "-march=native", "-o", folder / "countmin", Path(__file__).with_name("countmin.cc")], check=True)
        return n

    def run_peer(self, folder, epochs, threads):
        cells = subprocess.run([folder / "countmin", folder / "items.bin", str(epochs)], check=True, stdout=subprocess.PIPE).stdout
        return self.excess(folder, epochs, np.frombuffer(cells, np.uint64).reshape(4, 65_536).astype(np.int64))


class KGE(Row):
    name, peer, unit, quality = "kge, ComplEx, 256 floats", "PyTorch", "facts", "MRR"
    epochs = (1, 9)

    def make(self, folder, scale):
        """A graph in which a relation leads from each group of entities to another one."""
        rng = np.random.default_rng(7)
        entities, relations, groups, facts = 2_000, 20, 50, int(30_000 * scale)
        to = rng.integers(groups, size=(relations, groups))
        head, relation = popular(rng, entities, facts, 0.6), popular(rng, relations, facts, 0.6)
        tail = (to[relation, head % groups] + groups * (popular(rng, entities // groups, facts, 1.0))).astype(int)
        facts_ = np.column_stack([head, relation, tail])
        held = facts - 1_000
        np.savez(folder / "graph.npz", train=facts_[:held], test=facts_[held:], entities=entities, relations=relations)
        for name, part in ("train", facts_[:held]), ("valid", facts_[held:held + 10]), ("test", facts_[held:]):
            with open(folder / f"{name}.tsv", "w") as f:
                f.writelines(f"e{h}\tr{r}\te{t}\n" for h, r, t in part)
        return held

    def godwit(self, folder, epochs, threads):
        return ["kge", "--data", folder, "--columns", "head,relation,tail", "--dim", 256, "--negatives", 500, "--batch", 512, "--lr", 0.1, "--n3", 0.05,
                "--epochs", epochs, "--export", folder / f"kge-{epochs}"]

    def judge(self, folder, out):
        d, vectors = np.load(folder / "graph.npz"), []
        for kind, n in ("entities", int(d["entities"])), ("relations", int(d["relations"])):
            x, v = np.load(exported(out) / f"{kind}.npy"), np.zeros((n, 256), np.float32)
            v[[int(name[1:]) for name in (exported(out) / f"{kind}.txt").read_text().split()]] = x
            vectors.append(v)
        return mrr(d["test"], *vectors)

    def run_peer(self, folder, epochs, threads):
        """The same batches, negatives, loss, regularizer and rule, as a loop in PyTorch with sparse gradients; with dense ones it takes longer."""
        import torch
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        d = np.load(folder / "graph.npz")
        facts, n = torch.from_numpy(d["train"]), int(d["entities"])
        e = torch.nn.Embedding(n, 256, sparse=True)
        r = torch.nn.Embedding(int(d["relations"]), 256, sparse=True)
        torch.nn.init.normal_(e.weight, std=1e-3), torch.nn.init.normal_(r.weight, std=1e-3)
        rule = torch.optim.Adagrad([*e.parameters(), *r.parameters()], lr=0.1)

        def halves(x):
            return x[:, :128], x[:, 128:]

        def cubes(x):
            re, im = halves(x)
            return ((re * re + im * im + 1e-20) ** 1.5).sum()

        for _ in range(epochs):
            for batch in facts[torch.randperm(len(facts))].split(512):
                s, p, o, negatives = e(batch[:, 0]), r(batch[:, 1]), e(batch[:, 2]), e(torch.randint(n, (500,)))
                (sr, si), (pr, pi), (nr, ni) = halves(s), halves(p), halves(o)
                tails = torch.cat([sr * pr - si * pi, sr * pi + si * pr], 1)  # the score of a tail is a product with this,
                heads = torch.cat([pr * nr + pi * ni, pr * ni - pi * nr], 1)  # … and of a head with this
                loss = 0.05 * (cubes(s) + 2 * cubes(p) + cubes(o))
                for query, answer in (tails, o), (heads, s):
                    scores = torch.cat([(query * answer).sum(1, keepdim=True), query @ negatives.T], 1)
                    loss = loss + torch.nn.functional.cross_entropy(scores, torch.zeros(len(batch), dtype=torch.long), reduction="sum")
                rule.zero_grad()
                loss.backward()
                rule.step()
        return mrr(d["test"], e.weight.detach().numpy(), r.weight.detach().numpy())


class KGEPyKEEN(KGE):
    peer, epochs = "PyKEEN", (1, 5)

    def run_peer(self, folder, epochs, threads):
        """PyKEEN's own loop: each query is scored against all 2,000 entities (LCWA), which it does faster than against 500 that it draws for each fact.
        Facts have an inverse each, so that heads are predicted too; softmax, AdaGrad and the regularizer as Godwit's."""
        import functools
        import logging

        import torch
        from pykeen.models import ComplEx
        from pykeen.training import LCWATrainingLoop
        from pykeen.triples import CoreTriplesFactory
        logging.disable(logging.WARNING)
        small = functools.partial(torch.nn.init.normal_, std=1e-3)
        torch.set_num_threads(threads)
        d = np.load(folder / "graph.npz")
        facts = CoreTriplesFactory.create(torch.from_numpy(d["train"]).long(), num_entities=int(d["entities"]), num_relations=int(d["relations"]), create_inverse_triples=True)
        model = ComplEx(triples_factory=facts, embedding_dim=128, loss="crossentropy", regularizer="lp", regularizer_kwargs={"weight": 0.05, "p": 3.0},
                        entity_initializer=small, relation_initializer=small, random_seed=1)
        loop = LCWATrainingLoop(model=model, triples_factory=facts, optimizer=torch.optim.Adagrad(model.parameters(), lr=0.1))
        loop.train(facts, num_epochs=epochs, batch_size=512, use_tqdm=False)
        e, r = (x[0]().detach().numpy() for x in (model.entity_representations, model.relation_representations))
        return mrr(d["test"], np.concatenate([e.real, e.imag], 1), np.concatenate([r.real, r.imag], 1)[::2])  # inverses are between


def mrr(facts, e, r):
    """The mean reciprocal rank of tails among all entities: one scorer for both models. Of equal scores, and of those that are
    no numbers, the tail has the last place, so a model that says nothing has a rank near the number of entities."""
    s, p = e[facts[:, 0]], r[facts[:, 1]]
    query = np.concatenate([s[:, :128] * p[:, :128] - s[:, 128:] * p[:, 128:], s[:, :128] * p[:, 128:] + s[:, 128:] * p[:, :128]], 1)
    scores = query @ e.T
    return float(np.mean(1 / (~(scores < scores[np.arange(len(facts)), facts[:, 2], None])).sum(1)))


ROWS = {"kge": KGE(), "kge-pykeen": KGEPyKEEN(), "mf": MF(), "lda": LDA(), "w2v": W2V(), "ftrl": FTRL(), "ftrl-xlearn": FTRLxLearn(), "l1": L1(), "sketch": Sketch(), "sketch-c++": SketchCPP()}

CXX = os.environ.get("CXX", "c++")


class Failed(Exception):
    """A process that could not be begun, or that failed."""


def timed(args, out):
    """Runs a process; returns the seconds it took and those of processors."""
    begin = time.monotonic()
    try:
        p = subprocess.Popen([str(a) for a in args], stdout=out, stderr=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": str(THREADS)})
    except OSError as e:
        raise Failed(f"{args[0]}: {e.strerror}") from e
    said = p.stderr.read()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise Failed(f"{' '.join(map(str, args))}\nended with {p.returncode}: {said.decode()[-2000:]}")
    return time.monotonic() - begin, used.ru_utime + used.ru_stime


def once(row, key, who, folder, epochs, a):
    with tempfile.TemporaryFile("w+") as out:
        if who == "godwit":
            took = timed([a.godwit, "train", *row.godwit(folder, epochs, a.threads), "--workers", a.threads, "--eval-every", 0,
                          "--untrained=false", "--json", "--quiet"], out)
        else:
            took = timed([sys.executable, __file__, "--peer", key, folder, epochs, a.threads], out)
        out.seek(0)
        lines = [json.loads(line) for line in out if line.startswith("{")]
    if who == "godwit":
        return took, row.judge(folder, lines), None
    return took, lines[-1]["quality"], lines[-1]["took"]


def compare(key, a):
    """The figures of a row: of each run, what an epoch took and the quality after the longer one."""
    row = ROWS[key]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n = row.make(folder, a.scale)
        found: dict[str, list] = {"godwit": [], "peer": []}
        for k in range(a.runs):
            for who in ("godwit", "peer")[:: 1 if k % 2 == 0 else -1]:
                few, more = row.epochs
                clean(folder)
                (w1, c1), _, _ = once(row, key, who, folder, few, a)
                clean(folder)
                (w2, c2), quality, took = once(row, key, who, folder, more, a)
                epochs = more if row.only_more else 1
                wall, processor = took or ((w2 - w1) / (more - few) * epochs, (c2 - c1) / (more - few) * epochs)
                found[who].append({"wall": wall, "processor": processor, "quality": quality})
                print(f"{row.name}: run {k + 1} of {a.runs}, {who if who == 'godwit' else row.peer}: {found[who][-1]}", file=sys.stderr, flush=True)
    return {"task": row.name, "peer": row.peer, "unit": row.unit, "units": n, "quality": row.quality, "better": row.better, "runs": found}


def clean(folder):
    """Removes exported models of the run before."""
    for d in folder.glob("*-*"):
        if d.is_dir():
            shutil.rmtree(d)


def ratios(r, what):
    return sorted(p[what] / g[what] for g, p in zip(r["runs"]["godwit"], r["runs"]["peer"]))


def table(rows):
    print("| task | beside | × its speed, processor time | × its speed, wall time | quality: Godwit | the peer |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in rows:
        cells = []
        for what in "processor", "wall":
            x = ratios(r, what)
            cells.append(f"{statistics.median(x):.2f} ({x[0]:.2f} … {x[-1]:.2f})")
        q = [statistics.median(v["quality"] for v in r["runs"][who]) for who in ("godwit", "peer")]
        print(f"| {r['task']} | {r['peer']} | {cells[0]} | {cells[1]} | {r['quality']} {q[0]:.4g} | {q[1]:.4g} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--godwit", default="godwit", help="the command")
    lacks = {"sketch-c++": not shutil.which(CXX) and "a C++ compiler", "ftrl-xlearn": not importlib.util.find_spec("xlearn") and "xlearn",
             "kge-pykeen": not importlib.util.find_spec("pykeen") and "pykeen"}
    here = [k for k in ROWS if not lacks.get(k)]
    p.add_argument("--rows", default=",".join(here), help=f"which, by commas, of {', '.join(ROWS)}")
    p.add_argument("--runs", type=int, default=5, help="of each, alternating")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="of each program")
    p.add_argument("--scale", type=float, default=1.0, help="of the data")
    p.add_argument("--json", action="store_true", help="print an object a row")
    a = p.parse_args()
    global THREADS
    THREADS = a.threads
    for k, what in lacks.items():
        if what and a.rows == ",".join(here):
            print(f"row {k} is left out: {what} is not installed", file=sys.stderr)
    unknown = [k for k in a.rows.split(",") if k not in ROWS]
    if unknown:
        p.error(f"there is no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    if a.runs < 1 or a.threads < 1 or a.scale <= 0:
        p.error(f"--runs {a.runs}, --threads {a.threads}, --scale {a.scale}: want at least 1 run and thread, and a scale over 0")
    rows, failed = [], None
    for key in a.rows.split(","):
        try:
            rows.append(compare(key, a))
        except Failed as e:  # what was measured before it is shown
            failed = f"row {key}: {e}"
            break
        if a.json:
            print(json.dumps(rows[-1]), flush=True)
    if rows and not a.json:
        table(rows)
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        key, folder, epochs, threads = sys.argv[2:]
        print()
        quality = ROWS[key].run_peer(Path(folder), int(epochs), int(threads))
        print(json.dumps({"quality": quality, "took": ROWS[key].took}))
    else:
        main()
