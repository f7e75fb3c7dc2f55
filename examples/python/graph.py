"""Graphs of typed edges: reading, generating, batches of edges with negative samples, and how well true edges are ranked."""

from __future__ import annotations

import gzip
import os
from typing import Any, Callable, Iterator

import numpy as np
import torch

from common import RANK, WORLD, concatenated

NEGATIVES = 100  # wrong tails that a true one is ranked among


class Graph:
    """Edges (head, relation, tail), as columns of an array, of which some are for the test."""

    def __init__(self, nodes: int, relations: int, train: np.ndarray, test: np.ndarray) -> None:
        self.nodes, self.relations, self.train, self.test = nodes, relations, train, test
        both = np.concatenate([train[:, [0, 2]], train[:, [2, 0]]])
        order = both[:, 0].argsort(kind="stable")
        self.neighbours = both[order, 1]
        self.begin = np.searchsorted(both[order, 0], np.arange(nodes + 1))

    def sample(self, nodes: np.ndarray, most: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Returns edges to nodes from neighbours that are drawn, as positions in nodes and as neighbours."""
        count = self.begin[nodes + 1] - self.begin[nodes]
        to = np.repeat(np.arange(len(nodes)), np.minimum(count, most))
        draw = (rng.random(len(to)) * count[to]).astype(np.int64)
        return to, self.neighbours[self.begin[nodes[to]] + draw]


def load(args: Any) -> Graph:
    """Reads the folder --data with train.txt and test.txt, of lines "head relation tail" (or .gz); generates a graph without it."""
    if not args.data:
        return generated(args.nodes, args.degree, args.relations, args.seed)
    names: list[dict[str, int]] = [{}, {}]
    train, test = (np.array([number(line, names) for line in read(args.data, part)], np.int64) for part in ("train", "test"))
    return Graph(len(names[0]), len(names[1]), train, test)


def number(line: str, names: list[dict[str, int]]) -> tuple[int, int, int]:
    head, relation, tail = line.split("\t")
    nodes, relations = names
    return nodes.setdefault(head, len(nodes)), relations.setdefault(relation, len(relations)), nodes.setdefault(tail, len(nodes))


def read(folder: str, part: str) -> Iterator[str]:
    path = os.path.join(folder, part + ".txt")
    with open(path, encoding="utf-8") if os.path.exists(path) else gzip.open(path + ".gz", "rt", encoding="utf-8") as f:
        for line in f:
            yield line.strip()


def generated(nodes: int, degree: int, relations: int, seed: int) -> Graph:
    """Nodes are in groups of 50. A relation leads from a group to one other, and one edge of ten leads anywhere."""
    rng = np.random.default_rng(seed)
    n, groups = nodes * degree, max(nodes // 50, 1)
    edges = np.stack([rng.integers(nodes, size=n), rng.integers(relations, size=n), rng.integers(nodes, size=n)], 1)
    group = (edges[:, 0] // 50 + 7 * edges[:, 1]) % groups
    edges[:, 2] = np.where(rng.random(n) < 0.9, np.minimum(group * 50 + rng.integers(50, size=n), nodes - 1), edges[:, 2])
    held = min(n // 20, 20_000)
    return Graph(nodes, relations, edges[held:], edges[:held])


class Batches:
    """The edges of the training part, in an order of each epoch's own, and wrong nodes for each batch. Each rank has its share of a batch."""

    def __init__(self, graph: Graph, args: Any, negatives: int, finish: Callable[..., Any] = lambda *batch: batch) -> None:
        self.graph, self.args, self.negatives, self.finish, self.epoch = graph, args, negatives, finish, 0

    def __len__(self) -> int:
        return min(len(self.graph.train) // self.args.batch, self.args.steps or 1 << 60)

    def __iter__(self) -> Iterator[Any]:
        edges, size = self.graph.train, self.args.batch
        order = np.random.default_rng((self.args.seed, self.epoch)).permutation(len(edges))
        rng = np.random.default_rng((self.args.seed, self.epoch, 1 + RANK))
        self.epoch += 1
        for step in range(len(self)):
            head, relation, tail = edges[order[step * size : (step + 1) * size][RANK::WORLD]].T
            yield self.finish(*(torch.from_numpy(x.copy()) for x in (head, relation, tail, rng.integers(self.graph.nodes, size=self.negatives))))


def options(p: Any) -> Any:
    """Adds the options of programs on graphs."""
    p.add_argument("--data", help="a folder with train.txt and test.txt, such as FB15k-237; a generated graph if not given")
    p.add_argument("--nodes", type=int, default=10_000, help="of the generated graph")
    p.add_argument("--degree", type=int, default=8, help="edges for each node of the generated graph")
    p.add_argument("--relations", type=int, default=4, help="of the generated graph")
    p.add_argument("--steps", type=int, default=0, help="at most so many an epoch")
    return p


@torch.no_grad()
def ranked(graph: Graph, score: Callable[..., torch.Tensor], most: int = 4096) -> float:
    """Returns the mean reciprocal rank of the true tails of test edges, each among wrong ones. Chance has 0.05.

    score returns, for heads, relations and a matrix of tails, a matrix of scores.
    """
    rng = np.random.default_rng((7, RANK))
    edges = graph.test[:most][RANK::WORLD]
    parts = []
    for i in range(0, len(edges), 512):
        head, relation, tail = (torch.from_numpy(x.copy()) for x in edges[i : i + 512].T)
        tails = torch.cat([tail[:, None], torch.from_numpy(rng.integers(graph.nodes, size=(len(tail), NEGATIVES)))], 1)
        s = score(head, relation, tails)
        above = (s[:, 1:] > s[:, :1]).sum(1) + 0.5 * ((s[:, 1:] == s[:, :1]) & (tails[:, 1:] != tails[:, :1])).sum(1)
        parts.append(1 / (1 + above))
    return round(concatenated(parts).mean().item(), 4)
