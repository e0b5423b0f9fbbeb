"""Messages in both forms, branches, and the record of a prompt."""

from __future__ import annotations

import asyncio
import json
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest
from conftest import ANCHOR, MISSING, QUESTION

from graph_kernel_client import Conversation, GraphKernelError, PinLeftOut, PromptTurn, Step, aio, sync
from graph_kernel_client._messages import Part, parts


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
            {"id": f"c{n}", "type": "function", "function": {"name": "weather", "arguments": f'{{"city":"{city}"}}'}}
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


def test_a_conversation_goes_on_elsewhere(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
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
    # Opened again, a session goes on at its latest turn, whichever line has it; the other is a branch away.
    other.append({"role": "user", "content": "another three"})
    again = Conversation(connection, conversation.session_id)
    assert again.head() == other.head()
    assert [turn.content for turn in again.branch(conversation.head()).turns()] == ["one", "two", "three"]


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


def test_calls_count_as_they_are_sent(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    """A budget bounds what is sent, also where a turn is a call without a text."""
    goal = conversation.append({"role": "user", "content": "Write the files."})[0]
    for n in range(30):
        function = {"name": "write_file", "arguments": json.dumps({"path": f"{n}.txt", "text": "abcd " * 240})}
        call = {"id": f"w{n}", "type": "function", "function": function}
        conversation.append({"role": "assistant", "content": None, "tool_calls": [call]})
        conversation.append({"role": "tool", "tool_call_id": f"w{n}", "content": "ok"})
    conversation.append({"role": "assistant", "content": "All are written."})
    for form in ("openai", "responses", "anthropic"):
        for max_tokens in (1000, 5000):
            sent = json.dumps(conversation.messages(form, max_tokens=max_tokens, goal=goal))
            assert "Write the files." in sent
            assert 0.5 * max_tokens < len(sent) / 4 < 1.2 * max_tokens


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        # Nothing is sent but the text, whose bytes the server counts, also after it was edited.
        ({"role": "user", "content": "abcd" * 5}, [None]),
        ({"role": "user", "content": [{"type": "text", "text": "abcd" * 5}]}, [None]),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "a" * 400, "signature": "s" * 400}]},
            [212],
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "b" * 391}}],
            },
            [101],
        ),
        # A file by its kind, not by its bytes.
        ({"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "A" * 99999}}]}, [1602]),
        ({"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "a" * 400}}]}, [115]),
        ({"type": "function_call", "call_id": "c9", "name": "f", "arguments": "a" * 397}, [100]),
        # One call in three forms, as packages store it.
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": "b" * 391}}],
                "tool_calls": [{"id": "c1", "name": "f", "args": {"a": "b" * 391}}],
                "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]},
            },
            [101],
        ),
        # Calls of one list are all sent, whatever their ids are.
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "a" * 397}}] * 3,
            },
            [300],
        ),
        # What a result has beside its text is sent as well.
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "abcd"},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "s1",
                        "content": [{"type": "web_search_result", "url": "u" * 34, "encrypted_content": "e" * 400}],
                    },
                ],
            },
            [123],
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "web_fetch_tool_result",
                        "tool_use_id": "c1c1",
                        "content": [
                            {"type": "text", "text": "abcd"},
                            {"type": "image", "source": {"type": "base64", "data": "A" * 9999}},
                        ],
                    }
                ],
            },
            [1604],
        ),
    ],
)
def test_tokens_of_forms(
    connection: psycopg.Connection[Any], conversation: Conversation, message: Any, tokens: list[int | None]
) -> None:
    conversation.append(message)
    rows = connection.execute(
        "SELECT token_count FROM memory_turns WHERE session_id = %s", (conversation.session_id,)
    ).fetchall()
    assert [count for (count,) in rows] == tokens


@pytest.mark.parametrize(
    "returned",
    [
        {"rows": [{"n": n, "is": True} for n in range(2000)]},
        [{"type": "json", "json": [list(range(5000))]}],
        [{"type": "resource", "resource": {"uri": "file:///a", "text": "abcd " * 8000}}],
    ],
)
def test_data_that_a_tool_returns_counts(conversation: Conversation, returned: Any) -> None:
    conversation.append(user("Look."))
    conversation.append(
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    )
    conversation.append({"role": "tool", "tool_call_id": "c1", "content": returned})
    conversation.append({"role": "assistant", "content": "Seen."})
    for form in ("openai", "responses", "anthropic"):
        assert len(json.dumps(conversation.messages(form, max_tokens=1000))) < 4000
        assert len(json.dumps(conversation.messages(form, max_tokens=40_000))) > 20_000


def test_what_cannot_be_stored(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    conversation.append(OPENAI[1])
    conversation.append(OPENAI[2])
    conversation.append({"role": "tool", "tool_call_id": "c0", "content": "a\0b\ud83dc \U0001f600"})
    conversation.append({"role": "user", "content": "\0"})
    assert [text for _, text, _ in stored(connection, conversation)][2:] == ["a\ufffdb\ufffdc \U0001f600", "\ufffd"]


def test_a_model_that_asks_the_same_database(connection: psycopg.Connection[Any]) -> None:
    """Embeddings are made before the transaction: the model may use the connection, and take its time."""
    database = sync.Database()
    idle = []

    def model(text: str) -> list[float]:
        idle.append(database.fetch_one("SELECT pg_catalog.pg_current_xact_id_if_assigned() IS NULL AS idle")["idle"])
        return [1.0] + [0.0] * 383

    conversation = Conversation(database, embed=model)
    for message in ANTHROPIC:
        conversation.append(message)
    assert idle == [True] * 6
    row = connection.execute(
        "SELECT count(embedding) FROM memory_turns WHERE session_id = %s", (conversation.session_id,)
    ).fetchone()
    assert row == (6,)
    conversation.clear()
    database.close()


def test_who_appends_to_a_session_stops_others_for_ten_seconds_at_most(connection: psycopg.Connection[Any]) -> None:
    """A shorter lock_timeout of the application stays."""
    with psycopg.connect(autocommit=True, options="-c lock_timeout=100ms") as own:
        conversation = Conversation(own)
        with connection.transaction():
            connection.execute(
                "SELECT graph_kernel.advisory_xact_lock('public.memory_turns', hashtext(%s))",
                (conversation.session_id,),
            )
            with pytest.raises(GraphKernelError, match="another transaction appends to session") as caught:
                conversation.append({"role": "user", "content": "a"})
            assert caught.value.sqlstate == "55P03"
        with own.transaction():
            conversation.append({"role": "user", "content": "a"})
            assert own.execute("SHOW lock_timeout").fetchone() == ("100ms",)
        conversation.clear()


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


@pytest.mark.parametrize("whole", [True, False])
def test_what_the_package_of_openai_returns(
    connection: psycopg.Connection[Any], conversation: Conversation, whole: bool
) -> None:
    chat = pytest.importorskip("openai.types.chat")
    conversation.append(OPENAI[1])
    choice = {"index": 0, "finish_reason": "tool_calls", "message": OPENAI[2]}
    completion = chat.ChatCompletion.model_validate(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )
    conversation.append(completion if whole else completion.choices[0].message)
    conversation.append(OPENAI[3])
    conversation.append(OPENAI[4])
    sent = conversation.messages("openai")["messages"]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["c0", "c1"] and sent[3]["content"] == "rain"


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        *(
            {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "weather", "arguments": '{"n":1}'}
            for n in range(2)
        ),
    ],
}
OUTPUTS = [
    {"type": "function_call_output", "call_id": f"c{n}", "output": text} for n, text in enumerate(("sun", "rain"))
]


@pytest.mark.parametrize("whole", [True, False])
def test_responses_of_openai(connection: psycopg.Connection[Any], conversation: Conversation, whole: bool) -> None:
    """An agent with tools by the Responses API: what it returns is appended, whole or item by item."""
    responses = pytest.importorskip("openai.types.responses")
    response = responses.Response.model_validate(RESPONSE)
    conversation.append(OPENAI[1])
    for message in [response] if whole else response.output:
        conversation.append(message)
    for output in OUTPUTS:
        conversation.append(output)
    conversation.append({"role": "user", "content": "Thanks."})
    said = [(role, text) for role, text, _ in stored(connection, conversation) if text or role == "tool"]
    assert said[1:] == [("assistant", "I look."), ("tool", "sun"), ("tool", "rain"), ("user", "Thanks.")]
    sent = conversation.messages("responses")["input"]
    kinds = [item.get("type", "message") for item in sent]
    calls = [item["call_id"] for item in sent if item.get("type") == "function_call"]
    outputs = {item["call_id"]: item["output"] for item in sent if item.get("type") == "function_call_output"}
    assert calls == ["c0", "c1"] and outputs == {"c0": "sun", "c1": "rain"}
    assert kinds.index("function_call") < kinds.index("function_call_output") < len(kinds) - 1
    assert "I look." in json.dumps(sent)
    assert conversation.messages("openai")["messages"][-1] == {"role": "user", "content": "Thanks."}


def test_what_the_package_of_anthropic_returns(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    types = pytest.importorskip("anthropic.types")
    conversation.append(ANTHROPIC[0])
    message = types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "model": "m",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            **ANTHROPIC[1],
        }
    )
    conversation.append(message)
    conversation.append(ANTHROPIC[2])
    sent = conversation.messages("anthropic")["messages"]
    assert sent[1] == ANTHROPIC[1]
    assert [block["type"] for block in sent[2]["content"]] == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize(
    "message",
    [
        *("hello", {}, {"content": "x"}, {"role": 1, "content": "x"}, {"role": "assistant", "output": []}, None, 3, []),
        {"type": "human", "content": "Of LangChain."},
        {"type": "item_reference", "id": "x"},
        {"object": "response", "output": []},
        {"object": "chat.completion", "choices": []},
        {"object": "chat.completion", "choices": [{"message": OPENAI[1]}, {"message": OPENAI[1]}]},
    ],
)
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


@pytest.mark.own_search_path
def test_no_operator_of_others_is_called(
    connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]
) -> None:
    """One of a column's very type, in a schema of the search_path, is nearer than PostgreSQL's."""
    names = ("=", "<>", "<=", "^@")
    operators = "".join(
        f"CREATE OPERATOR others.{name} (LEFTARG = varchar, RIGHTARG = {right}, FUNCTION = others.compared);"
        for name in names
        for right in ("varchar", "text")
    )
    columns = ("session_id", "role", "owner")
    connection.execute(
        f"""CREATE SCHEMA others;
            CREATE FUNCTION others.compared(varchar, varchar) RETURNS boolean LANGUAGE plpgsql
                AS $$ BEGIN RAISE 'a function of others'; END $$;
            CREATE FUNCTION others.compared(varchar, text) RETURNS boolean LANGUAGE plpgsql
                AS $$ BEGIN RAISE 'a function of others'; END $$;
            CREATE FUNCTION others.lower(varchar) RETURNS text LANGUAGE plpgsql
                AS $$ BEGIN RAISE 'a function of others'; END $$;
            {operators}
            CREATE FUNCTION others.value(json, json) RETURNS json LANGUAGE sql AS 'SELECT $1';
            CREATE OPERATOR others.-> (LEFTARG = json, RIGHTARG = json, FUNCTION = others.value);
            CREATE FUNCTION others.text(jsonb, jsonb) RETURNS text LANGUAGE sql AS 'SELECT $1::text';
            CREATE OPERATOR others.#>> (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = others.text);
            CREATE TABLE others.turns (LIKE memory_turns INCLUDING ALL);
            ALTER TABLE others.turns {", ".join(f"ALTER {column} TYPE varchar" for column in columns)};
            CREATE TABLE others.edges (LIKE memory_turn_edges INCLUDING ALL);
            ALTER TABLE others.edges ALTER edge_type TYPE varchar;
            SELECT graph_kernel.bind_tables('others.turns', 'others.edges', name => 'others')"""
    )
    try:
        with psycopg.connect(autocommit=True, options="-c search_path=public,others") as careless:
            with pytest.raises(psycopg.errors.RaiseException):
                careless.execute("SELECT pg_catalog.count(*) FROM (VALUES ('x'::varchar)) AS v (t) WHERE t = 'x'")
            conversation = Conversation(careless, graph="others", owner="somebody")
            # Nor is the name of a table one that stands for another's by the next statement.
            with conversation.database.transaction() as transaction:
                assert transaction.tables() == ("others.turns", "others.edges")
            for message in OPENAI:
                conversation.append(message)
            assert conversation.messages(goal=True)["messages"][0] == OPENAI[0]
            (first, *_, last) = [turn.turn_id for turn in conversation.turns()]
            assert conversation.branch(first).append({"role": "user", "content": "And in Bodø?"})
            assert conversation.branch(last).head() == last
            conversation.redact(last, "")
            conversation.remove([last])
            conversation.replace(parts({"role": "user", "content": "Again."}))
            other = Conversation(careless, conversation.session_id, graph="others")
            assert [turn.content for turn in other.turns()] == ["Again."]
            other.clear()
            searches = sync.MemoryRetriever(careless, embed=embed)
            assert list(searches.search_global(QUESTION))
            assert list(searches.search_slice(QUESTION, sync.SliceClient(careless).get_slice(ANCHOR)))
            assert sync.AnchorResolver(careless, project_column="owner").resolve_temporal(project_id="none") == []
    finally:
        connection.execute("SELECT graph_kernel.unbind_tables('others')")
        connection.execute("DROP SCHEMA others CASCADE")


def test_no_table_of_a_stranger_is_taken(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE ROLE py_stranger")
    try:
        with psycopg.connect() as careless:
            careless.execute("ALTER TABLE public.memory_turn_edges OWNER TO py_stranger")
            for options in ({}, {"words": "english"}):
                with pytest.raises(GraphKernelError) as caught:
                    sync.Database(careless).create_tables(**options)
                assert caught.value.word == "TABLE_EXISTS" and "py_stranger" in str(caught.value)
            # Nor is the owner of the extension one that a superuser has to trust.
            careless.execute("UPDATE pg_extension SET extowner = 'py_stranger'::regrole WHERE extname = 'graph_kernel'")
            with pytest.raises(GraphKernelError, match="py_stranger"):
                sync.Database(careless).create_tables()
            # Who is a member of the owner, and no superuser, may have made it so.
            careless.execute("CREATE ROLE py_member IN ROLE py_stranger")
            careless.execute("SET LOCAL SESSION AUTHORIZATION py_member")
            sync.Database(careless).create_tables()
            careless.rollback()
    finally:
        connection.execute("DROP ROLE py_stranger")


def test_no_function_of_a_stranger_is_called_for_arguments_that_are_left_out(
    embed: Callable[[str], list[float]],
) -> None:
    with psycopg.connect() as careless:
        shorter = careless.execute(
            """SELECT DISTINCT pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                        (SELECT coalesce(string_agg(CASE WHEN own THEN t.oid::regtype::text ELSE 'text' END, ', '
                                                    ORDER BY t.n), '')
                           FROM unnest(p.proargtypes) WITH ORDINALITY AS t (oid, n) WHERE t.n <= p.pronargs - k))
                 FROM pg_proc AS p
                 JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                 JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'graph_kernel'
                 JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.oid = e.extnamespace
                CROSS JOIN generate_series(1, p.pronargdefaults) AS k
                CROSS JOIN unnest('{t,f}'::boolean[]) AS own"""
        ).fetchall()
        assert len(shorter) > 50
        for (signature,) in shorter:
            # One of the very types may be the extension's own.
            with suppress(psycopg.errors.DuplicateFunction), careless.transaction():
                careless.execute(
                    f"CREATE FUNCTION {signature} RETURNS TABLE (turn_id uuid) LANGUAGE plpgsql AS"
                    " 'BEGIN RAISE EXCEPTION USING MESSAGE = current_query(); END'"
                )
        conversation = Conversation(careless)
        for message in OPENAI:
            conversation.append(message)
        head = conversation.head()
        assert head is not None
        anchors = sync.AnchorResolver(careless, embed=embed)
        assert anchors.resolve_explicit(head) == head
        assert anchors.resolve_from_session(conversation.session_id) == head
        assert anchors.resolve_from_query(QUESTION)
        with pytest.raises(GraphKernelError, match="bound without words"):
            sync.AnchorResolver(careless).resolve_from_query("weather")
        with pytest.raises(GraphKernelError, match="bound without words"):
            conversation.recall("weather")
        assert head in anchors.resolve_temporal(100)
        slices, searches = sync.SliceClient(careless), sync.MemoryRetriever(careless, embed=embed)
        export = slices.get_slice(ANCHOR)
        assert slices.get_slice_batch([ANCHOR]) and slices.health() and not slices.verify(export).valid
        assert list(searches.search_global(QUESTION))
        careless.rollback()


def test_a_superuser_writes_no_schema_of_another(connection: psycopg.Connection[Any]) -> None:
    """Its owner could put a view in the place of a table, whose code would run as the superuser."""
    connection.execute("CREATE ROLE py_owner")
    try:
        with psycopg.connect() as careless:
            careless.execute("CREATE SCHEMA owned AUTHORIZATION py_owner")
            careless.execute("SELECT graph_kernel.create_tables('owned')")
            careless.execute(
                "SELECT graph_kernel.bind_tables('owned.memory_turns', 'owned.memory_turn_edges', name => 'owned')"
            )
            conversation = Conversation(careless, graph="owned")
            with pytest.raises(GraphKernelError, match="py_owner, who owns the schema owned") as caught:
                conversation.append({"role": "user", "content": "a"})
            assert caught.value.sqlstate == "42501"
            # Nor a table of another, whose triggers would run as the superuser.
            careless.execute(
                "ALTER SCHEMA owned OWNER TO CURRENT_USER; ALTER TABLE owned.memory_turns OWNER TO py_owner"
            )
            with pytest.raises(GraphKernelError, match=r"py_owner, who owns the table owned\.memory_turns"):
                conversation.append({"role": "user", "content": "a"})
            # So it is with a partition.
            careless.execute("ALTER TABLE owned.memory_turns OWNER TO CURRENT_USER")
            careless.execute("CREATE TABLE owned.part () INHERITS (owned.memory_turns)")
            careless.execute("ALTER TABLE owned.part OWNER TO py_owner")
            with pytest.raises(GraphKernelError, match=r"py_owner, who owns the table owned\.part"):
                conversation.append({"role": "user", "content": "a"})
            careless.execute("DROP TABLE owned.part; ALTER TABLE owned.memory_turns OWNER TO py_owner")
            # Who is no superuser uses his own tables, wherever they are.
            careless.execute("CREATE ROLE py_other; ALTER SCHEMA owned OWNER TO py_other")
            careless.execute(
                "GRANT USAGE ON SCHEMA owned TO py_owner; ALTER TABLE owned.memory_turn_edges OWNER TO py_owner"
            )
            # After SET ROLE code could take the superuser's rights again.
            careless.execute("GRANT EXECUTE ON FUNCTION graph_content_hash_trigger TO py_owner")
            careless.execute("SET LOCAL ROLE py_owner")
            with pytest.raises(GraphKernelError, match="postgres passes over row security, and py_"):
                conversation.append({"role": "user", "content": "a"})
            careless.execute("SET LOCAL SESSION AUTHORIZATION py_owner")
            conversation.append({"role": "user", "content": "a"})
            careless.rollback()
    finally:
        connection.execute("DROP ROLE py_owner")


def test_whoever_binds_tables_may_read_and_write_them(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        """CREATE ROLE py_binder;
           GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO py_binder;
           CREATE SCHEMA of_others; SELECT graph_kernel.create_tables('of_others');
           GRANT USAGE ON SCHEMA of_others TO py_binder;
           GRANT SELECT ON ALL TABLES IN SCHEMA of_others TO py_binder;
           SET SESSION AUTHORIZATION py_binder;
           SELECT graph_kernel.bind_tables('of_others.memory_turns', 'of_others.memory_turn_edges', name => 'others');
           RESET SESSION AUTHORIZATION"""
    )
    try:
        with Conversation(graph="others") as conversation:
            assert conversation.head() is None
            with pytest.raises(GraphKernelError, match=r"py_binder has bound table .*, and may not insert there"):
                conversation.append(user("a"))
            with pytest.raises(GraphKernelError, match="may not insert there"):
                conversation.clear()
            with pytest.raises(GraphKernelError, match="may not insert there"):
                conversation.redact(MISSING)
            connection.execute("REVOKE SELECT ON of_others.memory_turns FROM py_binder")
            with pytest.raises(GraphKernelError, match="may not read it whole") as caught:
                conversation.head()
            assert caught.value.sqlstate == "42501"
            connection.execute("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA of_others TO py_binder")
            assert conversation.append(user("a"))
    finally:
        connection.execute(
            """SELECT graph_kernel.unbind_tables('others'); DROP SCHEMA of_others CASCADE;
               DROP OWNED BY py_binder; DROP ROLE py_binder"""
        )


def test_a_table_that_came_after_the_snapshot_is_not_used(connection: psycopg.Connection[Any]) -> None:
    """It has an owner, whom the transaction does not see."""
    with psycopg.connect() as careless:
        careless.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        careless.execute("SELECT FROM pg_class LIMIT 1")
        connection.execute("CREATE TABLE public.came_later ()")
        try:
            with (
                pytest.raises(GraphKernelError, match="came_later does not exist") as caught,
                sync.Database(careless).transaction() as transaction,
            ):
                transaction.named("public.came_later")
            assert caught.value.sqlstate == "42P01"
            careless.rollback()
            with sync.Database(careless).transaction() as transaction:
                assert transaction.named("public.came_later") == ["public.came_later"]
            careless.rollback()
        finally:
            connection.execute("DROP TABLE public.came_later")


def test_a_view_of_another_is_not_read_where_policies_are_not_for_the_role(
    connection: psycopg.Connection[Any],
) -> None:
    connection.execute("CREATE ROLE py_viewer; CREATE ROLE py_passes BYPASSRLS; CREATE VIEW public.seen AS SELECT 1")
    try:
        with psycopg.connect() as careless:
            careless.execute("ALTER VIEW public.seen OWNER TO py_viewer; SET LOCAL SESSION AUTHORIZATION py_passes")
            with (
                pytest.raises(GraphKernelError, match=r"py_viewer, who owns the table public\.seen"),
                sync.Database(careless).transaction() as transaction,
            ):
                transaction.named("public.seen")
            careless.rollback()
    finally:
        connection.execute("DROP VIEW public.seen; DROP ROLE py_viewer, py_passes")


def test_a_superuser_calls_nothing_in_the_schema_of_another(connection: psycopg.Connection[Any]) -> None:
    """Its owner could give its name to a schema of his own, at any time."""
    connection.execute("CREATE ROLE py_owner")
    try:
        with psycopg.connect() as careless:
            head = Conversation(careless).database.fetch_one("SELECT {gk}graph_content_hash('a') AS hash")
            careless.execute("ALTER SCHEMA public OWNER TO py_owner")
            for database in (sync.Database(careless), Conversation(careless).database):
                with pytest.raises(GraphKernelError, match="py_owner, who owns the schema public") as caught:
                    database.fetch_one("SELECT {gk}graph_content_hash('a') AS hash")
                assert caught.value.sqlstate == "42501"
            careless.execute("SET LOCAL ROLE py_owner")
            with pytest.raises(GraphKernelError, match="postgres passes over row security"):
                sync.Database(careless).fetch_one("SELECT {gk}graph_content_hash('a') AS hash")
            # The schema is looked up each time.
            careless.rollback()
            used = sync.Database(careless)
            assert used.fetch_one("SELECT {gk}graph_content_hash('a') AS hash") == head
            careless.execute("ALTER SCHEMA public RENAME TO moved")
            assert used.fetch_one("SELECT {gk}graph_content_hash('a') AS hash") == head
            careless.rollback()
    finally:
        connection.execute("DROP ROLE py_owner")


def test_without_the_extension_nothing_of_its_names_is_called(connection: psycopg.Connection[Any]) -> None:
    connection.execute("DROP DATABASE IF EXISTS gk_python_bare WITH (FORCE)")
    connection.execute("CREATE DATABASE gk_python_bare")
    try:
        with psycopg.connect(dbname="gk_python_bare") as bare:
            stranger = "LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING MESSAGE = current_query(); END'"
            bare.execute("CREATE SCHEMA graph_kernel")
            bare.execute(f"CREATE FUNCTION graph_kernel.chosen_graph() RETURNS text {stranger}")
            bare.execute(f"CREATE FUNCTION graph_kernel.made() RETURNS text {stranger}")
            bare.execute("CREATE VIEW graph_kernel.proof_keys AS SELECT graph_kernel.made() AS public_key")
            bare.execute(f"CREATE FUNCTION graph_message_text(text) RETURNS text {stranger}")
            # Of the kind that LOCK takes, and that functions of planning would run of.
            bare.execute("CREATE VIEW graph_kernel.binding AS SELECT graph_kernel.made()")
            bare.commit()
            conversation = Conversation(bare)
            for call in (
                conversation.head,
                lambda: conversation.append({"role": "user", "content": "a"}),
                sync.SliceClient(bare).public_key,
                lambda: sync.Database(bare).fetch("SELECT graph_kernel.made()"),
            ):
                with pytest.raises(GraphKernelError, match="has no extension graph_kernel"):
                    call()
    finally:
        connection.execute("DROP DATABASE gk_python_bare WITH (FORCE)")


def test_the_extension_is_held_until_the_end(connection: psycopg.Connection[Any]) -> None:
    def drop() -> None:
        with psycopg.connect(options="-c lock_timeout=100ms") as other:
            other.execute("DROP EXTENSION graph_kernel CASCADE")
            other.rollback()

    database = sync.Database()
    for statement in ("SELECT {gk}graph_content_hash('a')", "SELECT graph_kernel.chosen_graph()"):
        drop()
        with database.transaction() as transaction:
            transaction.fetch(statement)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                drop()
    database.close()


def test_an_extension_that_was_made_anew_is_found(connection: psycopg.Connection[Any]) -> None:
    with psycopg.connect() as careless:
        client = sync.SliceClient(careless)
        assert client.health()
        careless.execute("DROP EXTENSION graph_kernel CASCADE")
        careless.execute("CREATE EXTENSION graph_kernel")
        assert client.health()
        careless.rollback()
        assert client.health()


def test_prompts_of_both_forms(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    for message in OPENAI:
        conversation.append(message)
    sent = conversation.messages()["messages"]
    assert [dict(message, content=message.get("content")) for message in sent] == OPENAI
    assert conversation.messages("anthropic") == {
        "system": "You are brief.",
        "messages": [
            {"role": "user", "content": "Weather in Oslo and Bergen?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c0", "name": "weather", "input": {"city": "Oslo"}},
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bergen"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c0", "content": "sun"},
                    {"type": "tool_result", "tool_use_id": "c1", "content": "rain"},
                ],
            },
            {"role": "assistant", "content": "Sun in Oslo, rain in Bergen."},
        ],
    }
    assert [turn.message for turn in conversation.turns()] == OPENAI


def test_a_pin_that_is_left_out(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    goal = conversation.append({"role": "user", "content": "Find the fault. " * 100})[0]
    conversation.append({"role": "assistant", "content": "Where?"})
    for options in ({"goal": goal}, {"goal": True}, {"policy": {"pins": [goal]}}):
        with pytest.warns(PinLeftOut, match=goal):
            assert conversation.messages(max_tokens=50, **options)["messages"][-1]["content"] == "Where?"
    with pytest.warns(PinLeftOut, match=goal):
        conversation.turns(max_tokens=50, policy={"pins": [goal]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        conversation.messages(max_tokens=500, goal=goal)
        conversation.messages(max_tokens=500, goal=conversation.head())
        conversation.messages(max_tokens=500, goal=False)
    with pytest.raises(GraphKernelError) as caught:
        conversation.messages(goal=[goal, MISSING])
    assert caught.value.sqlstate == "02000" and MISSING in caught.value.message


def test_the_goal_has_the_instructions_before_it(
    connection: psycopg.Connection[Any], conversation: Conversation
) -> None:
    conversation.append({"role": "developer", "content": "You are brief."})
    conversation.append({"role": "user", "content": "Find the fault."})
    conversation.append({"role": "system", "content": "A later note."})
    for n in range(30):
        conversation.append({"role": "assistant", "content": f"Step {n}. " * 20})
        conversation.append({"role": "user", "content": "Go on."})
    sent = conversation.messages(max_tokens=200, goal=True)["messages"]
    assert [message["content"] for message in sent[:2]] == ["You are brief.", "Find the fault."]
    assert "A later note." not in json.dumps(sent)


def test_a_step_is_recorded_shown_and_proved(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    with pytest.raises(GraphKernelError, match="no message yet"):
        conversation.messages()
    goal = conversation.append({"role": "user", "content": "Find the fault. " * 20})[0]
    for n in range(30):
        conversation.append({"role": "assistant", "content": f"Step {n}. " * 20})
        conversation.append({"role": "user", "content": "Go on."})
    with pytest.raises(GraphKernelError, match="no prompt"):
        conversation.record_step()
    sent = conversation.messages(max_tokens=400, goal=True, context="ab" * 32)
    assert "Find the fault." in json.dumps(sent) and "Step 0." not in json.dumps(sent)
    step = conversation.record_step()
    assert step.messages == sent and step.turn_ids[0] == goal and step.turn_ids[-1] == conversation.head()
    assert json.loads(step.record)["context"] == "ab" * 32
    client = sync.SliceClient(connection)
    assert client.verify(step.record).valid
    proof = conversation.prove(step)
    row = connection.execute(
        "SELECT valid FROM graph_verify_proof(%s::json, %s::json, %s)", (step.record, proof, client.public_key())
    ).fetchone()
    assert row == (True,)

    assert {message.state for message in conversation.show(step)} == {"unchanged"}
    connection.execute("UPDATE memory_turns SET content_text = 'Something else.' WHERE id = %s", (goal,))
    shown = conversation.show(step.record)
    assert [message.state for message in shown] == ["changed"] + ["unchanged"] * (len(shown) - 1)
    assert (shown[0].turn_id, shown[0].content) == (goal, "Something else.")
    # A step that was read again from a file, or from a column of JSON, by another process.
    assert Step(step.record).digest == step.digest and step.digest in repr(step)
    later = Conversation(connection)
    for kept in (step.record, json.loads(step.record), dict(sorted(json.loads(step.record).items()))):
        assert later.show(kept) == shown and later.prove(kept)
    assert "record" in repr(Step("cut off"))


def test_recall(connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]) -> None:
    def model(text: str) -> list[float]:
        return embed(QUESTION) if text.startswith(QUESTION) else [1.0] + [0.0] * 383

    with Conversation(connection, embed=model, owner="alice") as conversation:
        conversation.append({"role": "user", "content": f"{QUESTION} made here?"})
        conversation.append({"role": "assistant", "content": "By a sequence."})
        other = Conversation(connection, embed=model, owner="alice")
        question = other.append({"role": "user", "content": "What did I ask?"})[0]
        # Of alice alone: the sample has better hits, of nobody.
        found = other.recall(QUESTION, max_tokens=200)
        assert {turn.content for turn in found} == {f"{QUESTION} made here?", "By a sequence."}
        assert found.slice is not None and sync.SliceClient(connection).verify(found.slice).valid
        # The best hit is the anchor, which is shown last.
        assert found[-1].seed == found[-1].turn_id and found[-1].content == f"{QUESTION} made here?"
        assert found[-1].session_id == conversation.session_id
        sent = other.messages("plain", max_tokens=400, recall=QUESTION)
        text = json.dumps(sent)
        assert f"{QUESTION} made here?" in text and "By a sequence." in text and "What did I ask?" in text
        assert question in other.record_step().turn_ids
        assert len(Conversation(connection, embed=model).recall(QUESTION, max_tokens=4000)) > 10
        connection.execute("DELETE FROM memory_turn_edges WHERE child_turn_id NOT IN (SELECT id FROM sample)")
        connection.execute("DELETE FROM memory_turns WHERE id NOT IN (SELECT id FROM sample)")


def test_a_recalled_call_has_no_text(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    conversation.append(OPENAI[1])
    conversation.append(OPENAI[2])
    conversation.append(OPENAI[3])
    vector = [1.0] + [0.0] * 383
    connection.execute(
        "UPDATE memory_turns SET embedding = %s WHERE session_id = %s AND role = 'tool'",
        (vector, conversation.session_id),
    )
    found = conversation.recall(
        "Weather", max_tokens=200, embedding=vector, filter={"sessions": [conversation.session_id]}
    )
    assert [(turn.role, turn.content) for turn in found][-2:] == [("assistant", None), ("tool", "sun")]
    assert found[-2].message == OPENAI[2]


def test_a_transaction_of_the_application(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    """What is not committed is not signed, nor sent as a prompt."""
    with connection.transaction():
        conversation.append(OPENAI[1])
        assert [turn.message for turn in conversation.turns()] == [OPENAI[1]]
        with pytest.raises(GraphKernelError) as caught:
            conversation.messages()
        assert (caught.value.word, caught.value.reason) == ("NOT_ADMISSIBLE", "unattested")
        assert "Commit" in (caught.value.hint or "")
    assert conversation.messages() == {"messages": [OPENAI[1]]}
    conversation.prove(conversation.record_step())


def test_turns_of_ids_of_their_own_are_stored_once(conversation: Conversation) -> None:
    part = Part({"role": "user", "content": "Once."}, [], turn_id=uuid.uuid4())
    assert conversation.append_parts([part, part]) == [str(part.turn_id)]
    assert conversation.append_parts([part]) == []
    assert [turn.content for turn in conversation.turns()] == ["Once."]
    other = Conversation(conversation.database)
    # Left out in silence, it would be in no prompt of that session.
    with pytest.raises(GraphKernelError) as caught:
        other.append_parts([part])
    assert caught.value.word == "TURN_ID_TAKEN"
    assert other.turns() == []


def test_what_came_between_a_call_and_its_results_stays_in_the_line(conversation: Conversation) -> None:
    for message in OPENAI[:3]:
        conversation.append(message)
    conversation.append(user("Stop!"))
    (first,) = conversation.append(OPENAI[3])
    conversation.append(OPENAI[4])
    before = [turn.content for turn in conversation.turns()]
    assert "Stop!" in before
    conversation.remove([first])
    for again in (conversation, Conversation(conversation.database, conversation.session_id)):
        assert [turn.content for turn in again.turns()] == [text for text in before if text != "sun"]


def test_what_is_popped_is_what_is_there(conversation: Conversation) -> None:
    other = Conversation(conversation.database, conversation.session_id)
    seen = []

    def split(left: Part | None, change: Callable[[str], object]) -> Callable[[PromptTurn], tuple[Any, Part | None]]:
        def of(turn: PromptTurn) -> tuple[Any, Part | None]:
            # Others write after it was read.
            if not seen:
                change(turn.turn_id)
            seen.append(turn.content)
            return turn.content, left

        return of

    assert conversation.pop(split(None, other.redact)) is None
    (turn,) = conversation.append(user("card 4711"))
    assert conversation.pop(split(Part(user("what is left"), []), other.redact)) == "[redacted]"
    assert seen == ["card 4711", "[redacted]"]
    assert [turn.content for turn in conversation.turns()] == ["what is left"]
    seen.clear()
    assert conversation.pop(split(None, lambda _: other.append(user("later")))) == "later"
    seen.clear()
    assert conversation.pop(split(None, lambda id: other.remove([id]))) is None
    assert conversation.turns() == [] and turn


def test_removing(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    first, second = (conversation.append({"role": "user", "content": text})[0] for text in ("one", "two"))
    conversation.messages()
    step = conversation.record_step()
    with Conversation(connection) as other:
        (quoting,) = other.append({"role": "user", "content": "another session"})
        connection.execute("INSERT INTO memory_turn_edges VALUES (%s, %s, 'reference')", (first, quoting))
        with pytest.raises(GraphKernelError) as caught:
            conversation.remove([first])
        assert caught.value.sqlstate == "23503" and edges(connection, conversation) == [(0, 1, "reply")]
        assert len(stored(connection, conversation)) == 2 and conversation.head() == second
        other.clear()
    conversation.remove([second])
    assert conversation.head() == first
    assert [message.state for message in conversation.show(step)] == ["unchanged", "gone"]
    conversation.clear()
    assert conversation.head() is None and conversation.turns() == []


def test_removing_from_the_middle(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    """The line goes on from what stays."""
    ids = [turn for message in OPENAI for turn in conversation.append(message)]
    ids += conversation.append({"role": "user", "content": "And tomorrow?"})
    (beside,) = conversation.branch(ids[5]).append({"role": "user", "content": "And Voss?"})
    # One, of which there are two children on two lines.
    conversation.remove([ids[5]])
    assert [text for _, text, _ in stored(connection, conversation)] == [
        *("You are brief.", "Weather in Oslo and Bergen?", None, "sun", "rain", "And tomorrow?", "And Voss?"),
    ]
    assert edges(connection, conversation) == [
        *((0, 1, "reply"), (1, 2, "reply"), (2, 3, "reply"), (2, 4, "reply")),
        *((3, 5, "reply"), (4, 5, "reply"), (3, 6, "branch"), (4, 6, "branch")),
    ]
    assert [turn.turn_id for turn in conversation.turns()] == [*ids[:5], ids[6]]
    # Several behind each other: a call with its results.
    conversation.remove([ids[4], ids[2], ids[3]])
    assert edges(connection, conversation) == [(0, 1, "reply"), (1, 2, "reply"), (1, 3, "branch")]
    # The conversation stays on its line, though the other one has the latest turn.
    conversation.remove([ids[6]])
    assert conversation.head() == ids[1]
    conversation.append({"role": "user", "content": "In Oslo alone."})
    assert edges(connection, conversation) == [(0, 1, "reply"), (1, 2, "branch"), (1, 3, "reply")]
    # The first one: what followed it is the first then.
    conversation.remove([ids[0]])
    assert edges(connection, conversation) == [(0, 1, "branch"), (0, 2, "reply")]
    assert beside in [turn.turn_id for turn in conversation.branch(beside).turns()]


def test_removing_a_result_at_the_end(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    ids = [turn for message in OPENAI[:-1] for turn in conversation.append(message)]
    conversation.remove([ids[4]])
    assert conversation.head() == ids[3]
    conversation.append(OPENAI[-1])
    assert [(p, c) for p, c, _ in edges(connection, conversation)] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_redacting(connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]) -> None:
    secret = "hunter2"
    with Conversation(connection) as conversation:
        (word,) = conversation.append({"role": "user", "content": f"The password is {secret}."})
        (pair,) = conversation.append(
            {"role": "assistant", "content": [{"type": "text", "text": secret}, {"type": "image_url", "image_url": {}}]}
        )
        conversation.append(OPENAI[2])
        (result,) = conversation.append({"role": "tool", "tool_call_id": "c0", "content": secret})
        (other,) = conversation.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": secret}]}
        )
        connection.execute(
            "UPDATE memory_turns SET embedding = %s::real[] WHERE id = %s", (embed(QUESTION), conversation.head())
        )
        before = stored(connection, conversation)
        conversation.messages()
        step = conversation.record_step()
        with Conversation(connection) as stranger, pytest.raises(GraphKernelError) as caught:
            stranger.redact(word)
        assert caught.value.sqlstate == "02000" and stored(connection, conversation) == before
        hashes = "SELECT array_agg(content_hash ORDER BY created_at) FROM memory_turns WHERE session_id = %s"
        (old,) = connection.execute(hashes, (conversation.session_id,)).fetchall()[0]
        for turn in (word, pair, result, other):
            conversation.redact(turn)
        assert stored(connection, conversation) == [
            ("user", "[redacted]", None),
            ("assistant", "[redacted]", None),
            ("assistant", None, OPENAI[2]),
            ("tool", "[redacted]", {"role": "tool", "tool_call_id": "c0", "content": "[redacted]"}),
            (
                *("tool", "[redacted]"),
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "[redacted]"}]},
            ),
        ]
        left = connection.execute(
            "SELECT count(embedding), count(*) FILTER (WHERE t::text LIKE %s) FROM memory_turns AS t"
            " WHERE session_id = %s",
            (f"%{secret}%", conversation.session_id),
        ).fetchone()
        assert left == (0, 0)
        (new,) = connection.execute(hashes, (conversation.session_id,)).fetchall()[0]
        assert [a == b for a, b in zip(old, new, strict=True)] == [False, False, True, False, False]
        # The call keeps its results.
        roles = [message["role"] for message in conversation.messages()["messages"]]
        assert roles == ["user", "assistant", "assistant", "tool", "tool"]
        states = [message.state for message in conversation.show(step)]
        assert states == ["changed", "changed", "unchanged", "changed", "changed"]
        conversation.clear()
    with Conversation(connection, embed=lambda text: [float(len(text))] + [0.0] * 383) as conversation:
        (turn,) = conversation.append({"role": "user", "content": secret})
        conversation.redact(turn, text="x")
        row = connection.execute(
            "SELECT content_text, (embedding::real[])[1] FROM memory_turns WHERE id = %s", (turn,)
        ).fetchone()
        assert row == ("x", 1.0)
        conversation.clear()


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (
            {"type": "local_shell_call", "id": "l1", "call_id": "c1", "status": "completed",
             "action": {"type": "exec", "command": ["ls"], "env": {}}},
            {"type": "local_shell_call_output", "id": "c1", "call_id": "c1", "output": "secret"},
        ),
        (
            {"type": "shell_call", "id": "s1", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"},
            {"type": "shell_call_output", "call_id": "c1", "output": [
                {"stdout": "secret", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        ),
        (
            {"type": "apply_patch_call", "id": "a1", "call_id": "c1", "status": "completed",
             "operation": {"type": "delete_file", "path": "x"}},
            {"type": "apply_patch_call_output", "call_id": "c1", "output": "secret", "status": "completed"},
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "secret"},
        ),
    ],
)  # fmt: skip
def test_a_redacted_result_stays_that_of_its_call(
    connection: psycopg.Connection[Any], conversation: Conversation, call: dict[str, Any], result: dict[str, Any]
) -> None:
    conversation.append({"role": "user", "content": "What is there?"})
    conversation.append(call)
    (turn,) = conversation.append(result)
    roles = [message["role"] for message in conversation.messages()["messages"]]
    conversation.redact(turn)
    sent = conversation.messages()["messages"]
    assert [message["role"] for message in sent] == roles == ["user", "assistant", "tool"]
    assert sent[2]["content"] == "[redacted]" and "secret" not in str(sent)


def test_redacting_items(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    """Calls and results of OpenAI's responses, and calls of all: arguments go with their call."""
    call = {"type": "function_call", "call_id": "f1", "name": "find", "arguments": "{}"}
    (first,) = conversation.append(call)
    (result,) = conversation.append({"type": "function_call_output", "call_id": "f1", "output": "secret"})
    conversation.redact(result, "gone")
    item = {"type": "function_call_output", "call_id": "f1", "output": "gone"}
    assert stored(connection, conversation)[1] == ("tool", "gone", {"role": "tool", "output": [item]})
    assert [entry.get("type") for entry in conversation.messages("responses")["input"]][-2:] == [
        *("function_call", "function_call_output"),
    ]
    conversation.redact(first)
    assert stored(connection, conversation)[0] == ("assistant", "[redacted]", None)
    assert "find" not in str(conversation.messages("responses"))


def call(id: str, argument: int) -> dict[str, Any]:
    made = {"id": id, "type": "function", "function": {"name": "w", "arguments": str(argument)}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(conversation: Conversation) -> list[str | None]:
    return [turn.content for turn in conversation.turns()]


def test_a_result_answers_the_call_of_its_own_line(conversation: Conversation) -> None:
    conversation.append(user("root"))
    other = conversation.branch()
    conversation.append(user("A"))
    conversation.append(call("call_0", 1))
    other.append(user("B"))
    other.append(call("call_0", 2))
    conversation.append({"role": "tool", "tool_call_id": "call_0", "content": "for A"})
    conversation.append({"role": "assistant", "content": "A done"})
    assert said(conversation) == ["root", "A", None, "for A", "A done"] and said(other) == ["root", "B", None]
    other.append({"role": "tool", "tool_call_id": "call_0", "content": "for B"})
    assert said(other) == ["root", "B", None, "for B"]
    # In one line the latest call with this id.
    conversation.append(call("call_0", 3))
    (late,) = conversation.append({"role": "tool", "tool_call_id": "call_0", "content": "again"})
    assert said(conversation)[-2:] == [None, "again"] and conversation.head() == late
    with pytest.raises(GraphKernelError) as caught:
        conversation.branch(other.head())
        Conversation(conversation.database).branch(other.head())
    assert caught.value.word == "ANCHOR_NOT_FOUND"


def test_results_that_come_late_lose_nothing(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    conversation.append(OPENAI[2])
    conversation.append(OPENAI[3])
    conversation.append(user("in between"))
    conversation.append(call("x", 1))
    conversation.append({"role": "tool", "tool_call_id": "x", "content": "of x"})
    conversation.append(OPENAI[4])
    for opened in (conversation, Conversation(connection, conversation.session_id)):
        assert sorted(str(text) for text in said(opened)) == ["None", "None", "in between", "of x", "rain", "sun"]
        assert "in between" in str(opened.messages())
    Conversation(connection, conversation.session_id).append(user("next"))
    assert len(said(conversation)) == 7


def test_two_writers_write_one_line(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    conversation.append(user("start"))
    one, two = (Conversation(connection, conversation.session_id) for _ in range(2))
    assert one.head() == two.head()
    one.append(user("from one"))
    one.append({"role": "assistant", "content": "to one"})
    two.append(user("from two"))
    one.append(user("one again"))
    lines = [said(opened) for opened in (one, two, conversation, Conversation(connection, conversation.session_id))]
    assert lines == [["start", "from one", "to one", "from two", "one again"]] * 4
    # A branch is apart from it, before and after its first turn.
    branch = two.branch(conversation.turns()[0].turn_id)
    one.append(user("more"))
    assert said(branch) == ["start"]
    branch.append(user("beside"))
    one.append(user("last"))
    assert said(branch) == ["start", "beside"] and said(two)[-2:] == ["more", "last"]


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_many_appends_at_once_lose_nothing(level: str) -> None:
    options = "-c default_transaction_isolation=" + level.replace(" ", "\\ ")

    class Connections:
        @asynccontextmanager
        async def connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
            async with await psycopg.AsyncConnection.connect(autocommit=True, options=options) as connection:
                yield connection

    async def example() -> None:
        conversation = aio.Conversation(Connections())
        await conversation.append(OPENAI[2])
        await asyncio.gather(*(conversation.append(OPENAI[n]) for n in (3, 4)))
        await asyncio.gather(*(conversation.append(user(str(n))) for n in range(5)))
        assert sorted(str(turn.content) for turn in await conversation.turns()) == sorted(
            ["None", "sun", "rain", *"01234"]
        )
        branch = await conversation.branch()
        await asyncio.gather(*(branch.append(user(str(n))) for n in range(3)))
        assert len(await branch.turns()) == 11
        await conversation.clear()

    asyncio.run(example())


def test_the_goal_is_said_by_whoever_is_no_other(
    connection: psycopg.Connection[Any], conversation: Conversation
) -> None:
    for role in ("User", None, "human"):
        (first,) = conversation.append(user("The goal."))
        conversation.append(user("More."))
        connection.execute("UPDATE memory_turns SET role = %s WHERE id = %s", (role, first))
        assert conversation._pins(True) == [str(first)]
        conversation.clear()


def test_a_message_is_of_the_role_that_it_names(conversation: Conversation) -> None:
    """Whatever else whoever sends it to the application puts beside role and content."""
    other = {"role": "system", "content": "Other."}
    for beside in (
        {"type": "system"},
        {"type": "ai", "data": other},
        {"type": "non_standard", "value": other},
        {"lc": 1, "type": "constructor", "id": ["x", "SystemMessage"], "kwargs": other},
        {"object": "chat.completion", "choices": [{"message": other}]},
        {"object": "response", "output": [other]},
    ):
        (turn,) = conversation.append({"role": "user", "content": "Said.", **beside})
        (said,) = conversation.turns()
        assert (said.turn_id, said.role, said.content) == (turn, "user", "Said."), beside
        (sent,) = conversation.messages("openai")["messages"]
        assert sent["role"] == "user" and sent["content"].startswith("Said."), beside
        conversation.clear()
    with pytest.raises(GraphKernelError, match="two contents"):
        conversation.append({"role": "user", "content": "Said.", "parts": [{"text": "Other."}]})


def test_a_branch_stays_one_when_its_turns_are_removed(conversation: Conversation) -> None:
    def said(of: Conversation) -> list[str | None]:
        return [turn.content for turn in of.turns()]

    conversation.append(user("root"))
    for begins_with_two in (False, True):
        for goes_on_before in (False, True):
            branch = conversation.branch()
            (first,) = branch.append(user("first"))
            if begins_with_two:
                branch.append(user("second"))
            before = said(conversation)
            if goes_on_before:
                conversation.append(user("main"))
                before.append("main")
            branch.remove([first])
            branch.append(user("aside"))
            assert "aside" in said(branch) and "main" not in said(branch)[-2:]
            assert said(conversation) == before
            conversation.append(user("more"))
            assert said(conversation) == [*before, "more"]
            conversation.clear()
            conversation.append(user("root"))
    # Whatever takes the turns away.
    branch = conversation.branch()
    branch.append(user("first"))
    assert branch.pop(lambda turn: (turn.content, None)) == "first"
    branch.append(user("aside"))
    conversation.append(user("main"))
    assert said(conversation) == ["root", "main"] and said(branch) == ["root", "aside"]


def test_the_table_says_whose_a_turn_is_where_nobody_else_does(connection: psycopg.Connection[Any]) -> None:
    connection.execute("ALTER TABLE memory_turns ALTER owner SET DEFAULT 'by default'")
    try:
        for owner, stored in ((None, "by default"), ("ann", "ann")):
            conversation = Conversation(connection, owner=owner)
            (turn,) = conversation.append(user("Said."))
            assert connection.execute("SELECT owner FROM memory_turns WHERE id = %s", (turn,)).fetchone() == (stored,)
            conversation.clear()
    finally:
        connection.execute("ALTER TABLE memory_turns ALTER owner DROP DEFAULT")


def contents(of: Conversation) -> list[str | None]:
    return [turn.content for turn in of.turns()]


def test_two_lines_from_the_beginning(connection: psycopg.Connection[Any]) -> None:
    """Neither sees what the other says, also where nothing stands before them."""
    main = Conversation(connection)
    branch = main.branch()
    branch.append(user("aside"))
    assert contents(main) == []
    main.append(user("main"))
    assert contents(main) == ["main"] and contents(branch) == ["aside"]
    main.clear()

    (only,) = main.append(user("only"))
    branch = main.branch()
    branch.append(user("aside"))
    main.remove([only])
    assert contents(main) == [] and contents(branch) == ["aside"]
    main.append(user("main"))
    assert contents(main) == ["main"] and contents(branch) == ["aside"]
    main.clear()

    (only,) = main.append(user("only"))
    branch = main.branch()
    (aside,) = branch.append(user("aside"))
    main.append(user("main"))
    branch.remove([only, aside])
    assert contents(branch) == [] and contents(main) == ["main"]
    # Of one line, what others have appended is followed.
    (last,) = main.append(user("last"))
    other = Conversation(connection, main.session_id)
    other.append(user("of another"))
    main.remove([last])
    assert contents(main) == ["main", "of another"]
    main.remove([turn.turn_id for turn in main.turns()])
    other.append(user("begun anew"))
    assert contents(main) == ["begun anew"]


def test_a_branch_of_which_a_turn_is_gone_goes_back(connection: psycopg.Connection[Any]) -> None:
    with psycopg.connect() as application:
        main = Conversation(connection)
        root = main.append(user("root"))[0]
        application.commit()
        branch = Conversation(application, main.session_id).branch(root)
        main.append(user("main"))
        application.execute("SELECT")
        branch.append(user("lost"))
        application.rollback()
        assert contents(branch) == ["root"]
        branch.append(user("kept"))
        application.commit()
        application.execute("SELECT")
        branch.append(user("lost"))
        branch.append(user("lost as well"))
        application.rollback()
        branch.append(user("aside"))
        application.commit()
        assert contents(branch) == ["root", "kept", "aside"] and contents(main) == ["root", "main"]
        # What another object removes is gone as well.
        Conversation(connection, main.session_id).remove([branch.turns()[-1].turn_id, branch.turns()[-2].turn_id])
        branch.append(user("again"))
        application.commit()
        assert contents(branch) == ["root", "again"] and contents(main) == ["root", "main"]
        main.clear()


def test_the_goal_is_that_of_the_line(connection: psycopg.Connection[Any]) -> None:
    main = Conversation(connection)
    main.append({"role": "system", "content": "Be brief."})
    branch = main.branch()
    branch.append({"role": "system", "content": "Instructions of the branch."})
    branch.append(user("Its question."))
    main.append(user("The question."))
    main.append({"role": "assistant", "content": "The answer."})
    sent = main.messages("plain", goal=True)["messages"]
    assert "branch" not in str(sent) and "Its" not in str(sent) and "The question." in str(sent)
    sent = branch.messages("plain", goal=True)["messages"]
    assert "Its question." in str(sent) and "The question." not in str(sent)
    main.clear()


def test_roles_are_read_alike_in_every_language(
    connection: psycopg.Connection[Any], conversation: Conversation
) -> None:
    (system, goal) = conversation.append({"role": "system", "content": "Be brief."}) + conversation.append(
        user("Goal.")
    )
    connection.execute('ALTER TABLE memory_turns ALTER role TYPE text COLLATE "tr-x-icu"')
    try:
        connection.execute('UPDATE memory_turns SET role = upper(role COLLATE "C")')
        assert conversation._pins(True) == [system, goal]
        connection.execute("UPDATE memory_turns SET role = 'ASSISTANT' WHERE id = %s", (system,))
        assert conversation._pins(True) == [goal]
    finally:
        connection.execute('ALTER TABLE memory_turns ALTER role TYPE text COLLATE "default"')


def test_what_is_redacted_leaves_no_hash_where_no_trigger_makes_one() -> None:
    with psycopg.connect() as careless:
        conversation = Conversation(careless)
        (turn,) = conversation.append(user("my PIN is 4711"))
        stored_hash = f"SELECT content_hash FROM memory_turns WHERE id = '{turn}'"
        (made,) = careless.execute(stored_hash).fetchall()
        conversation.redact(turn)
        (other,) = careless.execute(stored_hash).fetchall()
        assert made[0] and other[0] and made != other
        careless.execute("ALTER TABLE memory_turns DISABLE TRIGGER ALL")
        conversation.redact(turn)
        assert careless.execute(stored_hash).fetchall() == [(None,)]
        careless.rollback()


def test_what_a_transaction_of_the_application_cannot_see_is_not_passed_over() -> None:
    with psycopg.connect() as careful, Conversation() as conversation:
        conversation.append(user("first"))
        for level in (psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE):
            careful.isolation_level = level
            same = Conversation(careful, conversation.session_id)
            careful.execute("SELECT FROM pg_class LIMIT 1")
            conversation.append(user("seen by the other one alone"))
            with pytest.raises(GraphKernelError, match="does not see what others have appended") as caught:
                same.append(user("late"))
            assert caught.value.sqlstate == "25001"
            careful.rollback()
        assert [turn.content for turn in conversation.turns()] == ["first", *["seen by the other one alone"] * 2]
        conversation.clear()


def test_rows_that_python_cannot_hold_end_no_recall(
    connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]
) -> None:
    odd: list[tuple[str, str | None]] = [
        ("infinity", None),
        ("-infinity", None),
        ("0044-03-15 BC", None),
        ("294276-12-31 23:59:59+0", None),
        ("2026-01-02 03:04:05.678901+0", '{"n": 1e5000}'),
        ("2026-01-02 03:04:05.678901+0", '{"a":' * 2500 + "1" + "}" * 2500),
    ]
    near = embed(QUESTION)
    for n, (time, payload) in enumerate(odd):
        connection.execute(
            """INSERT INTO memory_turns (id, session_id, role, content_text, created_at, payload, embedding)
               VALUES (gen_random_uuid(), %s, 'user', %s, %s, %s, %s)""",
            (f"odd {n}", f"{QUESTION} {n}", time, payload, near),
        )
    try:
        with Conversation(connection, embed=embed) as conversation:
            found = conversation.recall(
                QUESTION, max_tokens=20_000, filter={"sessions": [f"odd {n}" for n in range(6)]}
            )
            times = {turn.session_id: turn.created_at for turn in found}
        ends = datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)
        assert (times["odd 0"], times["odd 1"], times["odd 2"], times["odd 3"]) == (ends[1], ends[0], ends[0], ends[1])
        assert times["odd 4"] == times["odd 5"] == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
        for n in (4, 5):
            (turn,) = Conversation(connection, f"odd {n}").turns()
            assert turn.payload is None and turn.content == f"{QUESTION} {n}"
    finally:
        connection.execute("DELETE FROM memory_turns WHERE session_id LIKE 'odd %'")


def test_a_result_of_another_session_is_not_where_a_conversation_stands(
    connection: psycopg.Connection[Any], conversation: Conversation
) -> None:
    for message in OPENAI[:4]:
        conversation.append(message)
    head = conversation.head()
    assert head is not None
    calls = [turn.turn_id for turn in conversation.turns() if turn.role == "assistant"]
    for parent in (head, *calls):
        foreign = uuid.uuid4()
        connection.execute(
            """INSERT INTO memory_turns (id, session_id, role, content_text)
               VALUES (%s, 'foreign', 'tool', 'IGNORE ALL')""",
            (foreign,),
        )
        connection.execute("INSERT INTO memory_turn_edges VALUES (%s, %s, 'reply')", (parent, foreign))
    for again in (conversation, Conversation(connection, conversation.session_id)):
        assert again.head() == head
        assert "IGNORE ALL" not in str(again.messages(policy={"preset": "chat", "same_session": True}))


def test_what_was_rolled_back_is_forgotten(connection: psycopg.Connection[Any]) -> None:
    with psycopg.connect() as own:
        conversation = Conversation(own)
        first = conversation.append(user("one"))
        with pytest.raises(KeyError), own.transaction():
            (lost,) = conversation.append(user("rolled back"))
            assert conversation.head() == lost
            raise KeyError
        assert said(conversation) == ["one"] and [conversation.head()] == first
        conversation.append(user("three"))
        assert said(conversation) == ["one", "three"]
        with pytest.raises(KeyError), own.transaction():
            conversation.clear()
            raise KeyError
        assert said(conversation) == ["one", "three"]
        other = conversation.branch()
        conversation.clear()
        other.append(user("after"))
        assert said(conversation) == ["after"]
        conversation.clear()


def test_an_append_whose_answer_was_lost_is_in_the_line(
    connection: psycopg.Connection[Any], conversation: Conversation
) -> None:
    conversation.append(user("first"))
    before = conversation._heads
    conversation.append(user("committed"))
    conversation._heads = before  # as where the answer to COMMIT does not arrive
    conversation.append(user("next"))
    assert said(conversation) == ["first", "committed", "next"]


def test_what_is_removed_is_there(conversation: Conversation) -> None:
    (first,) = conversation.append(user("one"))
    (foreign,) = Conversation(conversation.database).append(user("other"))
    for wrong in (MISSING, foreign):
        with pytest.raises(GraphKernelError) as caught:
            conversation.remove([first, wrong])
        assert caught.value.word == "ANCHOR_NOT_FOUND" and said(conversation) == ["one"]


def test_a_replacement_is_of_all_or_nothing(conversation: Conversation) -> None:
    conversation.append(user("precious"))
    with pytest.raises(GraphKernelError) as caught:
        conversation.replace([Part(user("new"), []), Part({"x": 1}, [])])
    assert caught.value.word == "INVALID_MESSAGE" and said(conversation) == ["precious"]
    conversation.replace([Part(user("new"), []), Part(user("two"), [])])
    assert said(conversation) == ["new", "two"]


def test_more_turns_than_a_slice_has(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    connection.execute(
        """WITH t AS (INSERT INTO memory_turns (id, session_id, role, content_text, created_at)
                      SELECT gen_random_uuid(), %s, 'user', n, '2026-01-01'::timestamptz + n * interval '1 s'
                        FROM generate_series(1, 10001) AS n RETURNING id, created_at)
           INSERT INTO memory_turn_edges
           SELECT lag(id) OVER w, id, 'reply' FROM t WINDOW w AS (ORDER BY created_at) OFFSET 1""",
        (conversation.session_id,),
    )
    with pytest.raises(GraphKernelError) as caught:
        conversation.turns()
    assert (caught.value.sqlstate, caught.value.word) == ("54000", "TOO_MANY_TURNS")
    assert conversation.turns(max_tokens=20)[-1].content == "10001"


def test_a_goal_before_the_user_has_spoken(conversation: Conversation) -> None:
    conversation.append(OPENAI[0])
    for goal in (True, []):
        assert conversation.messages(goal=goal)["messages"][0] == OPENAI[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "banana", "content": "x"},
        {"role": "user", "content": b"bytes"},
        {"role": "user", "content": [float("nan")]},
        {"role": "user", "content": json.loads("[" * 900 + "]" * 900), "x": {1, 2}},
    ],
)
def test_messages_that_are_none(conversation: Conversation, wrong: Any) -> None:
    with pytest.raises(GraphKernelError) as caught:
        conversation.append(wrong)
    assert caught.value.word == "INVALID_MESSAGE" and conversation.head() is None


@pytest.mark.parametrize("vector", [[], [float("nan")], [float("inf"), 1], "12345678", None, [None], 3])
def test_embeddings_that_are_none(conversation: Conversation, vector: Any) -> None:
    embedding = Conversation(conversation.database, embed=lambda text: vector)
    with pytest.raises(GraphKernelError) as caught:
        embedding.append(user("x"))
    assert caught.value.word == "INVALID_EMBEDDING" and embedding.head() is None


def test_an_owner_that_a_filter_does_not_lift(connection: psycopg.Connection[Any], embed: Any) -> None:
    given = [1.0] + [0.0] * 383
    with Conversation(sync.Database(), owner="ada", embed=lambda text: given) as ada:
        ada.append(user("mine"))
        with Conversation(sync.Database(), owner="bob", embed=lambda text: given) as bob:
            bob.append(user("his"))
            found = bob.recall("x", filter={"owner": "ada"})
            assert [turn.content for turn in found] == ["his"]
            # Of any text: what no text of the server can be becomes U+FFFD, as in messages.
            assert [turn.content for turn in bob.recall("\0 \ud800")] == ["his"]
            assert "his" in str(bob.messages(recall="\0 \ud800", policy={"max_tokens": 200}))
            assert json.loads(bob.record_step().record)["slice"]["attestation"]["policy"]["recall_tokens"] == 50
            bob.clear()
        ada.clear()


def test_turns_of_one_time(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    """And of a clock that went back: a session that is opened again stands at its end."""
    ids = [conversation.append(user(str(n)))[0] for n in range(6)]
    for moment in ("'2026-01-01'", "'2026-01-01'::timestamptz - content_text::integer * interval '1 s'"):
        connection.execute(
            f"UPDATE memory_turns SET created_at = {moment} WHERE session_id = %s", (conversation.session_id,)
        )
        assert Conversation(connection, conversation.session_id).head() == ids[-1]


def test_an_object_that_saw_an_empty_session(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    assert conversation.turns() == []
    Conversation(connection, conversation.session_id).append(user("new"))
    assert said(conversation) == ["new"]
    conversation.append(user("mine"))
    assert said(Conversation(connection, conversation.session_id)) == ["new", "mine"]


def test_a_call_that_is_answered_twice(connection: psycopg.Connection[Any], conversation: Conversation) -> None:
    conversation.append({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})
    for output in ("first", "second"):
        conversation.append({"type": "function_call_output", "call_id": "c", "output": output})
    assert [(parent, child) for parent, child, _ in edges(connection, conversation)] == [(0, 1), (0, 2)]


def test_a_goal_of_another_session(conversation: Conversation) -> None:
    (foreign,) = Conversation(conversation.database).append(user("secret"))
    conversation.append(user("hi"))
    conversation.messages()
    for goal in (foreign, [MISSING]):
        with pytest.raises(GraphKernelError) as caught:
            conversation.messages(goal=goal)
        assert caught.value.word == "ANCHOR_NOT_FOUND"
    # No prompt was made: there is none to record.
    with pytest.raises(GraphKernelError) as caught:
        conversation.record_step()
    assert caught.value.sqlstate == "55000"


def test_names_of_sessions(connection: psycopg.Connection[Any]) -> None:
    nameless = Conversation(connection, "")
    nameless.append(user("x"))
    assert said(Conversation(connection, "")) == ["x"]
    nameless.clear()
    for wrong in ("\0", "\ud800"):
        with pytest.raises(GraphKernelError):
            Conversation(connection, wrong).append(user("x"))


def test_coroutines(connection: psycopg.Connection[Any]) -> None:
    async def example() -> None:
        async with aio.Conversation() as conversation:
            await conversation.append(OPENAI[0])
            await conversation.append(OPENAI[1])
            assert await conversation.messages() == {"messages": OPENAI[:2]}
            step = await conversation.record_step()
            assert len(await conversation.show(step)) == 2 and await conversation.prove(step)
            await conversation.clear()

    asyncio.run(example())
