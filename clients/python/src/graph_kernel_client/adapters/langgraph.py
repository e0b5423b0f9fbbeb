"""LangGraph: a store of items, and a hook that trims. Needs langgraph."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from .._messages import storable
from .._rows import loaded, moment
from .._sql import EQ, identifier, operator, unescaped
from .._sync.conversation import Conversation
from .._sync.database import Database, Transaction
from .._sync.embedding import Embed, embedded, embedded_if_any
from ..errors import GraphKernelError
from . import joined, taken
from .langchain import part_of

__all__ = ["GraphKernelStore", "trim_hook"]

Namespace = tuple[str, ...]

_MESSAGES = uuid.UUID("a1c2a5d7-5c0e-5b0a-9d62-2f3a5d9a7c44")
_ITEMS = uuid.UUID("5f6f5a3e-2f0f-5c0b-8a5a-0e2b7f1d9c11")
# Sessions of items begin with this.
_STORE = "langgraph.store"
_BEGINS, _VALUE, _TEXT = operator("^@"), operator("->"), operator("->>")
_IS_ITEM = f"t.session_id {_BEGINS} '{_STORE}/' AND t.payload {operator('?')} 'namespace'::pg_catalog.text"
_MAX_SESSIONS = _MAX_HITS = 1000  # of graph_search
_CREATED = """pg_catalog."extract"('epoch', t.created_at)"""
# A number: what others have stored as a time may be none.
_UPDATED = f"""coalesce(
    CASE WHEN pg_catalog.jsonb_typeof(t.payload {_VALUE} 'updated_at'::pg_catalog.text) {EQ} 'number'
         THEN pg_catalog.round((t.payload {_TEXT} 'updated_at'::pg_catalog.text)::pg_catalog.numeric, 6) END,
    {_CREATED})"""
_COLUMNS = f"""t.session_id, t.payload {_TEXT} 'key'::pg_catalog.text AS key,
              (t.payload {_VALUE} 'value'::pg_catalog.text)::pg_catalog.text AS value,
              {_CREATED}::pg_catalog.text AS created_at, {_UPDATED}::pg_catalog.text AS updated_at"""
_COMPARISONS = {"$eq": "=", "$ne": "<>", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class GraphKernelStore(BaseStore):
    """Items as turns: searches, prompts and `recall` find them beside what was said.

    A namespace is a session, an item a turn of it, without edges. `put` replaces text, value and embedding of a turn
    that is there, `delete` deletes it; records of prompts then say `changed` or `gone`. The text is what `fields` of
    the value lead to, or `index`, by LangGraph's paths: the whole value as JSON unless told. Where `index` is False
    there is none, and no query finds the item. `owner` says whose the items of a namespace are. There is no TTL.
    """

    def __init__(
        self,
        database: Database,
        *,
        embed: Embed | None = None,
        fields: Sequence[str] = ("$",),
        owner: Callable[[Namespace], str] | None = None,
    ) -> None:
        self._database, self._embed = taken(database, Database), embed
        self._fields, self._owner = fields, owner

    def setup(self) -> None:
        """Makes the index by which a namespace with those below it is found, if it is not there."""
        with self._database.transaction() as transaction:
            turns, _ = transaction.tables()
            (table,) = transaction.fetch(
                f"SELECT relname FROM pg_catalog.pg_class WHERE oid {EQ} %s::pg_catalog.regclass::pg_catalog.oid",
                (unescaped(turns),),
            )
            index = identifier(f"{table['relname']}_items_idx")
            transaction.execute(
                f"""CREATE INDEX IF NOT EXISTS {index} ON {turns} (session_id COLLATE pg_catalog."C")
                     WHERE session_id {_BEGINS} '{_STORE}/'"""
            )

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """All reads, then all writes, of one item the last; in one transaction."""
        ops = list(ops)
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        # Before the transaction begins: a model may take its time.
        rows = [self._row(op, op.value) for op in puts.values() if op.value is not None]
        questions = {op.query for op in ops if isinstance(op, SearchOp) and op.query}
        vectors = {question: embedded_if_any(self._embed, question) for question in questions}
        with self._database.transaction() as transaction:
            turns, _ = transaction.tables()
            results = [_read(transaction, turns, op, vectors) for op in ops]
            deleted = [(_turn_id(*item), _session(op.namespace)) for item, op in puts.items() if op.value is None]
            _write(transaction, turns, rows, deleted)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, ops)

    def _row(self, op: PutOp, value: Mapping[str, Any]) -> dict[str, Any]:
        """The turn of an item, by column."""
        fields = self._fields if op.index is None else op.index or ()
        text = storable("\n".join(text for field in fields for text in get_text_at_path(value, field))) or None
        item = {"namespace": list(op.namespace), "key": op.key, "value": dict(value)}
        row = {
            "id": _turn_id(op.namespace, op.key),
            "session_id": _session(op.namespace),
            "role": "assistant",
            "content_text": text,
            "payload": Jsonb(storable(item)),
        }
        if self._owner is not None:
            row["owner"] = self._owner(op.namespace)
        if self._embed is not None:
            row["embedding"] = None if text is None else embedded(self._embed, text)
        return row


def _session(namespace: Namespace) -> str:
    """That of a namespace, with which those of all below it begin."""
    return "".join(f"{joined(label)}/" for label in (_STORE, *namespace))


def _turn_id(namespace: Namespace, key: str) -> uuid.UUID:
    return uuid.uuid5(_ITEMS, _session(namespace) + joined(key))


def _read(transaction: Transaction, turns: str, op: Op, vectors: Mapping[str, list[float] | None]) -> Result:
    if isinstance(op, GetOp):
        rows = transaction.fetch(
            f"SELECT {_COLUMNS} FROM {turns} AS t WHERE t.id {EQ} %s AND t.session_id {EQ} %s AND {_IS_ITEM}",
            (_turn_id(op.namespace, op.key), _session(op.namespace)),
        )
        items = list(map(_item, rows))
        return Item(**items[0]) if items and items[0]["value"] is not None else None
    if isinstance(op, ListNamespacesOp):
        return _namespaces(transaction, turns, op)
    if isinstance(op, SearchOp):
        rows = _search(transaction, turns, op, vectors[op.query] if op.query else None)
        return [SearchItem(**item) for item in map(_item, rows) if item["value"] is not None]
    return None


def _item(row: DictRow) -> DictRow:
    """Of the columns of an item. The namespace is that of its session, whatever its payload says."""
    value = loaded(row["value"])
    return {
        **{key: given for key, given in row.items() if key != "session_id"},
        "namespace": _namespace(row["session_id"]),
        "value": value if isinstance(value, dict) else None,
        "created_at": moment(row["created_at"]),
        "updated_at": moment(row["updated_at"]),
    }


def _namespace(session: str) -> Namespace:
    return tuple(map(unquote, session.split("/")[1:-1]))


def _search(transaction: Transaction, turns: str, op: SearchOp, vector: list[float] | None) -> list[DictRow]:
    """The items of a namespace and of those below it: the best for the query, or the latest."""
    parameters: dict[str, Any] = {"prefix": _session(op.namespace_prefix), "limit": op.limit, "offset": op.offset}
    conditions = [_IS_ITEM, f't.session_id COLLATE pg_catalog."C" {_BEGINS} %(prefix)s']
    for n, (path, comparison, value) in enumerate(_comparisons(op.filter or {}, ["value"])):
        stored, given = (
            f"coalesce(t.payload {operator('#>')} %(path{n})s::pg_catalog.text[], 'null')",
            f"%(given{n})s::pg_catalog.jsonb",
        )
        conditions.append(f"{stored} {operator(comparison)} {given}")
        if comparison not in ("=", "<>"):
            conditions.append(f"pg_catalog.jsonb_typeof({stored}) {EQ} pg_catalog.jsonb_typeof({given})")
        parameters |= {f"path{n}": storable(path), f"given{n}": Jsonb(storable(value))}
    where = " AND ".join(conditions)
    if not op.query:
        return transaction.fetch(
            f"""SELECT {_COLUMNS} FROM {turns} AS t WHERE {where}
                 ORDER BY {_UPDATED} DESC, t.id LIMIT %(limit)s OFFSET %(offset)s""",
            parameters,
        )
    rows = transaction.fetch(
        f"SELECT DISTINCT t.session_id FROM {turns} AS t WHERE {where} LIMIT {_MAX_SESSIONS + 1}", parameters
    )
    if len(rows) > _MAX_SESSIONS:
        raise GraphKernelError(
            f"a search reads at most {_MAX_SESSIONS} namespaces, and there are more below {op.namespace_prefix}",
            sqlstate="54000",
            word="SEARCH_TOO_LARGE",
            hint="Search below a longer prefix.",
        )
    if not rows:
        return []
    return transaction.fetch(
        f"""SELECT {_COLUMNS}, s.strength AS score
              FROM {{gk}}graph_search(%(vector)s::real[], %(query)s::pg_catalog.text, %(hits)s::integer,
                                       %(filter)s::pg_catalog.jsonb) AS s
              JOIN {turns} AS t ON t.id {EQ} s.turn_id
             WHERE {where}
             ORDER BY s.rank LIMIT %(limit)s OFFSET %(offset)s""",
        {
            **parameters,
            "vector": vector,
            "query": op.query,
            # A filter chooses of what the search has found.
            "hits": _MAX_HITS if op.filter else min(max(op.limit + op.offset, 1), _MAX_HITS),
            "filter": Jsonb({"sessions": [row["session_id"] for row in rows]}),
        },
    )


def _comparisons(filter: Mapping[str, Any], path: list[str]) -> Iterator[tuple[list[str], str, Any]]:
    """Where a value is, how it is compared, and with what."""
    for key, wanted in filter.items():
        if not isinstance(wanted, Mapping):
            yield [*path, key], "=", wanted
        elif any(name.startswith("$") for name in wanted):
            for name, value in wanted.items():
                if name not in _COMPARISONS:
                    raise ValueError(f"Unsupported operator: {name}")
                yield [*path, key], _COMPARISONS[name], value
        else:
            yield from _comparisons(wanted, [*path, key])


def _namespaces(transaction: Transaction, turns: str, op: ListNamespacesOp) -> list[Namespace]:
    rows = transaction.fetch(f"SELECT DISTINCT t.session_id FROM {turns} AS t WHERE {_IS_ITEM}")
    all_of_them = (_namespace(row["session_id"]) for row in rows)
    matching = {
        namespace[: op.max_depth]
        for namespace in all_of_them
        if all(_matches(condition, namespace) for condition in op.match_conditions or ())
    }
    return sorted(matching)[op.offset : op.offset + op.limit]


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path, labels = condition.path, namespace
    if condition.match_type == "suffix":
        path, labels = path[::-1], labels[::-1]
    return len(labels) >= len(path) and all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=False))


def _write(
    transaction: Transaction, turns: str, rows: Sequence[Mapping[str, Any]], deleted: Sequence[tuple[uuid.UUID, str]]
) -> None:
    # In one order, so that those who write the same items wait for each other.
    for session in sorted({row["session_id"] for row in rows} | {session for _, session in deleted}):
        transaction.lock(turns, session, appends=False)
    # A row that is somebody else's, who could have stored it before this did, is not given the item.
    of_policies = transaction.fetch(
        f"""SELECT DISTINCT a.attname AS name
              FROM pg_catalog.pg_policy AS p
              JOIN pg_catalog.pg_depend AS d ON d.objid {EQ} p.oid AND d.refobjid {EQ} p.polrelid
               AND d.classid {EQ} 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid
               AND d.refclassid {EQ} 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
              JOIN pg_catalog.pg_attribute AS a ON a.attrelid {EQ} d.refobjid AND a.attnum {EQ} d.refobjsubid
             WHERE p.polrelid {EQ} %s::pg_catalog.regclass::pg_catalog.oid AND a.attgenerated {EQ} ''""",
        (unescaped(turns),),
    )
    # What is replaced keeps no embedding of its old text.
    no_embedding = {"embedding": None} if rows and transaction.has_embeddings(turns) else {}
    for row in rows:
        columns = {**no_embedding, **row}
        changed = [f"{column} = excluded.{column}" for column in columns if column not in ("id", "payload")]
        owning = [identifier(column["name"]) for column in of_policies if column["name"] not in columns]
        same = [(f"t.{name}::pg_catalog.text", f"excluded.{name}::pg_catalog.text") for name in owning]
        kept = " AND ".join(
            [f"t.session_id {EQ} excluded.session_id"]
            + [f"coalesce({was} {EQ} {new}, {was} IS NULL AND {new} IS NULL)" for was, new in same]
        )
        stored = transaction.insert(
            turns,
            columns,
            f"""ON CONFLICT (id) DO UPDATE SET {", ".join(changed)}, token_count = NULL,
                payload = excluded.payload
                          {operator("||")} pg_catalog.jsonb_build_object(
                              'updated_at', pg_catalog."extract"('epoch', pg_catalog.clock_timestamp()))
                WHERE {kept}""",
        )
        if not stored:
            raise GraphKernelError(
                f"the turn {row['id']} is of another session, or somebody else's by a row security policy",
                sqlstate="23505",
                word="TURN_ID_TAKEN",
                hint="Delete the item first, to store it as a new row.",
            )
    for item in deleted:
        transaction.execute(f"DELETE FROM {turns} WHERE id {EQ} %s AND session_id {EQ} %s", item)


def trim_hook(
    conversation: Callable[[RunnableConfig], Conversation], *, max_tokens: int, goal: bool = True
) -> Callable[[dict[str, Any], RunnableConfig], dict[str, Any]]:
    """A hook for LangGraph that runs before the model: stores what is new, and gives the model what fits.

    `conversation` returns that of a configuration, by its thread, say. Messages are told apart by their ids, which the
    reducer `add_messages` gives them. In `messages` of the state all stay, and of them alone the model is given: what
    was taken out of the state, or changed there, is not sent as it was, though it stays stored until it is removed.
    """

    def hook(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        chosen = taken(conversation(config), Conversation)
        messages: dict[str, BaseMessage] = {}
        for message in state["messages"]:
            if message.id is None:
                raise GraphKernelError(
                    "a message of the state has no id, by which it is stored once",
                    sqlstate="22023",
                    word="INVALID_MESSAGE",
                    hint="Annotate messages of the state with add_messages.",
                )
            turn_id = uuid.uuid5(_MESSAGES, joined(chosen.session_id, message.id))
            messages[str(turn_id)] = message
        chosen.append_parts([replace(part_of(message), turn_id=uuid.UUID(id)) for id, message in messages.items()])
        pins = [id for id, message in messages.items() if isinstance(message, HumanMessage)][:1] if goal else []
        turns = chosen.turns(max_tokens=max_tokens, policy={"pins": pins or None})
        return {"llm_input_messages": [messages[turn.turn_id] for turn in turns if turn.turn_id in messages]}

    return hook
