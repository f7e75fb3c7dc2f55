"""Click-through rates by DLRM: 26 hashed categorical features, 13 numbers, their products by pairs.

    python ctr.py                                   generated examples
    python ctr.py --write day.tsv                   writes them as a file in Criteo's format
    torchrun --nproc-per-node=4 ctr.py --data day.tsv
    python ctr.py --data …/frappe --epochs 5        a folder with libFM files, as of Frappe

Of a file, the last tenth of each rank's part is for the test; of Frappe's, a tenth of the lines.
"""

from __future__ import annotations

import gzip
import os
import zlib
from typing import Any, Iterator

import numpy as np
import torch
import torch.nn.functional as F

from common import RANK, WORLD, Run, arguments, auc, concatenated

NUMBERS, CATEGORIES = 13, 26
Batch = "tuple[torch.Tensor, torch.Tensor, torch.Tensor]"  # labels, numbers, rows


def mix(x: np.ndarray) -> np.ndarray:
    """Hashes numbers to 64 bits, by the finalizer of splitmix64."""
    x = x.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def uniform(seed: int, first: int, n: int, columns: int) -> np.ndarray:
    """Returns n × columns numbers in [0, 1), each a function of the seed, the example's number (first …) and the column."""
    example = mix(np.arange(first, first + n, dtype=np.uint64) + (np.uint64(seed) << np.uint64(44)))
    h = mix(example[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return (h >> np.uint64(11)).astype(np.float64) / 2**53


def hashed(values: np.ndarray, field: np.ndarray | int, rows: int) -> np.ndarray:
    """Returns the rows of a feature's values."""
    return (mix(values.astype(np.uint64) + (np.uint64(1) << np.uint64(40)) * np.uint64(1 + np.asarray(field))) % np.uint64(rows)).astype(np.int64)


class Generated:
    """Examples with structure: values are Zipf's, have hidden weights and factors, and the label follows from these and the numbers."""

    numbers, fields = NUMBERS, CATEGORIES

    def __init__(self, args: Any) -> None:
        self.rows, self.seed, self.batch = args.rows, args.seed, args.batch
        self.steps = max(args.examples // args.batch, 1)
        self.held = max(args.examples // 10, 1000)
        self.cards = np.geomspace(10, max(args.rows // 8, 20), CATEGORIES).astype(np.int64)  # how many values a feature has

    def raw(self, first: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the labels, numbers and values of n examples. Each follows from the seed and its number, whichever rank asks for it."""
        u = uniform(self.seed, first, n, CATEGORIES + NUMBERS + 1)
        values = np.minimum(self.cards ** u[:, :CATEGORIES] - 1, self.cards - 1).astype(np.int64)  # Zipf's, of exponent 1
        numbers = np.floor(np.log1p(-u[:, CATEGORIES:-1]) / np.log(0.8)).astype(np.int64)  # geometric, of mean 4
        weight = self.hidden(values, 1)
        logit = 0.35 * weight.sum(1) - 1.2
        factors = [self.hidden(values[:, :8], 2 + k) for k in range(3)]  # the first eight features act by pairs, too
        logit += 0.25 * sum((f.sum(1) ** 2 - (f**2).sum(1)) / 2 for f in factors)
        logit += 0.1 * (np.log1p(numbers[:, :4]) - 1.2).sum(1)
        return u[:, -1] < 1 / (1 + np.exp(-logit)), numbers, values

    def hidden(self, values: np.ndarray, which: int) -> np.ndarray:
        """Returns a number of variance 1 for each value of a feature."""
        h = mix(values.astype(np.uint64) * np.uint64(64) + np.arange(values.shape[1], dtype=np.uint64) + (np.uint64(which) << np.uint64(50)))
        return ((h >> np.uint64(11)).astype(np.float64) / 2**53 - 0.5) * 12**0.5

    def part(self, first: int, n: int) -> Batch:
        label, numbers, values = self.raw(first, n)
        return tensors(label, numbers, hashed(values, np.arange(CATEGORIES), self.rows))

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        mine = self.batch // WORLD
        for step in range(self.steps):
            yield self.part(step * self.batch + RANK * mine, mine)

    def test(self) -> Iterator[Batch]:
        mine = self.held // WORLD
        yield self.part(10**12 + RANK * mine, mine)

    def write(self, path: str) -> None:
        """Writes what a run of one process reads, as Criteo's files are: label, numbers, hexadecimal values, by tabs."""
        with open(path, "w", encoding="ascii") as f:
            for step in range(self.steps):
                for label, numbers, values in zip(*self.raw(step * self.batch, self.batch)):
                    f.write("\t".join([str(int(label)), *map(str, numbers), *(f"{v:08x}" for v in values)]) + "\n")


def tensors(label: np.ndarray, numbers: np.ndarray, rows: np.ndarray) -> Batch:
    return torch.from_numpy(label.astype(np.float32)), torch.from_numpy(np.log1p(np.maximum(numbers, 0)).astype(np.float32)), torch.from_numpy(rows)


class Criteo:
    """A file in Criteo's format. Each rank reads a part of its own, as often as it trains an epoch."""

    numbers, fields = NUMBERS, CATEGORIES

    def __init__(self, args: Any) -> None:
        import pyarrow as pa

        self.rows, self.mine = args.rows, args.batch // WORLD
        self.file = pa.memory_map(args.data).read_buffer()
        text = np.frombuffer(self.file, np.uint8)
        at = [line(text, len(text) * r // WORLD) for r in range(WORLD + 1)]
        ends = [line(text, at[r] + (at[r + 1] - at[r]) * 9 // 10) for r in range(WORLD)]
        self.part, self.held = self.file[at[RANK] : ends[RANK]], self.file[ends[RANK] : at[RANK + 1]]
        self.steps = min(lines(text[at[r] : ends[r]]) for r in range(WORLD)) // self.mine  # ranks take as many
        if self.steps == 0:
            raise ValueError(f"{args.data} has less than {self.mine} lines for each of {WORLD} ranks: choose a smaller --batch")

    def read(self, part: Any, size: int) -> Iterator[Batch]:
        import pyarrow as pa
        from pyarrow import csv

        numbers, names = [f"i{k}" for k in range(NUMBERS)], [f"c{k}" for k in range(CATEGORIES)]
        types = {"label": pa.int8(), **dict.fromkeys(numbers, pa.int64()), **dict.fromkeys(names, pa.string())}
        left: list[np.ndarray] = []
        for b in csv.open_csv(
            pa.BufferReader(part),
            read_options=csv.ReadOptions(column_names=list(types), use_threads=False),
            parse_options=csv.ParseOptions(delimiter="\t"),
            convert_options=csv.ConvertOptions(column_types=types),
        ):
            read = [
                b["label"].to_numpy(),
                np.stack([b[n].fill_null(0).to_numpy() for n in numbers], 1),
                np.stack([self.column(b[n], k) for k, n in enumerate(names)], 1),
            ]
            left = [np.concatenate(x) for x in zip(left, read)] if left else read
            while len(left[0]) >= size:
                yield tensors(*(x[:size] for x in left))
                left = [x[size:] for x in left]
        if left and size == 1 << 16:
            yield tensors(*left)

    def column(self, values: Any, field: int) -> np.ndarray:
        """Returns a column's rows. A value that is missing is a value."""
        d = values.fill_null("").dictionary_encode()
        known = np.array([zlib.crc32(s.encode()) for s in d.dictionary.to_pylist()], np.uint64)
        return hashed(known, field, self.rows)[d.indices.to_numpy()]

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        for _, batch in zip(range(self.steps), self.read(self.part, self.mine)):
            yield batch

    def test(self) -> Iterator[Batch]:
        return self.read(self.held, 1 << 16)


def line(text: np.ndarray, at: int) -> int:
    """Returns where the first line begins that does not begin before at."""
    while 0 < at < len(text) and text[at - 1] != ord("\n"):
        at += 1
    return at


def lines(text: np.ndarray) -> int:
    """Counts lines."""
    return sum(int((text[i : i + (1 << 24)] == ord("\n")).sum()) for i in range(0, len(text), 1 << 24))


class Frappe:
    """libFM files of categorical features: label ±1, then number:1 of each feature."""

    numbers = 0

    def __init__(self, args: Any) -> None:
        self.seed, self.batch = args.seed, args.batch
        files = sorted(f for f in os.listdir(args.data) if ".libfm" in f)
        if not files:
            raise ValueError(f"the folder {args.data} has no files *.libfm or *.libfm.gz")
        read = [s.split() for f in files for s in text(os.path.join(args.data, f))]
        self.label = np.array([s[0] == "1" for s in read])
        values = np.array([[int(x.split(":")[0]) for x in s[1:]] for s in read])
        self.values, self.fields = hashed(values, 0, args.rows), values.shape[1]
        order = np.random.default_rng(0).permutation(len(read))
        self.kept, self.held = order[len(order) // 10 :], order[: len(order) // 10]
        self.epoch = 0

    def part(self, at: np.ndarray) -> Batch:
        return tensors(self.label[at], np.zeros((len(at), 0)), self.values[at])

    def __len__(self) -> int:
        return len(self.kept) // self.batch

    def __iter__(self) -> Iterator[Batch]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.kept)
        self.epoch += 1
        for step in range(len(self)):
            yield self.part(order[step * self.batch : (step + 1) * self.batch][RANK::WORLD])

    def test(self) -> Iterator[Batch]:
        yield self.part(self.held[RANK::WORLD])


def text(path: str) -> Iterator[str]:
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="ascii") as f:
        yield from f


def mlp(*sizes: int) -> torch.nn.Sequential:
    layers = [m for a, b in zip(sizes, sizes[1:]) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers[:-1])


class DLRM(torch.nn.Module):
    """Embeddings, and a vector made of the numbers, act on each other by pairs."""

    def __init__(self, rows: Any, numbers: int, fields: int, dim: int) -> None:
        super().__init__()
        self.rows = rows
        self.bottom = mlp(numbers, 64, dim) if numbers else None
        n = fields + (numbers > 0)
        at = torch.triu_indices(n, n, 1)
        self.register_buffer("pairs", at[0] * n + at[1], persistent=False)
        self.top = mlp(len(self.pairs) + dim, 64, 32, 1)

    def forward(self, numbers: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        x = self.rows(rows)
        if self.bottom is not None:
            x = torch.cat([x, self.bottom(numbers).unsqueeze(1)], 1)
        products = torch.bmm(x, x.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([products, x.sum(1)], 1)).squeeze(1)


def loss(model: Any, label: torch.Tensor, numbers: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(model(numbers, rows), label)


def main() -> None:
    p = arguments("click-through rates by DLRM")
    p.add_argument("--data", help="a file in Criteo's format, or a folder of libFM files; generated examples if not given")
    p.add_argument("--examples", type=int, default=400_000, help="how many to generate")
    p.add_argument("--rows", type=int, default=346_000, help="that values are hashed to")
    p.add_argument("--lr", type=float, default=0.002, help="of the dense part")
    p.add_argument("--rows-lr", type=float, default=0.05)
    p.add_argument("--write", help="write the generated examples to this file, and end")
    args = p.parse_args()
    if args.write:
        return Generated(args).write(args.write)
    run = Run(args)
    data = Generated(args) if not args.data else Frappe(args) if os.path.isdir(args.data) else Criteo(args)
    model = DLRM(run.embedding(args.rows, args.dim, 0.05), data.numbers, data.fields, args.dim)
    took = run.train(model, run.optimizers(model, args.lr, args.rows_lr), data, loss, keys=lambda b: {model.rows: b[2]})
    with torch.no_grad():
        results = [(label, model.eval()(numbers, rows)) for label, numbers, rows in data.test()]
    labels, scores = (concatenated(x) for x in zip(*results))
    run.end(took, program="ctr", auc=round(auc(scores, labels), 4))


if __name__ == "__main__":
    main()
