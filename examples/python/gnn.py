"""Link prediction by GraphSAGE over embeddings of the nodes, which are trained: torch_geometric's SAGEConv, a sampler of our own.

    python gnn.py --nodes 1000000 --steps 500
    torchrun --nproc-per-node=4 gnn.py --data …/fb15k-237 --epochs 3
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv

from common import Run, arguments
from graph import Batches, Graph, load, options, ranked


class Block(NamedTuple):
    """Nodes and what is near them. The first of the nodes are those of the next hop, and so on."""

    nodes: torch.Tensor  # all
    hops: list[tuple[torch.Tensor, int]]  # edges (from, to) by positions in the nodes, and how many nodes they lead to; farthest first


def block(graph: Graph, seeds: np.ndarray, fan: int, rng: np.random.Generator, hidden: np.ndarray | None = None) -> Block:
    """Samples two hops around seeds, which are distinct. Edges that are hidden are left out: what is to be predicted must not be seen."""
    nodes, hops = seeds, []
    for _ in range(2):
        to, neighbours = graph.sample(nodes, fan, rng)
        if hidden is not None:
            seen = ~np.isin(nodes[to] * graph.nodes + neighbours, hidden)
            to, neighbours = to[seen], neighbours[seen]
        wider, at = first(np.concatenate([nodes, neighbours]), len(nodes))
        hops.insert(0, (torch.from_numpy(np.stack([at[len(nodes) :], to])), len(nodes)))
        nodes = wider
    return Block(torch.from_numpy(nodes), hops)


def first(all: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct ones of all, beginning with the first n, which are distinct, and the position there of each of all."""
    distinct, at = np.unique(all, return_inverse=True)
    place = np.full(len(distinct), -1)
    place[at[:n]] = np.arange(n)
    place[place < 0] = np.arange(n, len(distinct))
    nodes = np.empty_like(distinct)
    nodes[place] = distinct
    return nodes, place[at]


class Sage(torch.nn.Module):
    """Two layers of GraphSAGE, beside the nodes' own embeddings. Relations weigh the products of two nodes, as in DistMult."""

    def __init__(self, rows: Any, dim: int, relations: int) -> None:
        super().__init__()
        self.rows, self.relation = rows, torch.nn.Parameter(torch.ones(relations, dim))
        self.near, self.far = SAGEConv(dim, dim), SAGEConv(dim, dim)

    def forward(self, b: Block, head: torch.Tensor, relation: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Returns the scores of others as ends of edges from heads, all by positions in the block."""
        x = self.rows(b.nodes)
        (far, n), (near, seeds) = b.hops
        own = x[:seeds]
        x = F.relu(self.far((x, x[:n]), far))
        x = self.near((x, x[:seeds]), near) + own
        return score(x[head] * self.relation[relation], x[others])


def score(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns products of each of a with each of b, or with those in its row of b."""
    return a @ b.T if b.dim() == 2 else torch.einsum("nd,nkd->nk", a, b)


class Prepare:
    """Makes a batch of edges and wrong nodes into a block and positions there."""

    def __init__(self, graph: Graph, args: Any) -> None:
        self.graph, self.fan, self.rng = graph, args.fan, np.random.default_rng(args.seed)

    def __call__(self, head: torch.Tensor, relation: torch.Tensor, tail: torch.Tensor, wrong: torch.Tensor) -> tuple[Any, ...]:
        h, t = head.numpy(), tail.numpy()
        seeds, at = np.unique(np.concatenate([h, t, wrong.numpy()]), return_inverse=True)
        n = self.graph.nodes
        b = block(self.graph, seeds, self.fan, self.rng, np.concatenate([h * n + t, t * n + h]))
        ends = torch.from_numpy(at)
        return relation, ends[: len(h)], ends[len(h) : 2 * len(h)], ends[2 * len(h) :], b


def loss(model: Any, relation: torch.Tensor, head: torch.Tensor, tail: torch.Tensor, wrong: torch.Tensor, b: Block) -> torch.Tensor:
    """Returns the cross entropy of a true tail among the batch's other tails and the wrong ones."""
    scores = model(b, head, relation, torch.cat([tail, wrong]))
    return F.cross_entropy(scores, torch.arange(len(head)))


def main() -> None:
    p = options(arguments("link prediction by GraphSAGE"))
    p.add_argument("--fan", type=int, default=5, help="neighbours that are sampled of a node")
    p.add_argument("--lr", type=float, default=0.005, help="of the dense part")
    p.add_argument("--rows-lr", type=float, default=0.3)
    p.set_defaults(relations=1)
    args = p.parse_args()
    run = Run(args)
    graph = load(args)
    model = Sage(run.embedding(graph.nodes, args.dim, 0.3), args.dim, graph.relations)
    batches = Batches(graph, args, 128, Prepare(graph, args))
    took = run.train(model, run.optimizers(model, args.lr, args.rows_lr), batches, loss, keys=lambda b: {model.rows: b[4].nodes})
    rng = np.random.default_rng(3)

    def judge(head: torch.Tensor, relation: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        seeds, at = np.unique(np.concatenate([head.numpy(), tails.numpy().ravel()]), return_inverse=True)
        ends = torch.from_numpy(at.reshape(-1))
        return model.eval()(block(graph, seeds, args.fan, rng), ends[: len(head)], relation, ends[len(head) :].view(tails.shape))

    run.end(took, program="gnn", mrr=ranked(graph, judge))


if __name__ == "__main__":
    main()
