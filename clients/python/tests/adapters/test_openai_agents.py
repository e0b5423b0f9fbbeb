"""OpenAI Agents SDK, with its package."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

pytest.importorskip("agents")

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.memory import Session
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from graph_kernel_client import ConfigurationError, Conversation, GraphKernelError, aio
from graph_kernel_client.adapters.openai_agents import GraphKernelSession

ITEMS: list[Any] = [
    {"role": "user", "content": "Weather?"},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "sun"},
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Sun.", "annotations": []}],
    },
]


def test_session(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        async with aio.Database() as database:
            session = GraphKernelSession(aio.Conversation(database))
            assert isinstance(session, Session)
            assert await session.get_items() == [] and await session.pop_item() is None
            await session.add_items(ITEMS[:2])
            session = GraphKernelSession(aio.Conversation(database, session.session_id))
            await session.add_items(ITEMS[2:])
            assert await session.get_items() == ITEMS
            turns = await session.conversation.turns()
            assert [(turn.role, turn.content) for turn in turns] == [
                ("user", "Weather?"),
                ("assistant", None),
                ("tool", "sun"),
                ("assistant", "Sun."),
            ]
            assert await session.get_items(2) == ITEMS[2:] and await session.get_items(0) == []
            assert await session.pop_item() == ITEMS[3]
            assert await session.get_items() == ITEMS[:3]
            # What a provider takes is rendered of the same items.
            sent = await session.conversation.messages("openai")
            assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "tool"]
            await session.clear_session()
            assert await session.get_items() == []

    asyncio.run(example())


def test_a_response_in_a_session(connection: psycopg.Connection[Any]) -> None:
    """What was appended as one turn comes back item by item."""

    async def example() -> None:
        async with aio.Conversation() as conversation:
            calls = [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in range(2)]
            await conversation.append({"object": "response", "output": calls})
            session = GraphKernelSession(conversation)
            assert await session.get_items() == calls and await session.get_items(1) == calls[1:]
            # Item by item, too.
            assert await session.pop_item() == calls[1] and await session.get_items() == calls[:1]
            assert await session.pop_item() == calls[0] and await session.pop_item() is None
            await session.clear_session()

    asyncio.run(example())


def test_calls_side_by_side(connection: psycopg.Connection[Any]) -> None:
    """Each is an item, and a turn, of its own: also where one is not answered yet, another object has all."""

    def call(id: str) -> Any:
        return {"type": "function_call", "call_id": id, "name": "w", "arguments": "{}"}

    def result(id: str) -> Any:
        return {"type": "function_call_output", "call_id": id, "output": f"of {id}"}

    async def example() -> None:
        async with aio.Database() as database:
            first = GraphKernelSession(aio.Conversation(database))
            items: list[Any] = [{"role": "user", "content": "hi"}, call("c1"), call("c2"), result("c1")]

            async def seen() -> list[list[Any]]:
                other = GraphKernelSession(aio.Conversation(database, first.session_id))
                return [await first.get_items(), await other.get_items()]

            await first.add_items(items)
            assert await seen() == [items, items]
            await GraphKernelSession(aio.Conversation(database, first.session_id)).add_items([result("c2")])
            await first.add_items([{"role": "user", "content": "next"}])
            items += [result("c2"), {"role": "user", "content": "next"}]
            assert await seen() == [items, items]
            popped = [await first.pop_item() for _ in items]
            assert popped == items[::-1]
            assert await first.pop_item() is None
            # Two writers, of which each only appends.
            one, two = (GraphKernelSession(aio.Conversation(database, first.session_id)) for _ in range(2))
            assert await one.get_items() == await two.get_items() == []
            await one.add_items([{"role": "user", "content": "one"}])
            await two.add_items([{"role": "user", "content": "two"}])
            assert [item["content"] for item in await one.get_items()] == ["one", "two"]  # type: ignore[typeddict-item]
            await first.clear_session()

    asyncio.run(example())


def test_items_without_a_text(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        async with aio.Conversation() as conversation:
            session = GraphKernelSession(conversation)
            items: list[Any] = [
                {"type": "compaction", "encrypted_content": "e"},
                {"type": "mcp_approval_request", "id": "r", "name": "n", "arguments": "{}", "server_label": "s"},
                {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
                {"type": "item_reference", "id": "x"},
                {"type": "function_call_output", "call_id": "of no call", "output": "o"},
            ]
            await session.add_items(items)
            assert await session.get_items() == items
            assert [turn.role for turn in await conversation.turns()] == [
                *("assistant", "assistant", "user", "assistant", "tool"),
            ]
            await session.clear_session()

    asyncio.run(example())


def test_what_another_form_has_stored(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        async with aio.Conversation() as conversation:
            call = {"id": "k", "type": "function", "function": {"name": "w", "arguments": "{}"}}
            await conversation.append({"role": "assistant", "content": None, "tool_calls": [call]})
            session = GraphKernelSession(conversation)
            for asked in (session.get_items, session.pop_item):
                with pytest.raises(GraphKernelError) as caught:
                    await asked()
                assert caught.value.word == "INVALID_MESSAGE"
            assert len(await conversation.turns()) == 1
            await conversation.clear()

    asyncio.run(example())


def test_what_is_not_a_conversation() -> None:
    for wrong in (aio.Database(), Conversation(), None):
        with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.aio\.Conversation"):
            GraphKernelSession(wrong)  # type: ignore[arg-type]


def test_an_agent_with_a_session(connection: psycopg.Connection[Any]) -> None:
    set_tracing_disabled(True)
    seen: list[Any] = []

    class Scripted(Model):
        """A model that calls a tool, and then says what it saw."""

        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
            seen.append(input)
            output: Any
            if len(seen) == 1:
                output = ResponseFunctionToolCall(type="function_call", call_id="c1", name="weather", arguments="{}")
            else:
                text = ResponseOutputText(type="output_text", text=f"Answer {len(seen)}.", annotations=[])
                output = ResponseOutputMessage(
                    id=f"m{len(seen)}", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def weather() -> str:
        """The weather."""
        return "sun"

    async def example() -> None:
        async with aio.Database() as database:
            session = GraphKernelSession(aio.Conversation(database))
            agent = Agent(name="a", model=Scripted(), tools=[weather])
            first = await Runner.run(agent, "Weather?", session=session)
            assert first.final_output == "Answer 2."
            await Runner.run(agent, "And now?", session=session)
            assert [item.get("type", item.get("role")) for item in seen[-1]] == [
                "user",
                "function_call",
                "function_call_output",
                "message",
                "user",
            ]
            assert len(await session.get_items()) == 6

    asyncio.run(example())
