"""Messages in both forms, branches, and the record of a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from graph_kernel_client import Conversation, GraphKernelError

Turn = tuple[str, "str | None", Any]


@pytest.fixture
def conversation(connection: psycopg.Connection[Any]) -> Iterator[Conversation]:
    with Conversation(connection) as made:
        yield made
    connection.execute("DELETE FROM memory_turn_edges WHERE child_turn_id NOT IN (SELECT id FROM sample)")
    connection.execute("DELETE FROM memory_turns WHERE id NOT IN (SELECT id FROM sample)")


@pytest.fixture(autouse=True)
def sample(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS sample AS SELECT id FROM memory_turns")


def stored(connection: psycopg.Connection[Any], conversation: Conversation) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT role, content_text, payload FROM memory_turns WHERE session_id = %s ORDER BY created_at",
        (conversation.session_id,),
    ).fetchall()


def edges(connection: psycopg.Connection[Any], conversation: Conversation) -> list[tuple[Any, ...]]:
    """The edges, by the positions of their ends in the order of writing."""
    return connection.execute(
        """WITH t AS (SELECT id, row_number() OVER (ORDER BY created_at) - 1 AS n
                        FROM memory_turns WHERE session_id = %s)
           SELECT p.n, c.n, e.edge_type FROM memory_turn_edges AS e
             JOIN t AS p ON p.id = e.parent_turn_id JOIN t AS c ON c.id = e.child_turn_id ORDER BY c.n, p.n""",
        (conversation.session_id,),
    ).fetchall()


OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Weather in Oslo and Bergen?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'}}
            for n, city in enumerate(("Oslo", "Bergen"))
        ],
    },
    {"role": "tool", "tool_call_id": "c0", "content": "sun"},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "assistant", "content": "Sun in Oslo, rain in Bergen."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo and Bergen?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c0", "name": "weather", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bergen"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c0", "content": "sun"},
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "rain"}]},
            {"type": "text", "text": "And quickly."},
        ],
    },
    {"role": "assistant", "content": "Sun in Oslo, rain in Bergen."},
]


def test_messages_of_openai(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    for message in OPENAI:
        conversation.append(message)
    assert stored(connection, conversation) == [
        ("system", "You are brief.", None),
        ("user", "Weather in Oslo and Bergen?", None),
        ("assistant", None, OPENAI[2]),
        ("tool", "sun", OPENAI[3]),
        ("tool", "rain", OPENAI[4]),
        ("assistant", "Sun in Oslo, rain in Bergen.", None),
    ]
    # Results stand side by side below their call, and what comes next follows both.
    assert [(p, c) for p, c, _ in edges(connection, conversation)] == [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)]


def test_messages_of_anthropic(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    written = [conversation.append(message) for message in ANTHROPIC]
    assert [len(turns) for turns in written] == [1, 1, 3, 1]
    assert [(role, text) for role, text, _ in stored(connection, conversation)] == [
        ("user", "Weather in Oslo and Bergen?"),
        ("assistant", "I look."),
        ("tool", "sun"),
        ("tool", "rain"),
        ("user", "And quickly."),
        ("assistant", "Sun in Oslo, rain in Bergen."),
    ]
    assert [(p, c) for p, c, _ in edges(connection, conversation)] == [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]
    payloads = [payload for _, _, payload in stored(connection, conversation)]
    assert payloads[3] == {"role": "user", "content": [ANTHROPIC[2]["content"][1]]}
    assert payloads[5] is None


def test_a_conversation_goes_on_in_another_process(
    connection: psycopg.Connection[Any], conversation: Conversation
) -> None:
    for message in OPENAI[:-1]:
        Conversation(connection, conversation.session_id).append(message)
    Conversation(connection, conversation.session_id).append(OPENAI[-1])
    assert [(p, c) for p, c, _ in edges(connection, conversation)] == [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)]


def test_branches(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    first = [conversation.append({"role": "user", "content": text})[0] for text in ("one", "two")]
    other = conversation.branch(first[0])
    other.append({"role": "user", "content": "another two"})
    conversation.append({"role": "user", "content": "three"})
    assert edges(connection, conversation) == [(0, 1, "reply"), (0, 2, "branch"), (1, 3, "reply")]
    row = connection.execute(
        "SELECT array_agg(content ORDER BY n) FROM graph_messages(%s::uuid, 'chat')", (other.head(),)
    ).fetchone()
    assert row == (["one", "another two"],)


def test_tokens_are_counted_of_what_is_sent(connection: psycopg.Connection[Any]) -> None:
    counted = []

    def count(message: Any) -> int:
        counted.append(message)
        return 7

    with Conversation(connection, count_tokens=count) as conversation:
        conversation.append(OPENAI[0])
        conversation.append(OPENAI[2])
    assert counted == [OPENAI[0], OPENAI[2]]
    rows = connection.execute(
        "SELECT DISTINCT token_count FROM memory_turns WHERE session_id = %s", (conversation.session_id,)
    ).fetchall()
    assert rows == [(7,)]


def test_objects_of_a_package(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    class Answer:
        """What the packages of both providers return: an object of pydantic."""

        def model_dump(self, **_: Any) -> dict[str, Any]:
            return {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": "Hello."}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 3},
            }

    conversation.append(Answer())
    assert stored(connection, conversation) == [
        ("assistant", "Hello.", {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]})
    ]


@pytest.mark.parametrize("message", ["hello", {}, {"content": "x"}, {"role": 1, "content": "x"}, None, 3])
def test_what_is_not_a_message(connection: psycopg.Connection[Any], conversation: Conversation, message: Any) -> None:
    with pytest.raises(GraphKernelError) as caught:
        conversation.append(message)
    assert caught.value.word == "INVALID_MESSAGE"
    assert stored(connection, conversation) == []


def test_a_result_without_its_call(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    conversation.append(OPENAI[1])
    with pytest.raises(GraphKernelError) as caught:
        conversation.append(OPENAI[3])
    assert caught.value.word == "CALL_NOT_FOUND"
    # Nothing was written, and the conversation goes on.
    conversation.append(OPENAI[2])
    conversation.append(OPENAI[3])
    assert len(stored(connection, conversation)) == 3


def test_tables_of_others_are_not_written(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE notes (LIKE memory_turns INCLUDING ALL)")
    connection.execute("ALTER TABLE notes RENAME trajectory_phase TO stage")
    connection.execute(
        """SELECT graph_kernel.bind_tables('notes', 'memory_turn_edges', '{"turns": {"phase": "stage"}}', 'notes')"""
    )
    try:
        with pytest.raises(GraphKernelError) as caught:
            Conversation(connection, graph="notes").append({"role": "user", "content": "x"})
        assert caught.value.word == "INVALID_BINDING"
    finally:
        connection.execute("SELECT graph_kernel.unbind_tables('notes')")
        connection.execute("DROP TABLE notes")
