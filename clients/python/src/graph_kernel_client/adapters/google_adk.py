"""Google ADK: sessions whose events are turns, and a memory service over sessions. Needs google-adk."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai import types
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ValidationError

from .._async.conversation import Conversation
from .._async.database import Database, Transaction
from .._async.embedding import Embed
from .._messages import Part, storable
from .._rows import loaded
from .._sql import EQ, operator
from . import joined, taken

__all__ = ["GraphKernelMemoryService", "GraphKernelSessionService"]

_STATES = "public.adk_sessions"
_NO_SESSION = "__unknown_session_id__"  # as in ADK's own services
Model = TypeVar("Model", bound=BaseModel)
_EVENTS = uuid.UUID("0d0f5a0c-4d5f-5d0b-9a53-6d9a1c1b4f0e")


class GraphKernelSessionService(BaseSessionService):
    """Events as turns, whose owner is the user of the application: what was said in a session is memory at once.

    States are rows of `public.adk_sessions`, which `create_tables` makes.
    """

    def __init__(self, database: Database, *, embed: Embed | None = None) -> None:
        self._database, self._embed = taken(database, Database), embed

    async def create_tables(self) -> None:
        """Makes the table of states, if it is not there; `Database.create_tables` makes those of turns."""
        async with self._database.transaction() as transaction:
            # A row without a session is of the user, one without a user of the application.
            await transaction.execute(
                """CREATE TABLE IF NOT EXISTS public.adk_sessions (
                       app_name pg_catalog.text NOT NULL,
                       user_id pg_catalog.text,
                       session_id pg_catalog.text,
                       state pg_catalog.jsonb NOT NULL,
                       updated_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
                       UNIQUE NULLS NOT DISTINCT (app_name, user_id, session_id)
                   )"""
            )
            # Then, as another may have made it meanwhile.
            await transaction.refuse_tables_of_others("adk_sessions")
            await transaction.execute(
                "COMMENT ON TABLE public.adk_sessions IS 'states of sessions, users and applications of Google ADK'"
            )

    @asynccontextmanager
    async def _states(self) -> AsyncIterator[Transaction]:
        """A transaction in which the table of states is used."""
        async with self._database.transaction() as transaction:
            await transaction.named(_STATES)
            yield transaction

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        session_id = (session_id or "").strip() or str(uuid.uuid4())
        key = (app_name, user_id, session_id)
        # As states of events are written.
        delta = _payload(Event(author="user", actions=EventActions(state_delta=state or {})))["actions"]["stateDelta"]
        conversation = _conversation(self._database, self._embed, *key)
        async with self._states() as transaction:
            turns, _ = await transaction.tables()
            made = await transaction.fetch(
                f"""INSERT INTO public.adk_sessions (app_name, user_id, session_id, state)
                    SELECT %s, %s, %s, '{{{{}}}}'
                     WHERE NOT EXISTS (SELECT FROM {turns} WHERE session_id {EQ} %s)
                    ON CONFLICT DO NOTHING RETURNING app_name""",
                (*key, conversation.session_id),
            )
            if not made:
                raise AlreadyExistsError(f"Session with id {session_id} already exists.")
            await _update_states(transaction, key, delta, None)
            (session,) = _sessions(app_name, await _states(transaction, *key))
            return session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        session_id = session_id.strip()
        conversation = _conversation(self._database, self._embed, app_name, user_id, session_id)
        count = None if config is None else config.num_recent_events
        after = None if config is None else config.after_timestamp
        timestamp = f"{operator('->')} 'timestamp'::pg_catalog.text"
        async with self._states() as transaction:
            turns, _ = await transaction.tables()
            # First the state: what is stored in between makes the session stale, and is not lost.
            sessions = _sessions(app_name, await _states(transaction, app_name, user_id, session_id))
            if not sessions:
                return None
            rows = await transaction.fetch(
                f"""SELECT payload::pg_catalog.text AS payload FROM {turns}
                     WHERE session_id {EQ} %(session)s AND payload {operator("?")} 'actions'::pg_catalog.text
                       AND (%(after)s::pg_catalog.numeric IS NULL
                            OR CASE WHEN pg_catalog.jsonb_typeof(payload {timestamp}) {EQ} 'number'
                                    THEN (payload {timestamp})::pg_catalog.numeric {operator(">=")} %(after)s END)
                     ORDER BY created_at DESC, id DESC LIMIT %(count)s""",
                {
                    "session": conversation.session_id,
                    "after": None if after is None else str(after),
                    "count": count,
                },
            )
        (session,) = sessions
        events = [_read(Event, loaded(row["payload"])) for row in reversed(rows)]
        session.events = [event for event in events if event is not None]
        if len(session.events) < len(events):
            left_out = len(events) - len(session.events)
            warnings.warn(f"session {session_id} has {left_out} turns that are no events of this ADK", stacklevel=2)
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        async with self._states() as transaction:
            rows = await _states(transaction, app_name, user_id)
        return ListSessionsResponse(sessions=_sessions(app_name, rows))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes the state and the turns of the session, which are its memory too."""
        key = (app_name, user_id, session_id.strip())

        async def delete_state(transaction: Transaction) -> None:
            # First the state: nothing is appended from then on.
            await transaction.named(_STATES)
            await transaction.execute(
                f"DELETE FROM public.adk_sessions WHERE (app_name, user_id, session_id) {EQ} (%s, %s, %s)", key
            )

        await _conversation(self._database, self._embed, *key).clear(before=delete_state)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        async with self._states() as transaction:
            rows = await transaction.fetch(
                f"SELECT state FROM public.adk_sessions WHERE (app_name, user_id) {EQ} (%s, %s) AND session_id IS NULL",
                (app_name, user_id),
            )
        return dict(rows[0]["state"]) if rows else {}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Stores the event with what it changes in the states, unless it is partial."""
        if event.partial:
            return event
        key = (session.app_name, session.user_id, session.id)
        conversation = _conversation(self._database, self._embed, *key)
        part = _part(conversation, event)

        async def update(transaction: Transaction) -> None:
            await transaction.named(_STATES)
            rows = await transaction.fetch(
                f"SELECT {_UPDATED} FROM public.adk_sessions WHERE (app_name, user_id, session_id) {EQ} (%s, %s, %s)"
                " FOR UPDATE",
                key,
            )
            if not rows:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            turns, _ = await transaction.tables()
            if await transaction.fetch(f"SELECT FROM {turns} WHERE id {EQ} %s", (part.turn_id,)):
                raise AlreadyExistsError(f"Event {event.id} already exists.")
            if float(rows[0]["updated"]) > session.last_update_time:
                raise StaleSessionError(f"Session {session.id} has events that this object of it has not.")
            # Before others can lock the row: they may append to this object too.
            session.last_update_time = await _update_states(
                transaction, key, part.payload["actions"]["stateDelta"], event.timestamp
            )

        seen = session.last_update_time
        try:
            await conversation.append_parts([part], before=update)
        except BaseException:
            # What was not stored makes nobody the latest. Where another one has appended meanwhile, the next is stale.
            session.last_update_time = min(seen, session.last_update_time)
            raise
        return await super().append_event(session, event)


class GraphKernelMemoryService(BaseMemoryService):
    """Events of sessions as turns, whose owner is the user of the application; what a query finds comes with what was
    said around it, within `max_tokens`."""

    def __init__(self, database: Database, *, embed: Embed | None = None, max_tokens: int = 2000) -> None:
        self._database, self._embed, self._max_tokens = taken(database, Database), embed, max_tokens

    async def add_session_to_memory(self, session: Session) -> None:
        """Stores the events of a session that have a content and are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        # Without a session one of their own, so that an event is stored once.
        conversation = _conversation(self._database, self._embed, app_name, user_id, session_id or _NO_SESSION)
        await conversation.append_parts(
            [_part(conversation, event) for event in events if event.content is not None and event.content.parts]
        )

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        conversation = _conversation(self._database, self._embed, app_name, user_id)
        found = await conversation.recall(query, self._max_tokens)
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=turn.turn_id,
                    content=content,
                    author=author if isinstance(author := turn.payload.get("author"), str) else None,
                    timestamp=turn.created_at.isoformat() if turn.created_at is not None else None,
                    custom_metadata={"part": turn.part, "score": turn.score, "seed": turn.seed},
                )
                for turn in found
                # The owner may have turns that are no events: of another adapter, or of a conversation.
                if turn.payload is not None and (content := _read(types.Content, turn.payload.get("content")))
            ]
        )


def _conversation(
    database: Database, embed: Embed | None, app_name: str, user_id: str, session_id: str | None = None
) -> Conversation:
    session = None if session_id is None else joined(app_name, user_id, session_id)
    return Conversation(database, session, embed=embed, owner=joined(app_name, user_id))


# As text, which no setting of the session rounds.
_UPDATED = """pg_catalog."extract"('epoch', updated_at)::pg_catalog.text AS updated"""


async def _states(
    transaction: Transaction, app_name: str, user_id: str | None, session_id: str | None = None
) -> list[dict[str, Any]]:
    """The states of an application, of a user or all, and of a session or all; the latest session last."""
    return await transaction.fetch(
        f"""SELECT user_id, session_id, state, {_UPDATED} FROM public.adk_sessions
             WHERE app_name {EQ} %(app)s
               AND (user_id IS NULL OR %(user)s::pg_catalog.text IS NULL OR user_id {EQ} %(user)s)
               AND (session_id IS NULL OR %(session)s::pg_catalog.text IS NULL OR session_id {EQ} %(session)s)
             ORDER BY updated_at, user_id, session_id""",
        {"app": app_name, "user": user_id, "session": session_id},
    )


def _sessions(app_name: str, rows: Sequence[Mapping[str, Any]]) -> list[Session]:
    """The sessions without their events, each with the states that it sees."""
    shared = {row["user_id"]: row["state"] for row in rows if row["session_id"] is None}
    return [
        Session(
            app_name=app_name,
            user_id=row["user_id"],
            id=row["session_id"],
            state={
                **row["state"],
                **{State.APP_PREFIX + key: value for key, value in shared.get(None, {}).items()},
                **{State.USER_PREFIX + key: value for key, value in shared.get(row["user_id"], {}).items()},
            },
            last_update_time=float(row["updated"]),
        )
        for row in rows
        if row["session_id"] is not None
    ]


async def _update_states(
    transaction: Transaction, key: tuple[str, str, str], delta: Mapping[str, Any], timestamp: float | None
) -> float:
    """Changes the states of the session, its user and its application, and returns when the session was changed.

    That is later than it was in any case: so whoever has not seen this change is stale.
    """
    app_name, user_id, _ = key
    deltas: dict[tuple[str, str | None, str | None], dict[str, Any]] = {key: {}}
    for name, value in delta.items():
        if name.startswith(State.APP_PREFIX):
            deltas.setdefault((app_name, None, None), {})[name.removeprefix(State.APP_PREFIX)] = value
        elif name.startswith(State.USER_PREFIX):
            deltas.setdefault((app_name, user_id, None), {})[name.removeprefix(State.USER_PREFIX)] = value
        else:
            deltas[key][name] = value
    updated = []
    # In one order, in which transactions wait for each other: the session, the user, the application.
    for of in sorted(deltas, key=lambda of: of.count(None)):
        updated += await transaction.fetch(
            f"""INSERT INTO public.adk_sessions AS s (app_name, user_id, session_id, state)
                VALUES (%s, %s, %s, %s)
                ON CONFLICT (app_name, user_id, session_id) DO UPDATE SET
                    state = s.state {operator("||")} excluded.state,
                    updated_at = greatest(pg_catalog.to_timestamp(%s),
                                          s.updated_at {operator("+")} interval '1 microsecond')
                RETURNING {_UPDATED}""",
            (*of, Jsonb(deltas[of]), timestamp),
        )
    return float(updated[0]["updated"])


def _payload(event: Event) -> dict[str, Any]:
    """What is stored of an event: without values that last for an invocation alone."""
    payload: dict[str, Any] = storable(event.model_dump(mode="json", by_alias=True, exclude_none=True))
    delta = payload["actions"]["stateDelta"]
    payload["actions"]["stateDelta"] = {
        name: value for name, value in delta.items() if not name.startswith(State.TEMP_PREFIX)
    }
    return payload


def _read(kind: type[Model], value: Any) -> Model | None:
    """What a payload has; None where another one than this has stored it in another form."""
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None


def _part(conversation: Conversation, event: Event) -> Part:
    content = event.content or types.Content()
    parts = content.parts or []
    responses = [part.function_response for part in parts if part.function_response]
    said = [part.text for part in parts if part.text and not part.thought]
    said += [str(response.response) for response in responses]
    return Part(
        _payload(event),
        [response.id for response in responses if response.id],
        role="tool" if responses else "user" if content.role == "user" else "assistant",
        text="\n".join(said),
        turn_id=uuid.uuid5(_EVENTS, f"{conversation.session_id}/{event.id}"),
    )
