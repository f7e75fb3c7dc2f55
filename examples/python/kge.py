"""Knowledge-graph embeddings in twenty lines, with a score function of one's own. kge_torch.py does the same without Godwit.

    torchrun --nproc-per-node=4 kge.py --data …/fb15k-237 --epochs 5 --dim 64
"""

import torch
import torch.nn.functional as F

import godwit
from common import Run, Took, arguments
from graph import Batches, load, options, ranked


class Model(torch.nn.Module):
    def __init__(self, entities, relations, dim):
        super().__init__()
        self.entity = godwit.nn.Embedding(entities, dim, init=godwit.normal(0, 0.1))
        self.relation = godwit.nn.Embedding(relations, dim, init=godwit.normal(0, 0.1))

    def score(self, head, relation, tail):  # any function of rows: this one multiplies complex numbers
        h, r, t = self.entity(head), self.relation(relation), self.entity(tail)
        turned = torch.view_as_real(torch.view_as_complex(h.unflatten(-1, (-1, 2))) * torch.view_as_complex(r.unflatten(-1, (-1, 2))))
        return torch.einsum("nd,kd->nk" if tail.dim() == 1 else "nd,nkd->nk", turned.flatten(-2), t)

    def forward(self, head, relation, tail, wrong):  # the true tail is among those of the other edges, and wrong ones
        return F.cross_entropy(self.score(head, relation, torch.cat([tail, wrong])), torch.arange(len(head)))


args = options(arguments("knowledge-graph embeddings", ways=False)).parse_args()
run, graph = Run(args), load(args)
model = Model(graph.nodes, graph.relations, args.dim)
optimizer = godwit.optim.Adagrad(godwit.parameters(model), lr=0.1)
batches = godwit.lookahead(Batches(graph, args, 128), keys=lambda b: {model.entity: torch.cat([b[0], b[2], b[3]]), model.relation: b[1]})
with Took(run) as took:
    for epoch in range(args.epochs):
        for batch in took.count(batches):
            optimizer.zero_grad()
            model(*batch).backward()
            optimizer.step()
run.end(took, program="kge", mrr=ranked(graph, model.score))
