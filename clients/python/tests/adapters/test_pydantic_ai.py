"""Pydantic AI, with its package."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.test import TestModel

from graph_kernel_client import ConfigurationError, Conversation, aio
from graph_kernel_client.adapters.pydantic_ai import append_messages, message_history


def test_what_is_not_a_conversation() -> None:
    for wrong in (aio.Database(), Conversation()):
        with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.aio\.Conversation"):
            asyncio.run(append_messages(wrong, []))  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.aio\.Conversation"):
            asyncio.run(message_history(wrong))  # type: ignore[arg-type]


def test_message_history(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        agent = Agent(TestModel(), instructions="You are brief.")

        @agent.tool_plain
        def weather(city: str) -> str:
            return f"sun in {city}"

        @agent.tool_plain
        def time(city: str) -> str:
            return "noon"

        async with aio.Database() as database:
            conversation = aio.Conversation(database)
            assert await message_history(conversation) == []
            first = await agent.run("Weather?")
            await append_messages(conversation, first.new_messages())
            again = aio.Conversation(database, conversation.session_id)
            history: list[ModelMessage] = await message_history(again)
            assert history == first.all_messages()
            second = await agent.run("And now?", message_history=history)
            await append_messages(again, second.new_messages())
            assert await message_history(again) == second.all_messages()
            turns = await again.turns()
            assert [turn.role for turn in turns][:4] == ["user", "assistant", "tool", "assistant"]
            assert turns[0].content == "Weather?" and "sun in" in (turns[2].content or "")
            assert len(await message_history(again, max_tokens=1)) < len(turns)
            sent = await again.messages("plain")
            assert "Weather?" in str(sent) and "And now?" in str(sent)

    asyncio.run(example())


def test_no_download_is_forced_by_a_stored_message(connection: psycopg.Connection[Any]) -> None:
    """Whoever may insert a turn can ask for one of the application's own network."""
    session = str(uuid.uuid4())
    url = {
        "kind": "document-url",
        "url": "http://127.0.0.1/x",
        "media_type": "text/plain",
        "force_download": "allow-local",
    }
    # An argument of a tool's, and what it returned, may have that name.
    data = {"files": 3, "force_download": True}
    payload = {
        "kind": "request",
        "parts": [
            {"part_kind": "user-prompt", "content": ["what does it say?", url]},
            {"part_kind": "tool-return", "tool_name": "sync", "tool_call_id": "c1", "content": [data, url]},
        ],
    }
    connection.execute(
        "INSERT INTO memory_turns (id, session_id, role, payload) VALUES (gen_random_uuid(), %s, 'user', %s)",
        (session, Jsonb(payload)),
    )

    async def example() -> None:
        async with aio.Database() as database:
            conversation = aio.Conversation(database, session)
            (message,) = await message_history(conversation)
            assert "allow-local" not in repr(message) and repr(message).count("127.0.0.1") == 2
            assert message.parts[1].content[0] == data
            await conversation.clear()

    asyncio.run(example())
