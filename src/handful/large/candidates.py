"""Shortlists: for each query the m classes with the highest scores, found exactly or by FAISS, and the mass they drop.

Scores are `⟨z, W_k⟩ + b_k`, in nats: those of a head, or `-½‖z - w_k‖²` up to a constant per query. Exact lists come
from one matrix product. Its K columns are taken as K/32 groups of 32; the m best classes lie in the m groups with the
highest maxima, so only those are searched, which costs a fraction of the product.

Under equal proportions the mass outside a list is `1 - Σ_list exp(score) / Σ_all exp(score)`. The second sum takes K
exponentials, which take nearly as long as the product, so it is computed for every eighth query only (every 256th with
FAISS, where it takes a separate product).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.errors import OptionError
from handful.machine.extras import import_extra
from handful.machine.folders import Folder
from handful.machine.sealed import check_seal, seal
from handful.numerics.simplex import lowest_log
from handful.shapes import Float, Int

SHORTLISTS = ("exact", "faiss_ivf", "faiss_hnsw")
GROUP = 32
MEASURED_EVERY, MEASURED_EVERY_FAISS = 8, 256
# Numbers in one block of scores: 32 MB.
SCORE_BLOCK_NUMBERS = 2**23
FEWEST_ROWS, MOST_ROWS = 16, 4096
# FAISS searches in the leading principal directions of the means, then this many times m classes are ordered by their
# exact distances.
LEADING_DIRECTIONS, REFINED = 64, 2
# The inverted file has this many times √K lists, of which a query visits some. Class means have no clusters that more
# rounds of k-means would find.
LISTS_PER_ROOT, VISITED_LISTS, KMEANS_ROUNDS = 2, 32, 5
# Links of HNSW, and how many candidates a search keeps.
HNSW_LINKS, HNSW_EFFORT = 16, 64


@dataclass(frozen=True, eq=False)
class Contenders:
    """Classes that queries are compared with, padded to whole groups with classes that are never chosen."""

    weights: Float[Tensor, "padded dim"]
    offsets: Float[Tensor, "padded"]  # -inf for padding
    n_classes: int

    @classmethod
    def of(cls, weights: Float[Tensor, "class dim"], offsets: Float[Tensor, "class"]) -> Contenders:
        """Pad."""
        n_classes, dim = weights.shape
        missing = -n_classes % GROUP
        padded = torch.cat([weights.float(), weights.new_zeros(missing, dim).float()])
        return cls(padded, torch.cat([offsets, offsets.new_full((missing,), -torch.inf)]).float(), n_classes)

    @classmethod
    def of_prototypes(cls, prototypes: Float[Tensor, "class dim"]) -> Contenders:
        """`W_k = w_k` and `b_k = -½‖w_k‖²`."""
        return cls.of(prototypes, -0.5 * prototypes.square().sum(-1))

    @cached_property
    def name(self) -> str:
        """Hash of it all, under which shortlists are kept."""
        digest = hashlib.sha256(self.weights.numpy().data)
        digest.update(self.offsets.numpy().data)
        return f"{self.n_classes}-{digest.hexdigest()[:16]}"

    def scores(self, points: Float[Tensor, "query dim"]) -> Float[Tensor, "query padded"]:
        """`⟨z, W_k⟩ + b_k`; -inf for padding."""
        return torch.addmm(self.offsets, points, self.weights.mT)

    def scores_of(
        self, points: Float[Tensor, "query dim"], classes: Int[Tensor, "query listed"]
    ) -> Float[Tensor, "query listed"]:
        """`⟨z, W_k⟩ + b_k` for some classes of each query."""
        scores = torch.empty(classes.shape)
        size = max(1, SCORE_BLOCK_NUMBERS // (classes.shape[-1] * points.shape[-1]))
        for start in range(0, len(points), size):
            rows = slice(start, start + size)
            products = torch.bmm(self.weights[classes[rows]], points[rows].unsqueeze(-1)).squeeze(-1)
            scores[rows] = products + self.offsets[classes[rows]]
        return scores

    def rows_at_once(self, index: FaissIndex | None = None) -> int:
        """Return the number of queries in one block of scores; many with an index, which scores few classes."""
        if index is not None:
            return MOST_ROWS
        return max(FEWEST_ROWS, min(MOST_ROWS, SCORE_BLOCK_NUMBERS // len(self.weights)))


@dataclass(frozen=True, eq=False)
class Lists:
    """Shortlists of some queries; `log_totals` are NaN where the whole sum was not computed."""

    classes: Int[Tensor, "query listed"]
    scores: Float[Tensor, "query listed"]
    log_totals: Float[Tensor, "query"]

    def of_classes(self, values: Float[Tensor, "class"]) -> Float[Tensor, "query listed"]:
        """Return `values[classes]`."""
        return values.index_select(0, self.classes.flatten()).view(self.classes.shape)

    def by_class(self, weights: Float[Tensor, "query listed"], n_classes: int) -> Float[Tensor, "class"]:
        """Add weights by class, in double precision and in order."""
        return torch.bincount(self.classes.flatten(), weights.double().flatten(), n_classes)

    def packed(self) -> Int[np.ndarray, "query number"]:
        """Return everything as one array of 32-bit words."""
        columns = [self.classes, self.scores.view(torch.int32), self.log_totals.view(torch.int32).unsqueeze(-1)]
        words: np.ndarray = torch.cat(columns, -1).numpy()
        return words

    @classmethod
    def unpacked(cls, words: Int[np.ndarray, "query number"]) -> Lists:
        """Undo `packed`, into a copy."""
        numbers = torch.from_numpy(np.array(words))
        length = (numbers.shape[-1] - 1) // 2
        scores = numbers[:, length : 2 * length].contiguous().view(torch.float32)
        totals = numbers[:, 2 * length].contiguous().view(torch.float32)
        return cls(numbers[:, :length].contiguous(), scores, totals)


def exact_lists(points: Float[Tensor, "query dim"], contenders: Contenders, length: int) -> Lists:
    """Return the `length` best classes of each query; all of them, in their order, if there are no more."""
    scores = contenders.scores(points)
    n_query, n_padded = scores.shape
    if length >= contenders.n_classes:
        kept = scores[:, : contenders.n_classes].contiguous()
        classes = torch.arange(contenders.n_classes, dtype=torch.int32).expand(n_query, -1)
        return Lists(classes, kept, kept.logsumexp(-1))
    groups = scores.view(n_query, GROUP, n_padded // GROUP)
    chosen = groups.amax(1).topk(min(length, groups.shape[-1]), sorted=False).indices
    n_chosen = chosen.shape[-1]
    searched = groups.gather(2, chosen.unsqueeze(1).expand(-1, GROUP, -1)).flatten(1)
    best = searched.topk(length)
    within = chosen.gather(1, best.indices % n_chosen)
    classes = (best.indices // n_chosen) * groups.shape[-1] + within
    log_totals = scores.new_full((n_query,), torch.nan)
    log_totals[::MEASURED_EVERY] = log_sums(scores[::MEASURED_EVERY], best.values[::MEASURED_EVERY, :1])
    return Lists(classes.int(), best.values, log_totals)


def faiss_lists(points: Float[Tensor, "query dim"], contenders: Contenders, length: int, index: FaissIndex) -> Lists:
    """Ask an index for the classes with the nearest means; where it finds fewer, the list is filled with -inf."""
    classes = torch.from_numpy(index.search(points.numpy(), min(length, contenders.n_classes)))
    missing = classes < 0
    scores = contenders.scores_of(points, classes.clamp(min=0)).masked_fill_(missing, -torch.inf)
    log_totals = scores.new_full((len(points),), torch.nan)
    whole = contenders.scores(points[::MEASURED_EVERY_FAISS])
    log_totals[::MEASURED_EVERY_FAISS] = log_sums(whole, whole.amax(-1, keepdim=True))
    return Lists(classes.masked_fill(missing, 0).int(), scores, log_totals)


def log_sums(scores: Float[Tensor, "query class"], largest: Float[Tensor, "query 1"]) -> Float[Tensor, "query"]:
    """`ln Σ_k exp(score_k)`, skipping exponentials so small that they are slow."""
    shifted = (scores - largest).clamp_(min=lowest_log(scores.dtype))
    return shifted.exp_().sum(-1).log_() + largest.squeeze(-1)


class FaissIndex:
    """An index over class means in a folder, read where it is needed; it is built once per catalogue."""

    def __init__(self, folder: Folder, name: str, kind: str) -> None:
        self.folder, self.name, self.kind = folder, name, kind
        self._index: Any = None

    def build(self, means: Float[Tensor, "class dim"]) -> None:
        """Build and write it, unless it exists."""
        with self.folder.opened(self.name) as there:
            if there is not None:
                check_seal(there, self.name)
                return
        faiss = import_extra("faiss", "faiss")
        faiss.omp_set_num_threads(1)
        n_classes, dim = means.shape
        leading = min(dim, n_classes, LEADING_DIRECTIONS)
        if self.kind == "faiss_ivf":
            n_lists = max(1, int(LISTS_PER_ROOT * n_classes**0.5))
            rough = faiss.IndexIVFFlat(faiss.IndexFlatL2(leading), leading, n_lists)
            rough.cp.min_points_per_centroid, rough.cp.niter = 1, KMEANS_ROUNDS
            rough.nprobe = min(n_lists, VISITED_LISTS)
        elif self.kind == "faiss_hnsw":
            rough = faiss.IndexHNSWFlat(leading, HNSW_LINKS)
            rough.hnsw.efSearch = HNSW_EFFORT
        else:
            raise OptionError(f"shortlist must be one of {', '.join(SHORTLISTS)}, got {self.kind!r}")
        index = faiss.IndexRefineFlat(faiss.IndexPreTransform(faiss.PCAMatrix(dim, leading), rough))
        index.k_factor = REFINED
        index.train(means.numpy())
        index.add(means.numpy())
        with self.folder.written(self.name) as place:
            faiss.write_index(index, str(place))
            seal(place, self.name)

    def search(self, points: np.ndarray, length: int) -> np.ndarray:
        """Return the nearest classes, -1 where there are none."""
        faiss = import_extra("faiss", "faiss")
        faiss.omp_set_num_threads(1)
        if self._index is None:
            with self.folder.opened(self.name) as there:
                self._index = faiss.read_index(str(there))
        classes: np.ndarray = self._index.search(np.ascontiguousarray(points), length)[1]
        return classes

    def __getstate__(self) -> dict[str, Any]:
        """Pickle where it is, not the index."""
        return {**vars(self), "_index": None}
