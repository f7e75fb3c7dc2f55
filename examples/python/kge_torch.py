"""What kge.py is without Godwit: the lines that differ are those that Godwit asks for."""

import torch
import torch.nn.functional as F

from common import WORLD, Run, Took, arguments
from graph import Batches, load, options, ranked


class Model(torch.nn.Module):
    def __init__(self, entities, relations, dim):
        super().__init__()
        self.entity = torch.nn.Embedding(entities, dim, _weight=0.1 * torch.randn(entities, dim), sparse=True)
        self.relation = torch.nn.Embedding(relations, dim, _weight=0.1 * torch.randn(relations, dim), sparse=True)

    def score(self, head, relation, tail):  # any function of rows: this one multiplies complex numbers
        h, r, t = self.entity(head), self.relation(relation), self.entity(tail)
        turned = torch.view_as_real(torch.view_as_complex(h.unflatten(-1, (-1, 2))) * torch.view_as_complex(r.unflatten(-1, (-1, 2))))
        return torch.einsum("nd,kd->nk" if tail.dim() == 1 else "nd,nkd->nk", turned.flatten(-2), t)

    def forward(self, head, relation, tail, wrong):  # the true tail is among those of the other edges, and wrong ones
        return F.cross_entropy(self.score(head, relation, torch.cat([tail, wrong])), torch.arange(len(head)))


args = options(arguments("knowledge-graph embeddings", ways=False)).parse_args()
run, graph = Run(args, plain=True), load(args)
model = Model(graph.nodes, graph.relations, args.dim)
parallel = torch.nn.parallel.DistributedDataParallel(model) if WORLD > 1 else model
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
batches = Batches(graph, args, 128)
with Took(run) as took:
    for epoch in range(args.epochs):
        for batch in took.count(batches):
            optimizer.zero_grad()
            parallel(*batch).backward()
            optimizer.step()
run.end(took, program="kge", mrr=ranked(graph, model.score))
