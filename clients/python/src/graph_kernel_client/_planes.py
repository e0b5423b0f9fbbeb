"""The planes beside the turns, and the ranking over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg.rows import DictRow

from ._sql import escaped, identifier, quoted
from .errors import GraphKernelError
from .types import DualPlaneHit, SliceScopedResults

_RANK_OFFSET = 60


@dataclass(frozen=True)
class Plane:
    """A table of atoms or proposals, and the names of its columns. `sources` is an array of ids."""

    table: str
    sources: str
    id: str = "id"
    content: str = "content"
    embedding: str = "embedding"
    source_slice_id: str = "source_slice_id"

    def name(self) -> str:
        """The table, quoted; a dot separates its schema."""
        return ".".join(map(quoted, self.table.split(".")))

    def query(self, table: str) -> str:
        names = {key: identifier(getattr(self, key)) for key in self.__dataclass_fields__}
        names["table"] = escaped(table)
        return (
            "SELECT {id}::pg_catalog.text AS id, {content}::pg_catalog.text AS content,"
            " {embedding}::real[] AS embedding,"
            " ARRAY(SELECT pg_catalog.unnest({sources}))::pg_catalog.text[] AS sources FROM {table}"
            " WHERE {source_slice_id}::pg_catalog.text OPERATOR(pg_catalog.=) %s ORDER BY 1".format(**names)
        )


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.sqrt(math.fsum(x * x for x in one)) * math.sqrt(math.fsum(y * y for y in other))
    return math.fsum(x * y for x, y in zip(one, other, strict=True)) / lengths if lengths else -1.0


def ranked(
    plane: Literal["atom", "proposal"], table: Plane, rows: Sequence[DictRow], vector: Sequence[float]
) -> list[DualPlaneHit]:
    """The rows by similarity; those without an embedding of finite numbers, of as many as it has, are not found.

    Where all have others, it is an error.
    """
    dimensions = {len(row["embedding"]) for row in rows if row["embedding"]}
    if dimensions and len(vector) not in dimensions:
        raise GraphKernelError(
            f"embeddings of {min(dimensions)} and of {len(vector)} dimensions",
            sqlstate="22023",
            word="EMBEDDING_DIMENSIONS",
        )
    found = [
        (_cosine(row["embedding"], vector), row)
        for row in rows
        if row["embedding"]
        and len(row["embedding"]) == len(vector)
        and all(isinstance(number, float) and math.isfinite(number) for number in row["embedding"])
    ]
    found.sort(key=lambda pair: (-pair[0], pair[1]["id"]))
    return [
        DualPlaneHit(
            plane,
            row["id"],
            row["content"] or "",
            0.0,
            {"table": table.table, "sources": row["sources"], "similarity": similarity},
        )
        for similarity, row in found
    ]


def fused(turns: SliceScopedResults, *planes: list[DualPlaneHit]) -> list[DualPlaneHit]:
    """All hits by the reciprocal of their rank in their own list; of the same rank a turn comes first."""
    signed: dict[str, Any] = turns.provenance.document or {}
    of_turns = [DualPlaneHit("turn", str(result.turn_id), result.content, 0.0, signed, result) for result in turns]
    hits: list[DualPlaneHit] = []
    for hits_of_plane in (of_turns, *planes):
        for rank, hit in enumerate(hits_of_plane, start=1):
            hit.score = 1 / (_RANK_OFFSET + rank)
            hits.append(hit)
    hits.sort(key=lambda hit: -hit.score)
    return hits
