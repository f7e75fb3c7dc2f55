"""Whether a model with Godwit's embeddings is as good as with torch's, from the same first values: the AUC of examples/python/ctr.py.

    python python/bench/parity.py [--torch] [options of ctr.py]
    torchrun --nproc-per-node=4 python/bench/parity.py [options of ctr.py]

The batch (--batch) is that of all ranks together, so that any number of ranks takes the same steps.
"""

import runpy
import sys
from pathlib import Path

import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

import common  # noqa: E402
import godwit  # noqa: E402


def embedding(self, rows, dim, std):
    """Is Run.embedding with first values that torch draws for either side."""
    values = torch.empty(rows, dim).normal_(0, std, generator=torch.Generator().manual_seed(self.args.seed))
    if self.cluster is None:
        return torch.nn.Embedding.from_pretrained(values, freeze=self.args.frozen, sparse=True)
    return godwit.nn.Embedding.from_pretrained(values, freeze=self.args.frozen)


if __name__ == "__main__":
    common.Run.embedding = embedding
    runpy.run_path(str(EXAMPLES / "ctr.py"), run_name="__main__")
