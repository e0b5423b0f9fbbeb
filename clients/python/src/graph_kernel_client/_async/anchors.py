"""`AnchorResolver` and `AutoAnchorResolver`: the turn at which a slice is taken."""

from __future__ import annotations

from collections.abc import Sequence

from .._messages import storable
from .._sql import EQ, escaped, identifier
from ..errors import GraphKernelError
from ..types import TurnId, turn_uuid
from .database import Client, Database, Source
from .embedding import Embed, embedded_if_any

_NOTHING = ("ANCHOR_NOT_FOUND", "SESSION_NOT_FOUND", "EMBEDDING_NOT_FOUND")


class AnchorResolver(Client):
    """Finds anchors. Each method returns the id of a turn, or None where there is none that the caller may see."""

    def __init__(
        self,
        connection: Source | Database | None = None,
        *,
        embed: Embed | None = None,
        project_column: str = "project_id",
        timeout: float | None = None,
        graph: str | None = None,
        schema: str | None = None,
    ) -> None:
        super().__init__(connection, timeout=timeout, graph=graph, schema=schema)
        self._embed = embed
        self._project_column = project_column

    async def _anchor(self, arguments: str, value: object) -> str | None:
        try:
            rows = await self.database.fetch(
                f"SELECT anchor_turn_id::pg_catalog.text AS anchor FROM {{gk}}graph_anchor({arguments})", (value,)
            )
        except GraphKernelError as error:
            if error.word in _NOTHING:
                return None
            raise
        return rows[0]["anchor"] if rows else None

    async def resolve_explicit(self, turn_id: TurnId) -> str | None:
        """This turn, if it is there."""
        return await self._anchor("%s::pg_catalog.uuid, NULL::pg_catalog.text, NULL::real[]", turn_uuid(turn_id))

    async def resolve_from_session(self, session_id: str) -> str | None:
        """The latest turn of the session."""
        return await self._anchor("NULL::pg_catalog.uuid, %s::pg_catalog.text, NULL::real[]", session_id)

    async def resolve_from_query(self, query: str, embedding: Sequence[float] | None = None) -> str | None:
        """The turn whose embedding is nearest to that of the query, which `embed` makes where none is given.

        Without either, the turn that fits the words of the query best.
        """
        query = storable(query)
        vector = await embedded_if_any(self._embed, query, embedding)
        if vector is None:
            rows = await self.database.fetch(
                "SELECT turn_id::pg_catalog.text AS anchor"
                " FROM {gk}graph_search(NULL::real[], %s::pg_catalog.text, 1, %s::pg_catalog.jsonb)",
                (query, "{}"),
            )
            return rows[0]["anchor"] if rows else None
        return await self._anchor("NULL::pg_catalog.uuid, NULL::pg_catalog.text, %s::real[]", vector)

    async def resolve_temporal(self, limit: int = 5, project_id: str | None = None) -> list[str]:
        """The latest turns, the latest first; of a project by the column `project_column` of the turns."""
        if project_id is None:
            rows = await self.database.fetch(
                "SELECT anchor_turn_id::pg_catalog.text AS anchor"
                " FROM {gk}graph_anchors_recent(%s::integer, NULL::pg_catalog.text)",
                (limit,),
            )
            return [row["anchor"] for row in rows]
        async with self.database.transaction() as transaction:
            bound = await transaction.graph()
            mapped = (bound["columns"] or {}).get("turns") or {}
            columns = mapped.get("id") or "id", self._project_column, mapped.get("created_at") or "created_at"
            if not all(isinstance(column, str) for column in columns):
                raise GraphKernelError(
                    f"{bound['turns']} is bound with expressions for ids or times: turns of a project are not sought",
                    sqlstate="0A000",
                    word="INVALID_BINDING",
                )
            turn, project, created = map(identifier, columns)
            rows = await transaction.fetch(
                f"SELECT {turn}::pg_catalog.text AS anchor FROM {escaped(bound['turns'])}"
                f" WHERE {project}::pg_catalog.text {EQ} %s"
                f" ORDER BY {created} DESC NULLS LAST, {turn} LIMIT %s",
                (project_id, limit),
            )
        return [row["anchor"] for row in rows]


class AutoAnchorResolver:
    """Tries what is given in this order: explicit, session, semantic, temporal.

    Where a session is misspelt, or hidden from the caller, the answer is a turn of another one. Where that is an error,
    call the method of `AnchorResolver` that is meant.
    """

    def __init__(self, resolver: AnchorResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self,
        turn_id: TurnId | None = None,
        session_id: str | None = None,
        query: str | None = None,
        embedding: Sequence[float] | None = None,
    ) -> str | None:
        anchor: str | None = None
        if turn_id is not None:
            anchor = await self._resolver.resolve_explicit(turn_id)
        if anchor is None and session_id is not None:
            anchor = await self._resolver.resolve_from_session(session_id)
        if anchor is None and (query is not None or embedding is not None):
            try:
                anchor = await self._resolver.resolve_from_query(query or "", embedding)
            except GraphKernelError as error:
                # A table without words, or without embeddings, is one in which they find nothing.
                if error.word not in ("NO_WORDS", "NO_EMBEDDINGS"):
                    raise
        if anchor is None:
            latest = await self._resolver.resolve_temporal(limit=1)
            anchor = latest[0] if latest else None
        return anchor
