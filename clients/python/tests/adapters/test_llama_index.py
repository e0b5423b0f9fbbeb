"""LlamaIndex, with its package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

pytest.importorskip("llama_index.core")

from conftest import ANCHOR, QUESTION
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.schema import MetadataMode

from graph_kernel_client import Conversation, GraphKernelError, MemoryRetriever, aio, sync
from graph_kernel_client.adapters.llama_index import GraphKernelMemory, GraphKernelRetriever

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
MESSAGES = [
    ChatMessage(role="user", content="Weather?"),
    ChatMessage(role="assistant", content="I look.", additional_kwargs={"tool_calls": [CALL]}),
    ChatMessage(role="tool", content="sun", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role="assistant", content="Sun."),
]


def test_memory(connection: psycopg.Connection[Any]) -> None:
    conversation = Conversation(connection)
    memory = GraphKernelMemory.from_defaults(conversation, max_tokens=5)
    assert memory.get_all() == []
    memory.put_messages(MESSAGES)
    again = GraphKernelMemory.from_defaults(Conversation(connection, conversation.session_id), max_tokens=5)
    assert again.get_all() == MESSAGES and len(again.get()) < 4
    sent = conversation.messages("plain")
    assert "Weather?" in str(sent) and "Sun." in str(sent)
    failing = Conversation(connection, conversation.session_id, embed=lambda text: [])
    with pytest.raises(GraphKernelError):
        GraphKernelMemory.from_defaults(failing).set(MESSAGES[:1])
    assert again.get_all() == MESSAGES
    again.set(MESSAGES[:1])
    assert again.get_all() == MESSAGES[:1]
    again.reset()
    assert again.get_all() == []


def test_what_is_not_a_conversation(connection: psycopg.Connection[Any]) -> None:
    for wrong in (sync.Database(connection), aio.Conversation()):
        with pytest.raises(ValueError, match=r"graph_kernel_client\.Conversation"):
            GraphKernelMemory.from_defaults(wrong)  # type: ignore[arg-type]


def test_no_file_of_the_machine_is_named_by_a_stored_message(connection: psycopg.Connection[Any]) -> None:
    """Whoever may insert a turn can name one."""
    conversation = Conversation(connection)
    blocks = [
        {"block_type": "document", "path": "/etc/passwd", "document_mimetype": "text/plain"},
        {"block_type": "image", "url": "http://127.0.0.1/secret.png"},
        {"block_type": "image", "url": "https://example.org/open.png"},
        {
            "block_type": "citable",
            "title": "t",
            "source": "s",
            "content": [{"block_type": "document", "path": "/etc/passwd"}, {"block_type": "text", "text": "cited"}],
        },
        {
            "block_type": "citation",
            "title": "t",
            "source": "s",
            "additional_location_info": {},
            "cited_content": {"block_type": "image", "path": "/etc/passwd"},
        },
        {
            "block_type": "tool_call",
            "tool_name": "open",
            "tool_kwargs": {"files": [{"block_type": "text", "path": "/docs/a.md"}]},
        },
        {"block_type": "text", "text": "what does it say?"},
    ]
    kwargs = {"images": [{"path": "/etc/passwd"}], "files": [{"block_type": "text", "path": "/docs/a.md"}]}
    connection.execute(
        "INSERT INTO memory_turns (id, session_id, role, payload) VALUES (gen_random_uuid(), %s, 'user', %s)",
        (conversation.session_id, Jsonb({"role": "user", "additional_kwargs": kwargs, "blocks": blocks})),
    )
    (message,) = GraphKernelMemory.from_defaults(conversation).get_all()
    image, citable, call, text = message.blocks
    assert str(image.url) == "https://example.org/open.png" and text.text == "what does it say?"
    assert [block.text for block in citable.content] == ["cited"]
    # What is a tool's or the application's own stays.
    assert call.tool_kwargs == {"files": kwargs["files"]} and message.additional_kwargs == {"files": kwargs["files"]}
    conversation.clear()


def test_a_chat_engine_with_memory(connection: psycopg.Connection[Any]) -> None:
    memory = GraphKernelMemory.from_defaults(Conversation(connection))
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    engine.chat("Hello.")
    engine.chat("Again.")
    assert [str(message.role.value) for message in memory.get_all()] == ["user", "assistant", "user", "assistant"]


def test_retriever(connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]) -> None:
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    nodes = GraphKernelRetriever(MemoryRetriever(connection, embed=embed), export, limit=3).retrieve(QUESTION)
    assert [node.node.node_id[:8] for node in nodes] == ["42cf2e38", "10eae790", "95484ab0"]
    # A model is sent the text, and nothing of the record.
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert nodes[0].node.get_content(mode) == nodes[0].node.get_content(MetadataMode.NONE)
    assert nodes[0].score and nodes[0].node.metadata["provenance"]["slice_id"] == export.slice_id
    assert len(GraphKernelRetriever(MemoryRetriever(connection, embed=embed), limit=2).retrieve(QUESTION)) == 2
