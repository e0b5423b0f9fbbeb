"""`Conversation`: messages of an agent as turns, prompts of them within a budget, and the record of each prompt."""

from __future__ import annotations

import asyncio
import json
import uuid
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from psycopg.types.json import Jsonb

from .._messages import Part, call_forms, is_text_alone, not_a_message, parts, redacted_result, storable, tokens
from .._policies import policy_text
from .._rows import moment, with_payload
from .._sql import EQ, operator, small
from ..errors import GraphKernelError, PinLeftOut
from ..types import (
    Document,
    PromptTurn,
    Recall,
    RecalledTurn,
    ShownMessage,
    SliceExport,
    Step,
    TurnId,
    document_of,
    turn_uuid,
)
from .database import Client, Database, Source, Transaction
from .embedding import Embed, embedded, embedded_if_any

_ROLES = ("user", "assistant", "system", "tool")
_MOST_TURNS = 10_000  # of a slice
_ATTEMPTS = 5
_MOST_PAST = 100
_MOST_PINS = 64  # of a policy
CountTokens = Callable[[Mapping[str, Any]], int]
Format = Literal["openai", "responses", "anthropic", "plain"]
InTransaction = Callable[[Transaction], Awaitable[None]]


class Conversation(Client):
    """A conversation in the tables that `graph_kernel.create_tables` makes, or tables of that form bound as `graph`.

    `count_tokens` says how many tokens a message takes, which it is given as it is stored; without it a quarter of the
    bytes of its text, calls and thoughts, and 1600 for each picture or file.
    `embed` makes the embedding of each text, for the column `embedding`. `owner` is whose turns are written. A session
    that is there goes on at its latest turn, and where others have appended in the meantime, behind what they have.
    """

    def __init__(
        self,
        connection: Source | Database | None = None,
        session_id: str | None = None,
        *,
        count_tokens: CountTokens | None = None,
        embed: Embed | None = None,
        owner: str | None = None,
        timeout: float | None = None,
        graph: str | None = None,
        schema: str | None = None,
    ) -> None:
        super().__init__(connection, timeout=timeout, graph=graph, schema=schema)
        self.session_id = str(uuid.uuid4()) if session_id is None else session_id
        self._count_tokens = count_tokens
        self._embed = embed
        self._owner = owner
        # Where the conversation stands, and the type of the edge to what is appended there. None: at the latest turn of
        # the session; empty: before all turns.
        self._heads: list[uuid.UUID] | None = None
        self._edge_type = "reply"
        # Where it stood before, to go back to where those turns are gone; of a branch the first is where it began.
        self._past: list[tuple[list[uuid.UUID] | None, str]] = []
        self._step: Step | None = None
        self._writing = asyncio.Lock()

    async def append(self, message: Any) -> list[str]:
        """Stores a message, and returns the ids of its turns: each result of a call is a turn of its own.

        A message is an object in the form of OpenAI's chat completions or of Anthropic's messages, or what their
        packages return: a completion of one choice, a message, a response, or one item of it. It follows the turn
        before it; a result follows its call, and what comes next all results.
        """
        return await self._append(parts(message), strict=True)

    async def append_parts(self, parts: Sequence[Part], *, before: InTransaction | None = None) -> list[str]:
        """Stores turns in the form of another package: for adapters. All of them, or none.

        Those whose id is stored already are left out. A result whose call is not there follows the turn before it.
        `before` is called in the transaction, before it reads or writes turns.
        """
        ids = [part.turn_id for part in parts if part.turn_id is not None]
        if ids:
            # Looked for again below: here to spare a model the work.
            async with self.database.transaction() as transaction:
                turns, _ = await transaction.tables()
                stored = await self._stored(transaction, turns, ids)
            parts = [part for part in parts if part.turn_id not in stored]
        return await self._append(parts, before=before)

    async def _append(
        self, parts: Sequence[Part], *, strict: bool = False, before: InTransaction | None = None
    ) -> list[str]:
        """Stores turns; where it is strict, roles that are known alone, and results whose calls are there."""
        # Before the transaction begins: a model may take its time.
        rows = [await self._row(said) for said in await self._read(parts, strict)]
        written = []
        async with self._writing:
            async with self.database.transaction() as transaction:
                if before is not None:
                    await before(transaction)
                turns, edges = await transaction.tables()
                await transaction.lock(turns, self.session_id)
                heads, edge_type = before_these = await self._place(transaction, turns, edges)
                stored = await self._stored(transaction, turns, [part.turn_id for part in parts if part.turn_id])
                for part, row in zip(parts, rows, strict=True):
                    if part.turn_id in stored:
                        continue
                    calls = await self._calls(transaction, turns, edges, heads, part, strict) if part.answers else []
                    # Also what came since the calls, such as another call, which would be on no line else; each result
                    # follows it, as any of them may be removed.
                    others = await self._since(transaction, turns, edges, calls, heads) if calls else []
                    parents = list(dict.fromkeys([*calls, *others])) or heads
                    turn = row["id"]
                    await transaction.insert(turns, row)
                    for parent in parents:
                        await transaction.execute(
                            f"INSERT INTO {edges} (parent_turn_id, child_turn_id, edge_type) VALUES (%s, %s, %s)",
                            (parent, turn, "reply" if calls else edge_type),
                        )
                    # Results of one call stand side by side.
                    beside = [head for head in heads if head not in parents] if calls else []
                    heads, edge_type = [*beside, turn], "reply"
                    written.append(turn)
                    stored.add(turn)
            if written:
                stood = before_these if before_these[0] or self._heads == [] else (None, edge_type)
                self._past = [*self._past[:1], *self._past[1:][-_MOST_PAST:], stood]
            self._heads, self._edge_type = heads or self._heads, edge_type
        return [str(turn) for turn in written]

    async def branch(self, turn_id: TurnId | None = None) -> Conversation:
        """The same conversation from a turn on, or from here: what is appended to one is not seen by the other.

        Both are of one session, which goes on at its latest turn where it is opened again.
        """
        other = Conversation(
            self.database,
            self.session_id,
            count_tokens=self._count_tokens,
            embed=self._embed,
            owner=self._owner,
        )
        async with self.database.transaction() as transaction:
            turns, edges = await transaction.tables()
            if turn_id is None:
                # Before the first turn of both, neither follows the other.
                other._heads, self._edge_type = await self._place(transaction, turns, edges)
                self._heads = other._heads
            else:
                turn = turn_uuid(turn_id)
                if not await transaction.fetch(
                    f"SELECT FROM {turns} WHERE session_id {EQ} %s AND id {EQ} %s", (self.session_id, turn)
                ):
                    raise self._not_a_turn(turn)
                other._heads = await self._end_of_call(transaction, turns, edges, turn)
        other._edge_type = "branch"
        return other

    async def head(self) -> str | None:
        """The turn at which the conversation stands: its latest one."""
        # Not beside an append of this object's, before which it may have read.
        async with self._writing:
            async with self.database.transaction() as transaction:
                turns, edges = await transaction.tables()
                heads, self._edge_type = await self._place(transaction, turns, edges)
                self._heads = heads if heads or self._heads == [] else None
            return str(heads[-1]) if heads else None

    async def messages(
        self,
        format: Format = "openai",
        *,
        max_tokens: int | None = None,
        goal: TurnId | Sequence[TurnId] | bool | None = None,
        recall: str | None = None,
        recall_tokens: int | None = None,
        embedding: Sequence[float] | None = None,
        policy: Mapping[str, Any] | None = None,
        context: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The prompt at the latest turn, as a provider takes it: `openai`, `responses`, `anthropic` or `plain`.

        It is what is given to the provider's call beside its model: `create(model=…, **conversation.messages())`.

        `max_tokens` bounds it, at 16000 unless told. `goal` is pinned: a turn, several, or True for the first message
        of the user with the instructions before it; of a pin that does not fit a `PinLeftOut` warns. `recall`
        is a question, whose hits are recalled in `recall_tokens` of the budget, a quarter unless told. `policy` has
        other keys of SlicePolicy v2. `context` is a SHA-256 of what else is sent, such as model and tools, which the
        record then says too. `options` are those of `graph_messages_json`.
        """
        self._step = None
        step = await self._take(
            format, max_tokens, goal, recall, recall_tokens, embedding, policy or {}, context, options or {}
        )
        self._step = step
        made: dict[str, Any] = step.messages
        return made

    async def record_step(self) -> Step:
        """The record of what `messages` gave last."""
        if self._step is None:
            raise GraphKernelError("there is no prompt to record", sqlstate="55000", hint="Call messages first.")
        return self._step

    async def _take(
        self,
        format: str,
        max_tokens: int | None,
        goal: TurnId | Sequence[TurnId] | bool | None,
        recall: str | None,
        recall_tokens: int | None,
        embedding: Sequence[float] | None,
        more: Mapping[str, Any],
        context: str | None,
        options: Mapping[str, Any],
    ) -> Step:
        anchor = await self.head()
        if anchor is None:
            raise GraphKernelError("the conversation has no message yet", sqlstate="02000", word="SESSION_NOT_FOUND")
        policy: dict[str, Any] = {"preset": "chat", **({} if max_tokens is None else {"max_tokens": max_tokens})}
        if goal is not None and goal is not False:
            policy["pins"] = await self._pins(goal) or None
        if recall is not None:
            policy["seeds"] = await self._seeds(storable(recall), embedding)
            budget = more.get("max_tokens") or max_tokens or 16_000
            policy["recall_tokens"] = max(budget // 4, 1) if recall_tokens is None else recall_tokens
        policy.update(more)
        try:
            row = await self.database.fetch_one(
                """SELECT r::pg_catalog.text AS record,
                          {gk}graph_messages_json(r, %s::pg_catalog.text, %s::pg_catalog.jsonb) AS messages
                     FROM {gk}graph_messages_record(
                              %s::pg_catalog.uuid, %s::{gk}slice_policy, %s::pg_catalog.text) AS r""",
                (format, Jsonb(dict(options)), anchor, policy_text(policy), context),
            )
        except GraphKernelError as error:
            if error.reason != "unattested":
                raise
            raise GraphKernelError(
                "no prompt is made in a transaction that has written turns",
                sqlstate=error.sqlstate,
                word=error.word,
                reason=error.reason,
                hint="Commit what was appended, then call messages.",
            ) from error
        step = Step(row["record"], row["messages"])
        _warn_of_pins(policy, step.turn_ids, 4)
        return step

    async def _pins(self, goal: TurnId | Sequence[TurnId] | bool) -> list[str]:
        async with self.database.transaction() as transaction:
            turns, edges = await transaction.tables()
            if isinstance(goal, bool):
                heads, _ = await self._place(transaction, turns, edges)
                # Whatever is of no other role is read as the user's.
                role = small("role")
                is_users = f"NOT coalesce({role} {EQ} ANY ('{{{{assistant,system,tool}}}}'), false)"
                rows = await transaction.fetch(
                    f"""WITH RECURSIVE line (id) AS (
                            SELECT head FROM pg_catalog.unnest(%(heads)s::pg_catalog.uuid[]) AS head
                            UNION
                            SELECT e.parent_turn_id
                              FROM line AS l JOIN {edges} AS e ON e.child_turn_id {EQ} l.id
                              JOIN {turns} AS t ON t.id {EQ} e.parent_turn_id AND t.session_id {EQ} %(session)s),
                        said AS (SELECT t.id, t.created_at, t.role FROM line AS l JOIN {turns} AS t ON t.id {EQ} l.id)
                        SELECT id::pg_catalog.text AS id FROM said
                         WHERE ({role} {EQ} 'system' OR {is_users})
                           AND (created_at, id) {operator("<=")} (
                               SELECT created_at, id FROM said WHERE {is_users} ORDER BY created_at, id LIMIT 1)
                         ORDER BY created_at, id""",
                    {"session": self.session_id, "heads": heads},
                )
                # The goal, and the latest of the instructions before it.
                return [row["id"] for row in rows[-_MOST_PINS:]]
            given = [turn_uuid(turn) for turn in ([goal] if isinstance(goal, (str, uuid.UUID)) else goal)]
            rows = await transaction.fetch(
                f"SELECT id FROM {turns} WHERE session_id {EQ} %s AND id {EQ} ANY (%s)", (self.session_id, given)
            )
        for missing in set(given) - {row["id"] for row in rows}:
            raise self._not_a_turn(missing)
        return [str(turn) for turn in given]

    async def _seeds(self, question: str, embedding: Sequence[float] | None) -> dict[str, float] | None:
        vector = await embedded_if_any(self._embed, question, embedding)
        rows = await self.database.fetch(
            "SELECT turn_id::pg_catalog.text AS turn_id, strength"
            " FROM {gk}graph_search(%s::real[], %s::pg_catalog.text, 128, %s::pg_catalog.jsonb)",
            (vector, question, Jsonb(self._filter(None))),
        )
        return {row["turn_id"]: row["strength"] for row in rows} or None

    def _filter(self, filter: Mapping[str, Any] | None) -> dict[str, Any]:
        """What a search is narrowed by: to the turns of the owner, if there is one, whatever the filter says."""
        return {**(filter or {}), **({} if self._owner is None else {"owner": self._owner})}

    async def recall(
        self,
        query: str,
        max_tokens: int | None = None,
        *,
        embedding: Sequence[float] | None = None,
        policy: Mapping[str, Any] | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Recall:
        """What was said anywhere that fits a question, with what was said around it, within a budget.

        `policy` has other keys of SlicePolicy v2, `filter` those of `graph_search`. Where the conversation has an
        owner, the hits are turns of the owner; what was said around them in their session may be of others.
        """
        query = storable(query)
        vector = await embedded_if_any(self._embed, query, embedding)
        given = {"preset": "recall", **({} if max_tokens is None else {"max_tokens": max_tokens}), **(policy or {})}
        rows = await self.database.fetch(
            """SELECT turn_id::pg_catalog.text AS turn_id, part, role, content, payload::pg_catalog.text AS payload,
                      tokens, session_id, pg_catalog."extract"('epoch', created_at)::pg_catalog.text AS created_at,
                      distance, score, seed::pg_catalog.text AS seed, slice::pg_catalog.text AS slice
                 FROM {gk}graph_recall(%s::real[], %s::pg_catalog.text, %s::{gk}slice_policy, NULL::pg_catalog.uuid,
                                       %s::pg_catalog.jsonb)
                ORDER BY n""",
            (vector, query, policy_text(given), Jsonb(self._filter(filter))),
        )
        export = SliceExport.from_json(rows[0]["slice"]) if rows else None
        for row in rows:
            del row["slice"]
            row["created_at"] = moment(row["created_at"])
        return Recall([RecalledTurn(**with_payload(row)) for row in rows], export)

    async def turns(
        self, *, max_tokens: int | None = None, policy: Mapping[str, Any] | None = None
    ) -> list[PromptTurn]:
        """The turns up to the latest one, in the order in which a model is shown them: all, or within a budget."""
        anchor = await self.head()
        if anchor is None:
            return []
        whole: dict[str, Any] = {"preset": "lineage"}
        if max_tokens is not None:
            whole = {"preset": "chat", "max_tokens": max_tokens}
        given = {**whole, **(policy or {})}
        rows = await self.database.fetch(
            """SELECT turn_id::pg_catalog.text AS turn_id, part, role, content, payload::pg_catalog.text AS payload,
                      tokens
                 FROM {gk}graph_messages(%s::pg_catalog.uuid, %s::{gk}slice_policy) ORDER BY n""",
            (anchor, policy_text(given)),
        )
        if len(rows) >= _MOST_TURNS and max_tokens is None:
            raise GraphKernelError(
                f"the conversation has {_MOST_TURNS} turns or more, of which only the latest would be returned",
                sqlstate="54000",
                word="TOO_MANY_TURNS",
                hint="Give max_tokens.",
            )
        _warn_of_pins(given, [row["turn_id"] for row in rows], 3)
        return [PromptTurn(**with_payload(row)) for row in rows]

    async def remove(self, turn_ids: Sequence[TurnId]) -> None:
        """Deletes turns of this session with their edges, for good. Recorded prompts say that they are gone.

        What followed a turn follows what that one followed; remove a call with its results. What others refer to, turns
        of other sessions too, is not deleted: that is an error, and nothing is.
        """
        given = {turn_uuid(turn) for turn in turn_ids}
        async with self.database.transaction() as transaction:
            turns, _ = await transaction.tables()
            await transaction.lock(turns, self.session_id)
            rows = await transaction.fetch(
                f"SELECT id FROM {turns} WHERE session_id {EQ} %s AND id {EQ} ANY (%s)",
                (self.session_id, list(given)),
            )
            for missing in given - {row["id"] for row in rows}:
                raise self._not_a_turn(missing)
            place = await self._remove(transaction, given)
        self._heads, self._edge_type = place

    async def clear(self, *, before: InTransaction | None = None) -> None:
        """Deletes all turns of this session, as `remove` does those that it is given.

        `before` is called in the transaction, before it reads or writes turns.
        """
        async with self.database.transaction() as transaction:
            if before is not None:
                await before(transaction)
            await self._remove(transaction, None)
        self._heads, self._edge_type, self._past = None, "reply", []

    async def pop(self, split: Callable[[PromptTurn], tuple[Any, Part | None]]) -> Any:
        """Takes the last of what the latest turn says, and returns it; None where there is no turn: for adapters.

        `split` gives that, and what is left of the turn, or None where it is all of it.
        """
        for _ in range(_ATTEMPTS):
            head = await self.head()
            latest = [turn for turn in await self.turns(max_tokens=1) if turn.turn_id == head]
            if not latest:
                return None
            popped, rest = split(latest[0])
            # Before the transaction begins: a model may take its time.
            row = None if rest is None else await self._row((await self._read([rest]))[0])
            if await self._take_away(latest[0], row):
                return popped
        raise GraphKernelError(
            f"others write to session {self.session_id} all the time", sqlstate="40001", hint="Call it again."
        )

    async def _take_away(self, seen: PromptTurn, row: Mapping[str, Any] | None) -> bool:
        """Removes a turn, or stores this in its place, where it is the latest still, and is as it was seen."""
        turn = turn_uuid(seen.turn_id)
        async with self.database.transaction() as transaction:
            turns, edges = await transaction.tables()
            await transaction.lock(turns, self.session_id)
            heads, edge_type = await self._place(transaction, turns, edges)
            rows = await transaction.fetch(
                f"""SELECT content_text AS content, payload::pg_catalog.text AS payload FROM {turns}
                     WHERE session_id {EQ} %s AND id {EQ} %s FOR UPDATE""",
                (self.session_id, turn),
            )
            if heads[-1:] != [turn] or [with_payload(now) for now in rows] != [
                {"content": seen.content, "payload": seen.payload}
            ]:
                return False
            place: tuple[list[uuid.UUID] | None, str] = (heads, edge_type)
            if row is None:
                place = await self._remove(transaction, {turn})
            else:
                await self._store_again(transaction, turns, turn, row)
        self._heads, self._edge_type = place
        return True

    async def replace(self, parts: Sequence[Part]) -> list[str]:
        """Deletes all turns of this session and stores these: for adapters. All of it, or nothing."""

        async def remove_all(transaction: Transaction) -> None:
            await self._remove(transaction, None)

        return await self._append(parts, before=remove_all)

    async def _remove(
        self, transaction: Transaction, turn_ids: set[uuid.UUID] | None
    ) -> tuple[list[uuid.UUID] | None, str]:
        """Deletes these turns of the session, or all, and returns where the conversation stands then, and the type of
        the edge to what is appended there."""
        turns, edges = await transaction.tables()
        await transaction.lock(turns, self.session_id)
        parameters = {
            "session": self.session_id,
            "turns": None if turn_ids is None else list(turn_ids),
            "heads": self._heads,
        }
        removed = f"""(SELECT id FROM {turns}
                        WHERE session_id {EQ} %(session)s
                          AND (%(turns)s::pg_catalog.uuid[] IS NULL OR id {EQ} ANY (%(turns)s::pg_catalog.uuid[])))"""
        line = f"""WITH RECURSIVE line (id, is_branch) AS (
                       SELECT head, false FROM pg_catalog.unnest(%(heads)s::pg_catalog.uuid[]) AS head
                       UNION
                       SELECT e.parent_turn_id, l.is_branch OR e.edge_type {EQ} 'branch'
                         FROM line AS l JOIN {edges} AS e ON e.child_turn_id {EQ} l.id
                        WHERE l.id {EQ} ANY {removed})"""
        heads = await transaction.fetch(
            f"""{line}
                SELECT t.id, pg_catalog.bool_or(l.is_branch) AS is_branch
                  FROM line AS l JOIN {turns} AS t ON t.id {EQ} l.id
                 WHERE NOT t.id {EQ} ANY {removed}
                 GROUP BY t.id, t.created_at ORDER BY t.created_at, t.id""",
            parameters,
        )
        # What others have appended to the line.
        following = await transaction.fetch(
            f"""{line}
                SELECT DISTINCT t.id, t.created_at
                  FROM line AS l JOIN {edges} AS e ON e.parent_turn_id {EQ} l.id
                  JOIN {turns} AS t ON t.id {EQ} e.child_turn_id AND t.session_id {EQ} %(session)s
                 WHERE l.id {EQ} ANY {removed} AND NOT l.is_branch AND NOT t.id {EQ} ANY {removed}
                   AND NOT e.edge_type {EQ} 'branch'
                 ORDER BY t.created_at, t.id""",
            parameters,
        )
        await transaction.execute(
            f"""WITH RECURSIVE line (child, parent, edge_type) AS (
                    SELECT e.child_turn_id, e.parent_turn_id, e.edge_type
                      FROM {edges} AS e JOIN {turns} AS c ON c.id {EQ} e.child_turn_id
                     WHERE c.session_id {EQ} %(session)s AND NOT c.id {EQ} ANY {removed}
                       AND e.parent_turn_id {EQ} ANY {removed}
                    UNION
                    SELECT l.child, e.parent_turn_id,
                           CASE WHEN e.edge_type {EQ} 'branch' THEN e.edge_type ELSE l.edge_type END
                      FROM line AS l JOIN {edges} AS e ON e.child_turn_id {EQ} l.parent
                     WHERE l.parent {EQ} ANY {removed})
                INSERT INTO {edges} (parent_turn_id, child_turn_id, edge_type)
                SELECT parent, child, edge_type FROM line
                 WHERE NOT parent {EQ} child AND NOT parent {EQ} ANY {removed}
                ON CONFLICT DO NOTHING""",
            parameters,
        )
        of_session = f"(SELECT id FROM {turns} WHERE session_id {EQ} %(session)s)"
        for edge in (
            f"child_turn_id {EQ} ANY {removed}",
            f"parent_turn_id {EQ} ANY {removed} AND child_turn_id {EQ} ANY {of_session}",
        ):
            await transaction.execute(f"DELETE FROM {edges} WHERE {edge}", parameters)
        await transaction.execute(f"DELETE FROM {turns} WHERE id {EQ} ANY {removed}", parameters)
        left = [row["id"] for row in heads]
        # Of results that stood side by side those that stay; else what follows them, or what they followed.
        stays = [head for head in self._heads or [] if head in left]
        if stays:
            return stays, self._edge_type
        if following:
            return [row["id"] for row in following], "reply"
        if left:
            return left, "branch" if any(row["is_branch"] for row in heads) else self._edge_type
        if not self._heads:
            return self._heads, self._edge_type
        # Before the turns of other lines, if there are some.
        others = await transaction.fetch(f"SELECT FROM {turns} WHERE session_id {EQ} %(session)s LIMIT 1", parameters)
        return [] if others else None, self._edge_type

    async def redact(self, turn_id: TurnId, text: str = "[redacted]") -> None:
        """Replaces what a turn of this session says, for good, in its text, payload and embedding.

        Its edges stay, and a result that of its call; the calls of a turn go. Recorded prompts say that it has changed.
        """
        text, turn = storable(text), turn_uuid(turn_id)
        vector = await embedded(self._embed, text) if self._embed is not None and text else None
        async with self.database.transaction() as transaction:
            turns, _ = await transaction.tables()
            await transaction.lock(turns, self.session_id, appends=False)
            rows = await transaction.fetch(
                f"""SELECT role, payload::pg_catalog.text AS payload FROM {turns}
                     WHERE session_id {EQ} %s AND id {EQ} %s FOR UPDATE""",
                (self.session_id, turn),
            )
            if not rows:
                raise self._not_a_turn(turn)
            (row,) = rows
            result = redacted_result(with_payload(row)["payload"], text)
            message = result or {"role": row["role"], "content": text}
            changed = {
                "content_text": text,
                "payload": None if result is None else Jsonb(result),
                "token_count": tokens(text, message) if self._count_tokens is None else self._count_tokens(message),
                **({"embedding": vector} if await transaction.has_embeddings(turns) else {}),
            }
            await transaction.update(turns, turn, changed)

    async def _store_again(self, transaction: Transaction, turns: str, turn: uuid.UUID, row: Mapping[str, Any]) -> None:
        columns = ["content_text", "payload", "token_count"]
        columns += ["embedding"] if await transaction.has_embeddings(turns) else []
        await transaction.update(turns, turn, {column: row.get(column) for column in columns})

    async def show(self, step: Document) -> list[ShownMessage]:
        """The messages of a recorded prompt in their order, with what the tables hold of them now.

        Of a step, or of its record, as a text or as JSON: any conversation shows those of all.
        """
        rows = await self.database.fetch(
            "SELECT n, turn_id::pg_catalog.text AS turn_id, part, role, state, content,"
            " payload::pg_catalog.text AS payload"
            " FROM {gk}graph_messages_show(%s::pg_catalog.json, NULL::pg_catalog.text[], NULL::pg_catalog.jsonb[])"
            " ORDER BY n",
            (document_of(step),),
        )
        return [ShownMessage(**with_payload(row)) for row in rows]

    async def prove(self, step: Document) -> str:
        """A signed statement about a recorded prompt, which anyone can check with the public key."""
        row = await self.database.fetch_one(
            "SELECT {gk}graph_proof(%s::pg_catalog.json)::pg_catalog.text AS proof", (document_of(step),)
        )
        proof: str = row["proof"]
        return proof

    def _not_a_turn(self, turn: uuid.UUID) -> GraphKernelError:
        return GraphKernelError(
            f"not a turn of session {self.session_id}: {turn}", sqlstate="02000", word="ANCHOR_NOT_FOUND"
        )

    async def _stored(self, transaction: Transaction, turns: str, ids: list[uuid.UUID]) -> set[uuid.UUID]:
        """Those of these that this session has. One of another session is an error: it would be left out in silence."""
        query = f"SELECT id, session_id FROM {turns} WHERE id {EQ} ANY (%s)"
        rows = await transaction.fetch(query, (ids,)) if ids else []
        for row in rows:
            if row["session_id"] != self.session_id:
                raise GraphKernelError(
                    f"another session has a turn {row['id']}",
                    sqlstate="23505",
                    word="TURN_ID_TAKEN",
                    hint="Store the message with another id.",
                )
        return {row["id"] for row in rows}

    async def _since(
        self, transaction: Transaction, turns: str, edges: str, calls: list[uuid.UUID], heads: list[uuid.UUID]
    ) -> list[uuid.UUID]:
        """Of the heads those that are no results of these calls, and what such results follow beside the calls."""
        rows = await transaction.fetch(
            f"""SELECT t.id, ARRAY(SELECT o.parent_turn_id
                                     FROM {edges} AS o JOIN {turns} AS p ON p.id {EQ} o.parent_turn_id
                                    WHERE o.child_turn_id {EQ} t.id AND p.session_id {EQ} t.session_id
                                      AND NOT o.parent_turn_id {EQ} ANY (%(calls)s)
                                    ORDER BY p.created_at, p.id) AS follows
                  FROM {turns} AS t JOIN {edges} AS e ON e.child_turn_id {EQ} t.id
                 WHERE t.id {EQ} ANY (%(heads)s) AND e.parent_turn_id {EQ} ANY (%(calls)s)
                   AND {small("t.role")} {EQ} 'tool'""",
            {"heads": heads, "calls": calls},
        )
        results = {row["id"] for row in rows}
        followed = [turn for row in rows for turn in row["follows"]]
        return list(dict.fromkeys([*(head for head in heads if head not in results), *followed]))

    async def _place(self, transaction: Transaction, turns: str, edges: str) -> tuple[list[uuid.UUID], str]:
        """Where the conversation stands: a turn, or all results of a call; and the type of the edge to what is appended
        there.

        Where others have appended, or an answer to an append of its own was lost, that is at the end of its line; where
        its turns are gone, such as with a transaction that was rolled back, where it stood before.
        """
        edge_type = self._edge_type
        for heads, edge_type in [(self._heads, self._edge_type), *reversed(self._past)]:
            if heads is None:
                break
            if not heads:
                return [], edge_type
            found = await self._end_of_line(transaction, turns, edges, heads, edge_type)
            if found:
                return found, edge_type
        latest = await transaction.fetch(
            f"SELECT id FROM {turns} WHERE session_id {EQ} %s ORDER BY created_at DESC NULLS LAST, id LIMIT 1",
            (self.session_id,),
        )
        if not latest:
            return [], edge_type
        # What follows it may be of the same time, or, by another clock, of an earlier one.
        turn = latest[0]["id"]
        ends = await self._ends(transaction, turns, edges, [turn], None)
        return await self._end_of_call(transaction, turns, edges, ends[0] if ends else turn), edge_type

    async def _end_of_line(
        self, transaction: Transaction, turns: str, edges: str, heads: list[uuid.UUID], edge_type: str
    ) -> list[uuid.UUID]:
        """The end of the line on which these turns are; none where they are gone."""
        # A branch follows nothing before it has a turn of its own.
        follows = ["reply"] if edge_type == "reply" else []
        ends = await self._ends(transaction, turns, edges, heads, follows)
        if ends and ends[0] not in heads:
            return await self._end_of_call(transaction, turns, edges, ends[0])
        heads = [head for head in heads if head in ends]
        if heads and follows:
            # Results of the same call, which others have appended.
            beside = await self._end_of_call(transaction, turns, edges, heads[-1])
            if not set(beside) <= set(heads):
                rows = await transaction.fetch(
                    f"SELECT id FROM {turns} WHERE id {EQ} ANY (%s) ORDER BY created_at, id", ([*heads, *beside],)
                )
                return [row["id"] for row in rows]
        return heads

    async def _ends(
        self, transaction: Transaction, turns: str, edges: str, heads: list[uuid.UUID], follows: list[str] | None
    ) -> list[uuid.UUID]:
        """The turns of the session that nothing follows, of these and of what follows them by edges of these types, or
        of all; the latest first."""
        rows = await transaction.fetch(
            f"""WITH RECURSIVE line (id, parent) AS (
                    SELECT head, NULL::pg_catalog.uuid FROM pg_catalog.unnest(%(heads)s::pg_catalog.uuid[]) AS head
                    UNION
                    SELECT e.child_turn_id, e.parent_turn_id
                      FROM line AS l
                      JOIN {edges} AS e ON e.parent_turn_id {EQ} l.id
                      JOIN {turns} AS t ON t.id {EQ} e.child_turn_id AND t.session_id {EQ} %(session)s
                     WHERE NOT e.parent_turn_id {EQ} e.child_turn_id
                       AND (%(follows)s::pg_catalog.text[] IS NULL OR e.edge_type {EQ} ANY (%(follows)s)))
                SELECT t.id FROM {turns} AS t
                 WHERE t.session_id {EQ} %(session)s
                   AND t.id {EQ} ANY (SELECT id FROM line)
                   AND NOT t.id {EQ} ANY (SELECT parent FROM line WHERE parent IS NOT NULL)
                 ORDER BY t.created_at DESC NULLS LAST, t.id""",
            {"heads": heads, "session": self.session_id, "follows": follows},
        )
        return [row["id"] for row in rows]

    async def _end_of_call(self, transaction: Transaction, turns: str, edges: str, turn: uuid.UUID) -> list[uuid.UUID]:
        """The turn; of a call, or one of its results, all results of this session."""
        rows = await transaction.fetch(
            f"""SELECT t.id
                  FROM {turns} AS t
                  JOIN {edges} AS e ON e.child_turn_id {EQ} t.id
                 WHERE t.session_id {EQ} %(session)s AND {small("t.role")} {EQ} 'tool'
                   AND (e.parent_turn_id {EQ} %(turn)s
                        OR e.parent_turn_id {EQ} ANY (
                               SELECT parent_turn_id FROM {edges} WHERE child_turn_id {EQ} %(turn)s)
                           AND (SELECT {small("role")}
                                  FROM {turns} WHERE id {EQ} %(turn)s) {EQ} 'tool')
                 GROUP BY t.id
                 ORDER BY t.id {EQ} %(turn)s, pg_catalog.min(t.created_at), t.id""",
            {"turn": turn, "session": self.session_id},
        )
        return [row["id"] for row in rows] or [turn]

    async def _calls(
        self, transaction: Transaction, turns: str, edges: str, heads: list[uuid.UUID], part: Part, strict: bool
    ) -> list[uuid.UUID]:
        """The turns with the calls that a result answers: of the line, in which an id may stand again, the latest."""
        rows = await transaction.fetch(
            f"""WITH RECURSIVE line (id) AS (
                    SELECT head FROM pg_catalog.unnest(%(heads)s::pg_catalog.uuid[]) AS head
                    UNION
                    SELECT e.parent_turn_id FROM line AS l JOIN {edges} AS e ON e.child_turn_id {EQ} l.id)
                SELECT a.place, (SELECT t.id FROM line AS l JOIN {turns} AS t ON t.id {EQ} l.id
                                  WHERE t.session_id {EQ} %(session)s
                                    AND t.payload {operator("@>")} ANY (a.forms)
                                    AND coalesce(NOT {small("t.role")} {EQ} 'tool', true)
                                  ORDER BY t.created_at DESC, t.id LIMIT 1) AS id
                  FROM (SELECT place, pg_catalog.array_agg(form) AS forms
                          FROM pg_catalog.jsonb_array_elements(%(calls)s::pg_catalog.jsonb)
                               WITH ORDINALITY AS c (call, place),
                               pg_catalog.jsonb_array_elements(c.call) AS f (form)
                         GROUP BY place) AS a
                 ORDER BY a.place""",
            {
                "heads": heads,
                "session": self.session_id,
                "calls": Jsonb([call_forms(storable(call)) for call in part.answers]),
            },
        )
        for row in rows:
            if row["id"] is None and strict:
                raise GraphKernelError(
                    f"no turn of session {self.session_id} makes the call {part.answers[row['place'] - 1]!r},"
                    " which the message answers",
                    sqlstate="02000",
                    word="CALL_NOT_FOUND",
                    hint="Append the message with the call first.",
                )
        return list(dict.fromkeys(row["id"] for row in rows if row["id"] is not None))

    async def _read(self, parts: Sequence[Part], strict: bool = False) -> list[Part]:
        """The turns with their role and text, which the server reads from the forms that it knows."""
        try:
            parts = [replace(part, payload=storable(part.payload), text=storable(part.text)) for part in parts]
            for part in parts:
                json.dumps(part.payload, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise not_a_message(f"the message is not JSON: {error}") from error
        messages = [
            None if part.role and part.text is not None else json.dumps(storable(part.form or part.payload))
            for part in parts
        ]
        rows = await self.database.fetch(
            """SELECT {gk}graph_message_text(message) AS text, {gk}graph_message_role(message) AS role
                 FROM pg_catalog.unnest(%s::pg_catalog.text[]) WITH ORDINALITY AS m (message, n) ORDER BY n""",
            (messages,),
        )
        read = []
        for part, row in zip(parts, rows, strict=True):
            text = row["text"] if part.text is None else part.text
            if is_text_alone(part.payload):
                # The text as it is: one that looks like JSON stays what was said.
                text = part.payload["content"]
            role = part.role or row["role"]
            # Without one that is known it would be read as the user's.
            if not role:
                raise not_a_message("the message has no form whose role is known")
            if strict and role not in _ROLES:
                raise not_a_message(f"the role {role!r} is not known")
            read.append(replace(part, role=role, text=text))
        return read

    async def _row(self, part: Part) -> dict[str, Any]:
        """What is stored of a turn, by column."""
        row: dict[str, Any] = {
            "id": part.turn_id or uuid.uuid4(),
            "session_id": self.session_id,
            "role": part.role,
            "content_text": part.text,
            "payload": None if is_text_alone(part.payload) else Jsonb(part.payload),
            "token_count": (
                tokens(part.text, part.payload) if self._count_tokens is None else self._count_tokens(part.payload)
            ),
            # Without one the table's default says whose the turn is.
            **({} if self._owner is None else {"owner": self._owner}),
        }
        if self._embed is not None and part.text:
            row["embedding"] = await embedded(self._embed, part.text)
        return row


def _warn_of_pins(policy: Mapping[str, Any], turn_ids: Sequence[str], level: int) -> None:
    for pin in policy.get("pins") or []:
        if str(turn_uuid(pin)) not in turn_ids:
            warnings.warn(f"pinned turn {pin} does not fit, and is left out", PinLeftOut, stacklevel=level)
