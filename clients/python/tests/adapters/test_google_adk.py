"""Google ADK, with its package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

pytest.importorskip("google.adk")

from conftest import QUESTION
from google.adk.agents import Agent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import ToolContext
from google.genai import types

from graph_kernel_client import ConfigurationError, GraphKernelError, aio, sync
from graph_kernel_client.adapters.google_adk import GraphKernelMemoryService, GraphKernelSessionService


def event(author: str, *parts: types.Part, **fields: Any) -> Event:
    role = "model" if author == "agent" else "user"
    return Event(author=author, invocation_id="i", content=types.Content(role=role, parts=list(parts)), **fields)


def said(author: str, text: str, **delta: Any) -> Event:
    return event(author, types.Part(text=text), actions=EventActions(state_delta=delta))


def test_memory(connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]) -> None:
    async def example() -> None:
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="app", user_id="alice")
        call = types.Part(function_call=types.FunctionCall(id="c1", name="count", args={}))
        result = types.Part(function_response=types.FunctionResponse(id="c1", name="count", response={"n": 3}))
        for added in (
            event("user", types.Part(text=f"{QUESTION} made?")),
            event("agent", call),
            event("user", result),
            event("agent", types.Part(text="By a sequence.")),
        ):
            await sessions.append_event(session, added)
        async with aio.Database() as database:
            memory = GraphKernelMemoryService(database, embed=embed)
            await memory.add_session_to_memory(session)
            await memory.add_session_to_memory(session)  # a second time changes nothing
            await sessions.append_event(session, event("user", types.Part(text="Thanks.")))
            await memory.add_session_to_memory(session)
            row = connection.execute(
                "SELECT count(*), array_agg(role ORDER BY created_at) FROM memory_turns WHERE owner = 'app/alice'"
            ).fetchone()
            assert row == (5, ["user", "assistant", "tool", "assistant", "user"])

            sent = await aio.Conversation(database, f"app/alice/{session.id}").messages("openai")
            assert "Thanks." in str(sent)
            found = await memory.search_memory(app_name="app", user_id="alice", query=QUESTION)
            texts = [(entry.content.parts or [])[0].text for entry in found.memories]
            assert f"{QUESTION} made?" in texts and "By a sequence." in texts
            assert {entry.author for entry in found.memories} == {"user", "agent"}
            other = await memory.search_memory(app_name="app", user_id="bob", query=QUESTION)
            assert other.memories == []

    asyncio.run(example())


async def services(database: aio.Database) -> list[BaseSessionService]:
    """That of this package, and the one that says what is expected."""
    mine = GraphKernelSessionService(database)
    await mine.create_tables()
    return [mine, InMemorySessionService()]


ADA = {"app_name": "app", "user_id": "ada"}


@pytest.fixture
def states(connection: psycopg.Connection[Any]) -> Iterator[None]:
    yield
    connection.execute("DROP TABLE IF EXISTS adk_sessions")


def test_sessions_are_as_those_in_memory(connection: psycopg.Connection[Any], states: None) -> None:
    async def seen(service: BaseSessionService) -> list[Any]:
        """What can be asked of a service after the same calls."""
        first = await service.create_session(
            **ADA, session_id=" s 1 ", state={"a": 1, "app:x": 1, "user:y": [1], "temp:z": 0, "none": None}
        )
        second = await service.create_session(app_name="app", user_id="bob", state={"b": {"c": 2.5}})
        await service.create_session(app_name="other", user_id="ada", session_id="s 1")
        answers: list[Any] = [first.id, first.state, first.events, second.state]
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**ADA, session_id="s 1")
        call = types.Part(function_call=types.FunctionCall(id="c1", name="count", args={"n": 1}))
        result = types.Part(function_response=types.FunctionResponse(id="c1", name="count", response={"n": 3}))
        picture = types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png"))
        events = [
            said("user", "Hello.", **{"temp:t": 1, "a": 2, "user:y": [2]}),
            Event(author="agent", invocation_id="i", actions=EventActions(state_delta={"app:x": {"deep": [None]}})),
            event("agent", types.Part(text="thinking", thought=True), call),
            said("agent", "Thr"),
            event("user", result, picture),
            # The call was never stored.
            event("user", types.Part(function_response=types.FunctionResponse(id="c9", name="x", response={}))),
            said("agent", "Three.", a=3, none="some"),
        ]
        events[3].partial = True
        for n, added in enumerate(events):
            added.id, added.timestamp = f"e{n}", 2e9 + n
            returned = await service.append_event(first, added)
            answers.append(returned.model_dump(exclude={"id"}))
        answers += [first.state, [added.id for added in first.events], first.last_update_time]
        for config in (
            None,
            GetSessionConfig(num_recent_events=2),
            GetSessionConfig(num_recent_events=0),
            GetSessionConfig(after_timestamp=2e9 + 4),
            GetSessionConfig(after_timestamp=2e9 + 2, num_recent_events=3),
        ):
            got = await service.get_session(**ADA, session_id="s 1 ", config=config)
            assert got is not None
            answers.append(got.model_dump())
        answers.append(await service.get_session(**ADA, session_id="none"))
        answers.append(await service.get_session(app_name="app", user_id="bob", session_id="s 1"))
        # With a session that was read, as a runner does.
        got = await service.get_session(app_name="app", user_id="bob", session_id=second.id)
        assert got is not None
        answers.append(got.state)
        late = said("user", "Later.", **{"user:y": "bob's"})
        late.timestamp = 3e9
        await service.append_event(got, late)
        for user in ("ada", "bob", "nobody", None):
            listed = (await service.list_sessions(app_name="app", user_id=user)).sessions
            answers.append([(session.user_id, session.state, session.events) for session in listed])
        answers += [await service.get_user_state(app_name="app", user_id=user) for user in ("ada", "bob", "nobody")]
        await service.delete_session(**ADA, session_id="s 1")
        await service.delete_session(**ADA, session_id="s 1")
        answers.append(await service.get_session(**ADA, session_id="s 1"))
        with pytest.raises(SessionNotFoundError):
            await service.append_event(first, said("user", "Too late."))
        answers.append(len((await service.list_sessions(app_name="app")).sessions))
        # What was of the user and of the application outlives the session.
        again = await service.create_session(**ADA, session_id="s 1")
        answers += [again.state, again.events]
        return answers

    async def example() -> None:
        async with aio.Database() as database:
            mine, theirs = [await seen(service) for service in await services(database)]
            for n, (one, other) in enumerate(zip(mine, theirs, strict=True)):
                assert one == other, n

    asyncio.run(example())
    row = connection.execute("SELECT count(*) FROM memory_turns WHERE owner = 'app/ada'").fetchone()
    assert row == (0,)


def test_a_runner_with_sessions_that_are_memory(
    connection: psycopg.Connection[Any], states: None, embed: Callable[[str], list[float]]
) -> None:
    class Model(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            asked = llm_request.contents[-1].parts[0]
            if asked.function_response is None:
                part = types.Part(function_call=types.FunctionCall(name="count", args={}))
            else:
                part = types.Part(text=f"There are {asked.function_response.response['n']}.")
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    def count(tool_context: ToolContext) -> dict[str, int]:
        """Counts."""
        tool_context.state["user:counted"] = tool_context.state.get("user:counted", 0) + 1
        return {"n": 3}

    async def example() -> None:
        async with aio.Database() as database:
            sessions = GraphKernelSessionService(database, embed=embed)
            await sessions.create_tables()
            memory = GraphKernelMemoryService(database, embed=embed)
            agent = Agent(name="agent", model=Model(model="fake"), tools=[count])
            runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=memory)
            session = await sessions.create_session(**ADA)
            for _ in range(2):
                message = types.Content(role="user", parts=[types.Part(text=f"{QUESTION} made?")])
                run = runner.run_async(user_id="ada", session_id=session.id, new_message=message)
                last = [event async for event in run][-1]
                assert last.content is not None and (last.content.parts or [])[0].text == "There are 3."
            stored = await sessions.get_session(**ADA, session_id=session.id)
            assert stored is not None and len(stored.events) == 8 and stored.state == {"user:counted": 2}
            await memory.add_session_to_memory(stored)  # all of it is there
            rows = connection.execute("SELECT role FROM memory_turns WHERE owner = 'app/ada' ORDER BY created_at")
            assert [role for (role,) in rows.fetchall()] == ["user", "assistant", "tool", "assistant"] * 2
            found = await memory.search_memory(app_name="app", user_id="ada", query=QUESTION)
            assert "There are 3." in str(found.memories)
            # What was redacted is left out, and not stored again.
            (turn,) = connection.execute(
                "SELECT id FROM memory_turns WHERE owner = 'app/ada' ORDER BY created_at LIMIT 1"
            ).fetchall()[0]
            async with aio.Conversation(session_id=f"app/ada/{session.id}") as conversation:
                await conversation.redact(turn)
            await memory.add_session_to_memory(stored)
            again = await sessions.get_session(**ADA, session_id=session.id)
            assert again is not None and again.events == stored.events[1:]

    asyncio.run(example())


def test_what_is_no_event_ends_no_search(
    connection: psycopg.Connection[Any], embed: Callable[[str], list[float]], states: None
) -> None:
    async def example() -> None:
        async with aio.Database() as database:
            sessions = GraphKernelSessionService(database, embed=embed)
            await sessions.create_tables()
            session = await sessions.create_session(**ADA)
            await sessions.append_event(session, said("user", f"{QUESTION} made?"))
            other = aio.Conversation(database, "other", embed=embed, owner="app/ada")
            await other.append({"role": "user", "content": [{"type": "text", "text": f"{QUESTION} kept?"}]})
            for payload in (
                "5",
                '["content", "actions"]',
                '"actions"',
                '{"content": 5, "actions": 5}',
                '{"content": {"parts": 1}, "actions": {}}',
                '{"content": {"parts": [{"text": "odd"}]}, "author": 5}',
                '{"content": {"parts": [{"text": "n"}]}, "actions": {}, "author": "user", "timestamp": "soon"}',
                f'{{"actions": {"9" * 5000}}}',
                f'{{"actions": {"[" * 3000}{"]" * 3000}}}',
            ):
                connection.execute(
                    """INSERT INTO memory_turns (id, session_id, owner, content_text, embedding, payload)
                       SELECT gen_random_uuid(), session_id, owner, content_text, embedding, %s
                         FROM memory_turns WHERE payload->>'author' = 'user' LIMIT 1""",
                    (payload,),
                )
            found = await GraphKernelMemoryService(database, embed=embed).search_memory(**ADA, query=QUESTION)
            texts = [(entry.content.parts or [])[0].text for entry in found.memories]
            assert sorted(map(str, texts)) == [f"{QUESTION} made?", "n", "odd"]
            dated = await sessions.get_session(
                **ADA, session_id=session.id, config=GetSessionConfig(after_timestamp=1.5)
            )
            with pytest.warns(UserWarning, match="turns that are no events of this ADK"):
                stored = await sessions.get_session(**ADA, session_id=session.id)
            assert dated is not None and stored is not None
            assert [event.author for event in dated.events] == [event.author for event in stored.events] == ["user"]

    asyncio.run(example())


class Connections:
    """A pool: a connection for each."""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
            yield connection


def test_who_has_not_seen_the_latest_event_is_stale(connection: psycopg.Connection[Any], states: None) -> None:
    async def example() -> None:
        service = GraphKernelSessionService(aio.Database(Connections()))
        await service.create_tables()
        session = await service.create_session(**ADA, session_id="s")
        old = await service.get_session(**ADA, session_id="s")
        assert old is not None
        # Many at once over one object, as branches of an agent do.
        await asyncio.gather(*(service.append_event(session, said("agent", str(n), n=n)) for n in range(12)))
        assert len(session.events) == 12
        early = said("user", "From yesterday.")
        early.timestamp -= 86400
        await service.append_event(session, early)
        with pytest.raises(StaleSessionError):
            await service.append_event(old, said("user", "I have seen nothing."))
        assert old.events == []
        new = await service.get_session(**ADA, session_id="s")
        assert new is not None and sorted(e.id for e in new.events) == sorted(e.id for e in session.events)
        await service.append_event(new, said("user", "I have."))
        # An event is stored once; what it changes too.
        with pytest.raises(AlreadyExistsError):
            await service.append_event(new, new.events[-1])

    asyncio.run(example())


def test_what_fails_changes_nothing(connection: psycopg.Connection[Any], states: None) -> None:
    async def example() -> None:
        database = aio.Database(Connections())
        service = GraphKernelSessionService(database)
        await service.create_tables()
        session = await service.create_session(**ADA, session_id="s")
        seen = session.last_update_time
        connection.execute("ALTER TABLE memory_turns ADD CONSTRAINT failing CHECK (content_text <> 'fails')")
        try:
            with pytest.raises(GraphKernelError):
                await service.append_event(session, said("user", "fails", n=1))
        finally:
            connection.execute("ALTER TABLE memory_turns DROP CONSTRAINT failing")
        assert session.last_update_time == seen and session.events == []
        await service.append_event(session, said("user", "stored", n=1))
        # Another session refers to it.
        connection.execute(
            """INSERT INTO memory_turns (id, session_id) VALUES ('00000000-0000-4000-8000-0000000000e0', 'other');
               INSERT INTO memory_turn_edges SELECT id, '00000000-0000-4000-8000-0000000000e0', 'reply'
                 FROM memory_turns WHERE content_text = 'stored'"""
        )
        with pytest.raises(GraphKernelError):
            await service.delete_session(**ADA, session_id="s")
        assert await service.get_session(**ADA, session_id="s") is not None

    asyncio.run(example())


def test_adding_a_session_many_times_at_once(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        memory = GraphKernelMemoryService(aio.Database(Connections()))
        result = types.Part(function_response=types.FunctionResponse(id="adk-1", name="f", response={}))
        events = [event("user", result), *(said("user", f"event {n}") for n in range(3))]
        session = Session(id="cc", app_name="app", user_id="carl", events=events)
        await asyncio.gather(*(memory.add_session_to_memory(session) for _ in range(3)))
        said_there = [turn.content for turn in await aio.Conversation(Connections(), "app/carl/cc").turns()]
        assert said_there[-3:] == ["event 0", "event 1", "event 2"]

    asyncio.run(example())
    row = connection.execute("SELECT count(*) FROM memory_turns WHERE owner = 'app/carl'").fetchone()
    assert row == (4,)


def test_events_without_a_session_are_stored_once(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        memory = GraphKernelMemoryService(aio.Database())
        events = [said("user", "I like pecan pie.")]
        for _ in range(3):
            await memory.add_events_to_memory(**ADA, events=events)
        (stored,) = connection.execute("SELECT count(*) FROM memory_turns WHERE content_text LIKE '%pecan%'").fetchall()
        assert stored == (1,)

    asyncio.run(example())


def test_names_with_slashes_are_not_those_of_others(connection: psycopg.Connection[Any], states: None) -> None:
    async def example() -> None:
        async with aio.Database() as database:
            (service, _) = await services(database)
            names = [("a/b", "c", "d"), ("a", "b/c", "d"), ("a", "b", "c/d"), ("a%2Fb", "c", "d"), ("ä", "", "d")]
            for app, user, id in names:
                session = await service.create_session(app_name=app, user_id=user, session_id=id)
                await service.append_event(session, said("user", f"{app} {user} {id}"))
                memory = GraphKernelMemoryService(database)
                await memory.add_session_to_memory(session)
            for app, user, id in names:
                got = await service.get_session(app_name=app, user_id=user, session_id=id)
                assert got is not None
                assert [(e.content.parts or [])[0].text for e in got.events if e.content] == [f"{app} {user} {id}"]
                assert len((await service.list_sessions(app_name=app, user_id=user)).sessions) == 1

    asyncio.run(example())


def test_what_is_given_is_checked(connection: psycopg.Connection[Any]) -> None:
    for service in (GraphKernelSessionService, GraphKernelMemoryService):
        with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.aio\.Database"):
            service(sync.Database(connection))


def test_a_superuser_uses_no_states_of_another(connection: psycopg.Connection[Any], states: None) -> None:
    async def calls() -> None:
        async with aio.Database() as database:
            service = GraphKernelSessionService(database)
            await service.create_tables()
            session = await service.create_session(app_name="app", user_id="u", session_id="s")
            connection.execute("ALTER TABLE public.adk_sessions OWNER TO adk_owner")
            for call in (
                service.create_session(app_name="app", user_id="u"),
                service.get_session(app_name="app", user_id="u", session_id="s"),
                service.list_sessions(app_name="app"),
                service.get_user_state(app_name="app", user_id="u"),
                service.append_event(session, said("user", "a")),
                service.delete_session(app_name="app", user_id="u", session_id="s"),
            ):
                with pytest.raises(GraphKernelError, match=r"adk_owner, who owns the table public\.adk_sessions"):
                    await call

    connection.execute("CREATE ROLE adk_owner")
    try:
        asyncio.run(calls())
    finally:
        connection.execute("ALTER TABLE public.adk_sessions OWNER TO CURRENT_USER; DROP ROLE adk_owner")
