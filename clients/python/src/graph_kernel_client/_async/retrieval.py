"""`MemoryRetriever` and `DualPlaneRetriever`: searches, within a slice or everywhere, with their provenance."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from .._messages import storable
from .._planes import Plane, fused, ranked
from .._sql import operator
from ..errors import GraphKernelError
from ..types import (
    DualPlaneResults,
    GlobalResults,
    RetrievalProvenance,
    SearchResult,
    SliceExport,
    SliceScopedQuery,
    SliceScopedResults,
    TrajectoryCoordinates,
    TurnId,
    document_of,
    turn_uuid,
)
from .database import Client, Database, Source
from .embedding import Embed, embedded, embedded_if_any

_PROVENANCE = f"{operator('->')} 'provenance'::pg_catalog.text"
_COLUMNS = """rank, turn_id, similarity, content, session_id, role, phase, salience, trajectory_depth,
              trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal, trajectory_complexity, created_at,
              provenance"""
_METADATA = ("rank", "strength", "session_id", "phase", "salience", "created_at")


def _least(name: str, number: Any) -> float | None:
    """One float of whatever number it is, so that a search and the record of it are given the same."""
    if number is None:
        return None
    try:
        least = float(number)
    except (TypeError, ValueError, OverflowError):
        least = math.nan
    if not math.isfinite(least):
        raise GraphKernelError(f"{name} is no finite number: {number!r}", sqlstate="22023", word="INVALID_FILTER")
    return least


def _limit(limit: Any) -> int:
    try:
        return index(limit)
    except TypeError as error:
        raise GraphKernelError(f"no limit: {limit!r}", sqlstate="22023", word="INVALID_LIMIT") from error


def _result(row: DictRow) -> SearchResult:
    try:
        conversation: uuid.UUID | str = uuid.UUID(row["session_id"])
    except ValueError:
        conversation = row["session_id"]
    if str(conversation) != row["session_id"]:  # another spelling, which is the name of the session
        conversation = row["session_id"]
    return SearchResult(
        turn_id=row["turn_id"],
        content=row["content"] or "",
        role=row["role"],
        similarity=row["similarity"],
        conversation_id=conversation,
        trajectory=TrajectoryCoordinates(
            depth=row["trajectory_depth"],
            sibling_order=row["trajectory_sibling_order"],
            homogeneity=row["trajectory_homogeneity"],
            temporal=row["trajectory_temporal"],
            complexity=row["trajectory_complexity"],
        ),
        metadata={key: row[key] for key in _METADATA if key in row},
    )


def _with_record(select: str, search: str, body: str, given: str) -> str:
    """A search, with its record also where nothing is found: then one row, without a rank, has that of the body."""
    return f"""{select},
                       CASE WHEN rank IS NULL THEN ({body}({given}) {_PROVENANCE})::pg_catalog.jsonb END AS of_nothing
                  FROM (SELECT) AS asked LEFT JOIN {search}({given}) ON true
                 ORDER BY rank"""


def _found(rows: list[DictRow]) -> tuple[list[SearchResult], RetrievalProvenance]:
    """The results with their record. That of nothing found, whose row has no rank, is in the body of a response."""
    nothing = rows[0]["rank"] is None
    record = RetrievalProvenance.from_document(rows[0]["of_nothing" if nothing else "provenance"])
    return [] if nothing else [_result(row) for row in rows], record


class MemoryRetriever(Client):
    """Searches. `embed` makes the embedding of a query, with the model that made those of the turns."""

    def __init__(
        self,
        connection: Source | Database | None = None,
        *,
        embed: Embed | None = None,
        timeout: float | None = None,
        graph: str | None = None,
        schema: str | None = None,
    ) -> None:
        super().__init__(connection, timeout=timeout, graph=graph, schema=schema)
        self._embed = embed

    async def search_slice(
        self,
        query: str | SliceScopedQuery,
        slice_export: SliceExport | None = None,
        limit: int = 10,
        min_similarity: float | None = None,
        min_salience: float | None = None,
        *,
        embedding: Sequence[float] | None = None,
        owner: str | None = None,
    ) -> SliceScopedResults:
        """The turns of the slice that fit the query best: no other can be found.

        The slice is what the export says, whatever has become of it since; it must verify. Without an embedding, and a
        function that makes one, by the words alone.
        """
        if isinstance(query, SliceScopedQuery):
            limit, min_similarity, min_salience = query.limit, query.min_similarity, query.min_salience
            slice_export, query = slice_export or query.slice_export, query.text
        if slice_export is None:
            raise GraphKernelError("a search within a slice needs the slice", sqlstate="22004", word="INVALID_EXPORT")
        text: str = storable(query)
        limit = _limit(limit)
        min_similarity, min_salience = _least("min_similarity", min_similarity), _least("min_salience", min_salience)
        asked: dict[str, Any] = {
            "slice": document_of(slice_export),
            "vector": await embedded_if_any(self._embed, text, embedding),
            "query": text,
            "limit": limit,
            "min_similarity": min_similarity,
            "min_salience": min_salience,
            "options": Jsonb({} if owner is None else {"owner": owner}),
        }
        rows = await self.database.fetch(
            _with_record(
                f"SELECT {_COLUMNS}",
                "{gk}graph_search_export",
                "graph_kernel.search_export_body",
                """%(vector)s::real[], %(slice)s::pg_catalog.json, %(limit)s::integer, %(min_similarity)s::real,
                   %(min_salience)s::real, %(query)s::pg_catalog.text, %(options)s::pg_catalog.jsonb""",
            ),
            asked,
        )
        return SliceScopedResults(*_found(rows))

    async def search_global(
        self,
        query: str,
        limit: int = 10,
        min_similarity: float | None = None,
        *,
        embedding: Sequence[float] | None = None,
        owner: str | None = None,
    ) -> GlobalResults:
        """The turns of the whole graph that fit the query best. Never admissible.

        Without an embedding, and a function that makes one, by the words alone.
        """
        query, limit = storable(query), _limit(limit)
        given = {"owner": owner, "min_similarity": _least("min_similarity", min_similarity)}
        filter = {key: value for key, value in given.items() if value is not None}
        asked = {
            "vector": await embedded_if_any(self._embed, query, embedding),
            "query": query,
            "limit": limit,
            "filter": Jsonb(filter),
        }
        rows = await self.database.fetch(
            _with_record(
                f"SELECT strength, {_COLUMNS}",
                "{gk}graph_search",
                "graph_kernel.search_body",
                "%(vector)s::real[], %(query)s::pg_catalog.text, %(limit)s::integer, %(filter)s::pg_catalog.jsonb",
            ),
            asked,
        )
        return GlobalResults(*_found(rows))

    # What the old layer had before there were slices.
    search = search_global

    async def is_admissible_result(self, provenance: RetrievalProvenance) -> bool:
        """Whether the kernel signed this record, and found it admissible. One without a document never is."""
        return await self._ask("{gk}graph_is_admissible_result(%s::pg_catalog.jsonb)", provenance)

    async def can_promote(self, result: SearchResult | TurnId, provenance: RetrievalProvenance) -> bool:
        """`can_promote_to_atom`, as the server says."""
        turn = result.turn_id if isinstance(result, SearchResult) else result
        return await self._ask(
            "{gk}graph_can_promote(%s::pg_catalog.jsonb, %s::pg_catalog.uuid)", provenance, turn_uuid(turn)
        )

    async def _ask(self, expression: str, provenance: RetrievalProvenance, *parameters: object) -> bool:
        document = provenance.document
        # The fields may have been changed since they were read.
        if document is None or provenance != RetrievalProvenance.from_document(document):
            return False
        row = await self.database.fetch_one(f"SELECT {expression} AS yes", (Jsonb(document), *parameters))
        return row["yes"] is True

    async def replay(
        self, provenance: RetrievalProvenance, query: str | None = None, *, embedding: Sequence[float] | None = None
    ) -> list[Mapping[str, Any]]:
        """The search made again, and what it has in common: rows of `matches`, `field`, `was`, `now`."""
        if provenance.document is None:
            raise GraphKernelError("the provenance has no document", sqlstate="22023", word="INVALID_PROVENANCE")
        # A search by words alone is made again by them.
        by_words = provenance.document["query_embedding_hash"] is None
        vector = [] if by_words else await embedded(self._embed, query or provenance.query_text, embedding)
        rows = await self.database.fetch(
            "SELECT matches, field, was, now FROM {gk}graph_replay_retrieval(%s::pg_catalog.jsonb, %s::real[])",
            (Jsonb(provenance.document), vector),
        )
        return list(rows)

    async def trace(self, provenance: RetrievalProvenance) -> str:
        """Keeps the record in the bound table of traces, and returns its id."""
        if provenance.document is None:
            raise GraphKernelError("the provenance has no document", sqlstate="22023", word="INVALID_PROVENANCE")
        row = await self.database.fetch_one(
            "SELECT {gk}graph_trace(%s::pg_catalog.jsonb)::pg_catalog.text AS id", (Jsonb(provenance.document),)
        )
        stored: str = row["id"]
        return stored


class DualPlaneRetriever:
    """Turns of a slice, and the atoms and proposals that were admitted on it, in one ranking.

    An atom is admitted on the slice when it says so in `source_slice_id` and all its `source_turn_ids` are in it; a
    proposal when it says so and all its `source_atoms` are such atoms. Both are ranked by their embeddings, as turns
    are; the lists are joined by reciprocal ranks, 1 / (60 + rank).
    """

    def __init__(
        self,
        retriever: MemoryRetriever,
        *,
        atoms: Plane | None = None,
        proposals: Plane | None = None,
    ) -> None:
        self._retriever = retriever
        self._atoms = atoms or Plane("public.semantic_atoms", sources="source_turn_ids")
        self._proposals = proposals or Plane("public.semantic_proposals", sources="source_atoms")

    async def search(
        self,
        query: str,
        slice_export: SliceExport,
        limit: int = 10,
        *,
        embedding: Sequence[float] | None = None,
    ) -> DualPlaneResults:
        """The best of all planes. `provenance` is that of the turns; a hit of another plane has its own sources."""
        vector = await embedded(self._retriever._embed, query, embedding)
        turns = await self._retriever.search_slice(query, slice_export, limit, embedding=vector)
        atoms = await self._admitted(self._atoms, slice_export, frozenset(slice_export.turn_ids))
        proposals = await self._admitted(self._proposals, slice_export, frozenset(row["id"] for row in atoms))
        hits = fused(
            turns,
            ranked("atom", self._atoms, atoms, vector),
            ranked("proposal", self._proposals, proposals, vector),
        )
        return DualPlaneResults(hits[:limit], turns.provenance)

    async def _admitted(self, plane: Plane, export: SliceExport, sources: frozenset[str]) -> list[DictRow]:
        async with self._retriever.database.transaction() as transaction:
            (table,) = await transaction.named(plane.name())
            rows = await transaction.fetch(plane.query(table), (export.slice_id,))
        return [row for row in rows if row["sources"] and sources.issuperset(row["sources"])]
