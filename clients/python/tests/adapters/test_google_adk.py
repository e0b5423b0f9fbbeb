"""Google ADK, with its package."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

pytest.importorskip("google.adk")

from conftest import QUESTION
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService
from google.genai import types

from graph_kernel_client import aio
from graph_kernel_client.adapters.google_adk import GraphKernelMemoryService


def test_memory(connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]) -> None:
    def event(author: str, *parts: types.Part) -> Event:
        role = "model" if author == "agent" else "user"
        return Event(author=author, invocation_id="i", content=types.Content(role=role, parts=list(parts)))

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

            sent = await memory._conversation("app", "alice", session.id).messages("openai")
            assert "Thanks." in str(sent)
            found = await memory.search_memory(app_name="app", user_id="alice", query=QUESTION)
            texts = [(entry.content.parts or [])[0].text for entry in found.memories]
            assert f"{QUESTION} made?" in texts and "By a sequence." in texts
            assert {entry.author for entry in found.memories} == {"user", "agent"}
            other = await memory.search_memory(app_name="app", user_id="bob", query=QUESTION)
            assert other.memories == []

    asyncio.run(example())
