"""LangGraph, with its package. `InMemoryStore`, which it brings, says what is expected of a store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import psycopg
import pytest

pytest.importorskip("langgraph")

from conftest import QUESTION
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from graph_kernel_client import ConfigurationError, Conversation, GraphKernelError, aio, sync
from graph_kernel_client.adapters.langgraph import GraphKernelStore, trim_hook

Embed = Callable[[str], list[float]]


@pytest.fixture
def words(connection: psycopg.Connection[Any]) -> Iterator[None]:
    connection.execute(
        """ALTER TABLE memory_turns ADD COLUMN words tsvector
               GENERATED ALWAYS AS (to_tsvector('pg_catalog.english', left(content_text, 100000))) STORED"""
    )
    yield
    connection.execute("ALTER TABLE memory_turns DROP COLUMN words")


def content(items: Any) -> list[Any]:
    return sorted((item.namespace, item.key, item.value) for item in items)


def filled(store: Any) -> Any:
    store.put(("users", "ada"), "name", {"first": "Ada", "age": 36, "tags": ["a", "b"], "at": {"city": "Oslo", "n": 1}})
    store.put(("users", "ada", "notes"), "1", {"text": "likes tea", "age": 3})
    store.put(("users", "bob"), "name", {"first": "Bob", "age": None})
    store.put(("users%", "ad_"), "name", {"first": "Eve"})
    store.put(("users/ada",), "naïve\\'\"", {"first": "Zoë", "nested": [{"x": 1.5}], "nothing": None, "yes": True})
    return store


def test_a_store_is_as_that_in_memory(connection: psycopg.Connection[Any]) -> None:
    mine, theirs = filled(GraphKernelStore(sync.Database(connection))), filled(InMemoryStore())
    mine.setup()
    mine.setup()
    for namespace, key in [(("users", "ada"), "name"), (("users/ada",), "naïve\\'\""), (("users/ada",), "name")]:
        item, expected = mine.get(namespace, key), theirs.get(namespace, key)
        assert (item and (item.namespace, item.key, item.value)) == (
            expected and (expected.namespace, expected.key, expected.value)
        )
    for prefix in [(), ("users",), ("users", "ada"), ("user",), ("users%",), ("users", "ad_"), ("users/ada",)]:
        assert content(mine.search(prefix)) == content(theirs.search(prefix)), prefix
        for given in [
            {"first": "Ada"},
            {"first": {"$ne": "Ada"}},
            {"at": {"city": "Oslo"}},
            {"at": {"city": {"$eq": "Oslo"}, "n": 1}},
            {"tags": ["a", "b"]},
            {"tags": ["a"]},
            {"age": None},
            {"nested": [{"x": 1.5}]},
            {"yes": True, "first": "Zoë"},
        ]:
            assert content(mine.search(prefix, filter=given)) == content(theirs.search(prefix, filter=given)), given
    # What that in memory has no answer for: values of which some are no numbers.
    assert [item.key for item in mine.search(("users",), filter={"age": {"$gt": 3}})] == ["name"]
    assert [item.value["age"] for item in mine.search((), filter={"age": {"$gte": 3, "$lt": 36}})] == [3]
    assert mine.search((), filter={"age": {"$lte": "36"}}) == []
    with pytest.raises(ValueError, match="operator"):
        mine.search((), filter={"age": {"$in": [1]}})
    for asked in [
        {},
        {"prefix": ("users",)},
        {"prefix": ("users", "*")},
        {"suffix": ("ada",)},
        {"suffix": ("ada", "*")},
        {"prefix": ("users",), "suffix": ("notes",)},
        {"max_depth": 1},
        {"max_depth": 2, "limit": 2, "offset": 1},
    ]:
        assert mine.list_namespaces(**asked) == theirs.list_namespaces(**asked), asked
    for store in (mine, theirs):
        store.delete(("users", "ada"), "name")
        store.delete(("users", "ada"), "never there")
        with pytest.raises(InvalidNamespaceError):
            store.put((), "key", {})
    assert content(mine.search(())) == content(theirs.search(()))
    # That in memory keeps names of what is empty.
    assert mine.get(("users", "ada"), "name") is None and ("users", "ada") not in mine.list_namespaces()


def test_a_key_with_a_slash_is_of_its_own_namespace(connection: psycopg.Connection[Any]) -> None:
    store = GraphKernelStore(sync.Database(connection))
    store.put(("users", "alice"), "diary", {"text": "hers"})
    assert store.get(("users",), "alice/diary") is None
    store.put(("users",), "alice/diary", {"text": "his"})
    store.delete(("users",), "alice/diary")
    found = store.get(("users", "alice"), "diary")
    assert found is not None and found.value == {"text": "hers"}
    store.delete(("users", "alice"), "diary")


def test_an_item_is_of_the_namespace_of_its_session(connection: psycopg.Connection[Any]) -> None:
    store = GraphKernelStore(sync.Database(connection))
    store.put(("users", "ann"), "prefs", {"a": 1})
    # As who may store turns of sessions of his own can have it.
    connection.execute("UPDATE memory_turns SET session_id = replace(session_id, '/ann/', '/bob/')")
    assert store.get(("users", "ann"), "prefs") is None
    (found,) = store.search(("users",))
    assert found.namespace == ("users", "bob")
    with pytest.raises(GraphKernelError, match="is of another session") as caught:
        store.put(("users", "ann"), "prefs", {"pin": 4711})
    assert caught.value.word == "TURN_ID_TAKEN"
    store.delete(("users", "ann"), "prefs")
    assert store.search(("users",))[0].value == {"a": 1}
    # Nor does what Python cannot hold end a search.
    store.put(("users", "eve"), "prefs", {"a": 2})
    connection.execute(
        """UPDATE memory_turns SET payload = jsonb_set(payload, '{value,n}', '1e5000'), created_at = 'infinity'
            WHERE session_id LIKE '%/eve/'"""
    )
    for updated in ('"soon"', "1e100000", "-1e5000", "[]", "null"):
        connection.execute(
            "UPDATE memory_turns SET payload = jsonb_set(payload, '{updated_at}', %s) WHERE session_id LIKE '%%/bob/'",
            (updated,),
        )
        (found,) = store.search(("users",))
        assert found.namespace == ("users", "bob") and found.updated_at is not None


def test_an_item_is_not_given_to_whoever_has_its_turn(connection: psycopg.Connection[Any]) -> None:
    """With the columns of sql/roles/supabase.sql: the user in the request's JWT owns what he stores."""
    connection.execute(
        """ALTER TABLE memory_turns ADD COLUMN owner_id text DEFAULT current_setting('py.uid', true),
               ADD COLUMN likes integer DEFAULT 0;
           CREATE POLICY py_own ON memory_turns USING (owner_id = current_setting('py.uid', true))"""
    )
    try:
        with psycopg.connect(autocommit=True) as own:
            store = GraphKernelStore(sync.Database(own))
            own.execute("SET py.uid = 'bob'")
            store.put(("users", "ann"), "prefs", {"a": 1})
            connection.execute("UPDATE memory_turns SET likes = 7")
            store.put(("users", "ann"), "prefs", {"a": 2})
            for user in ("ann", ""):
                own.execute(f"SET py.uid = '{user}'")
                with pytest.raises(GraphKernelError, match="somebody else's by a row security policy"):
                    store.put(("users", "ann"), "prefs", {"pin": 4711})
            rows = connection.execute("SELECT payload -> 'value', likes FROM memory_turns WHERE payload ? 'key'")
            assert rows.fetchall() == [({"a": 2}, 7)]
            store.delete(("users", "ann"), "prefs")
            store.put(("users", "ann"), "prefs", {"pin": 4711})
    finally:
        connection.execute(
            "DROP POLICY py_own ON memory_turns; ALTER TABLE memory_turns DROP COLUMN owner_id, DROP COLUMN likes"
        )


def test_those_who_write_the_same_items_wait_for_each_other(connection: psycopg.Connection[Any]) -> None:
    spaces = [("a", str(n % 3)) for n in range(12)]
    ops = [PutOp(space, f"k{n}", {"n": n}) for n, space in enumerate(spaces)]
    errors: list[Exception] = []

    def write(ops: list[PutOp]) -> None:
        try:
            with sync.Database() as database:
                for _ in range(20):
                    GraphKernelStore(database).batch(ops)
        except GraphKernelError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(order,)) for order in (ops, ops[::-1], ops[::2] + ops[1::2])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(GraphKernelStore(sync.Database(connection)).search(("a",), limit=100)) == 12


def test_what_is_put_again_is_replaced(connection: psycopg.Connection[Any], embed: Embed) -> None:
    database = sync.Database(connection)
    store = GraphKernelStore(database, embed=embed, owner=lambda namespace: namespace[-1])
    store.put(("memories", "ada"), "k", {"text": f"{QUESTION} made?"})
    before = store.get(("memories", "ada"), "k")
    stored = (
        "SELECT id, content_text, embedding IS NOT NULL, owner, content_hash FROM memory_turns WHERE payload ? 'key'"
    )
    (first,) = connection.execute(stored).fetchall()
    assert first[1:4] == (f'{{"text": "{QUESTION} made?"}}', True, "ada")
    # A store without embeddings leaves none of what was there; one without owners leaves the item its owner.
    GraphKernelStore(database).put(("memories", "ada"), "k", {"text": "other\0"}, index=["text"])
    (second,) = connection.execute(stored).fetchall()
    assert second[:4] == (first[0], "other\ufffd", False, "ada") and second[4] != first[4]
    after = store.get(("memories", "ada"), "k")
    assert before is not None and after is not None and after.value == {"text": "other\ufffd"}
    assert before.created_at == before.updated_at == after.created_at < after.updated_at
    store.put(("memories", "ada"), "k", {"text": "hidden"}, index=False)
    assert connection.execute(stored).fetchall()[0][1:3] == (None, False)
    with pytest.raises(NotImplementedError):
        store.put(("memories",), "k", {}, ttl=5)
    with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.Database"):
        GraphKernelStore(aio.Database())  # type: ignore[arg-type]


def test_a_query_finds_by_meaning(connection: psycopg.Connection[Any], embed: Embed) -> None:
    store = GraphKernelStore(sync.Database(connection), embed=embed, fields=["text"])
    store.put(("memories", "ada"), "other", {"text": "Ida eats no fish.", "kind": "food"})
    store.put(("memories", "ada", "deep"), "hit", {"text": f"{QUESTION} made?", "kind": "work"})
    store.put(("memories", "bob"), "bob", {"text": f"{QUESTION} made?", "kind": "work"})
    found = store.search(("memories", "ada"), query=QUESTION)
    assert [item.key for item in found] == ["hit", "other"] or [item.key for item in found] == ["hit"]
    assert found[0].score == pytest.approx(1.0) and found[0].namespace == ("memories", "ada", "deep")
    assert [item.key for item in store.search(("memories",), query=QUESTION, limit=1, offset=1)] in (["bob"], ["hit"])
    assert store.search(("memories", "ada"), query=QUESTION, filter={"kind": "food", "text": {"$ne": "x"}}) in (
        [],
        store.search(("memories", "ada"), filter={"kind": "food"}),
    )
    assert store.search(("nothing",), query=QUESTION) == []
    # What an agent keeps is found beside what was said.
    recalled = Conversation(connection, embed=embed).recall(QUESTION, 4000)
    assert f"{QUESTION} made?" in [turn.content for turn in recalled]


def test_a_query_finds_by_words(connection: psycopg.Connection[Any], words: None) -> None:
    store = GraphKernelStore(sync.Database(connection))
    for n in range(30):
        store.put(("notes", f"n{n % 3}"), str(n), {"text": f"likes pickled herrings {n}" if n == 7 else "tea", "n": n})
    assert [item.key for item in store.search(("notes",), query="herring")] == ["7"]
    assert len(store.search(("notes",), query="tea", limit=20)) == 20
    assert len(store.search(("notes",), query="tea", limit=20, offset=20)) == 9
    assert [item.key for item in store.search(("notes",), query="tea", filter={"n": {"$gt": 28}})] == ["29"]
    recalled = Conversation(connection).recall("pickled herrings", 500)
    assert any("herrings 7" in (turn.content or "") for turn in recalled)
    store.put(("notes", "n1"), "7", {"text": "pickled"}, index=False)
    assert store.search(("notes",), query="pickled") == []


def test_a_query_where_nothing_can_be_searched(connection: psycopg.Connection[Any]) -> None:
    store = GraphKernelStore(sync.Database(connection))
    store.put(("a",), "b", {"text": "c"})
    with pytest.raises(GraphKernelError) as caught:
        store.search(("a",), query="c")
    assert caught.value.word == "NO_WORDS"


def test_more_namespaces_than_a_search_reads(connection: psycopg.Connection[Any], embed: Embed) -> None:
    store = GraphKernelStore(sync.Database(connection), embed=embed)
    store.batch([PutOp(("many", str(n)), "k", {"n": n}, index=False) for n in range(1001)])
    assert len(store.search(("many",), limit=2000)) == 1001
    with pytest.raises(GraphKernelError) as caught:
        store.search(("many",), query=QUESTION)
    assert caught.value.word == "SEARCH_TOO_LARGE"
    assert store.search(("many", "7"), query=QUESTION) == []


def test_batches(connection: psycopg.Connection[Any]) -> None:
    database = sync.Database(connection)
    store = GraphKernelStore(database)
    matches = (MatchCondition("prefix", ("elsewhere",)),)
    ops = [
        PutOp(("batch",), "a", {"n": 1}),
        GetOp(("batch",), "a"),
        PutOp(("batch",), "a", {"n": 2}),
        PutOp(("batch",), "b", {"n": 3}),
        PutOp(("batch",), "b", None),
        SearchOp(("batch",)),
        ListNamespacesOp(matches),
    ]
    assert store.batch(ops) == InMemoryStore().batch(ops) == [None, None, None, None, None, [], []]
    assert [item.value for item in store.search(("batch",))] == [{"n": 2}]
    with pytest.raises(TypeError):
        store.batch([PutOp(("batch",), "c", {"n": 4}), PutOp(("batch",), "d", {"n": object()}, index=["n"])])
    assert store.get(("batch",), "c") is None

    async def example() -> None:
        await asyncio.gather(*(store.aput(("batch", "async"), str(n), {"n": n}) for n in range(8)))
        found = await store.asearch(("batch", "async"), filter={"n": {"$lt": 4}})
        assert sorted(item.value["n"] for item in found) == [0, 1, 2, 3]
        assert await store.alist_namespaces(prefix=("batch",)) == [("batch",), ("batch", "async")]

    asyncio.run(example())


def test_conversations_are_not_items(connection: psycopg.Connection[Any]) -> None:
    store = GraphKernelStore(sync.Database(connection))
    store.put(("a",), "b", {"text": "c"})
    with Conversation(sync.Database(), "langgraph.store/a/") as conversation:
        conversation.append({"role": "user", "content": "Hello."})
        assert [item.key for item in store.search(())] == ["b"] and store.list_namespaces() == [("a",)]
    (item,) = connection.execute("SELECT id FROM memory_turns WHERE payload ? 'key'").fetchall()
    with Conversation(sync.Database(), "langgraph.store/a/") as conversation:
        conversation.redact(item[0])
    assert store.get(("a",), "b") is None
    store.put(("a",), "b", {"text": "again"})
    assert [found.value for found in store.search(("a",))] == [{"text": "again"}]


def test_a_graph_with_a_store(connection: psycopg.Connection[Any]) -> None:
    class State(TypedDict):
        said: str

    def remember(state: State, runtime: Runtime[None]) -> State:
        assert runtime.store is not None
        known = runtime.store.get(("facts",), "last")
        runtime.store.put(("facts",), "last", {"said": state["said"]})
        return {"said": "nothing" if known is None else known.value["said"]}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    graph = builder.compile(store=GraphKernelStore(sync.Database(connection)))
    assert graph.invoke({"said": "tea"})["said"] == "nothing"
    assert graph.invoke({"said": "fish"})["said"] == "tea"


def test_the_index(connection: psycopg.Connection[Any]) -> None:
    store = filled(GraphKernelStore(sync.Database(connection)))
    store.setup()
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL enable_seqscan = off")
        plan = connection.execute(
            """EXPLAIN SELECT FROM memory_turns AS t
                 WHERE t.session_id ^@ 'langgraph.store/' AND t.payload ? 'namespace'
                   AND t.session_id COLLATE "C" ^@ 'langgraph.store/users/'"""
        ).fetchall()
    assert "memory_turns_items_idx" in str(plan) and "Index Cond" in str(plan)
    connection.execute("DROP INDEX memory_turns_items_idx")


@pytest.mark.filterwarnings("ignore")
def test_the_hook_of_langgraph_trims(connection: psycopg.Connection[Any]) -> None:
    from langgraph.prebuilt import create_react_agent

    seen: list[list[BaseMessage]] = []

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
            seen.append(messages)
            return super()._generate(messages, *args, **kwargs)

    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sun in {city} " * 20

    answers = []
    for n in range(6):
        answers.append(AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": f"call {n}"}]))
    answers.append(AIMessage("Sun."))
    hook = trim_hook(lambda config: Conversation(connection, config["configurable"]["thread_id"]), max_tokens=250)
    agent = create_react_agent(Model(messages=iter(answers)), [weather], pre_model_hook=hook)
    state = agent.invoke({"messages": [HumanMessage("Weather in Oslo?")]}, {"configurable": {"thread_id": "graph-1"}})
    assert len(state["messages"]) == 14 and state["messages"][-1].content == "Sun."
    assert [len(messages) for messages in seen][:2] == [1, 3]
    for messages in seen:
        # The goal comes first, and no result is without its call.
        assert messages[0].content == "Weather in Oslo?"
        calls = {call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
        assert calls == {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    assert len(seen[-1]) < 13


def test_the_hook_follows_the_state(connection: psycopg.Connection[Any]) -> None:
    conversation = Conversation(connection)
    hook = trim_hook(lambda config: conversation, max_tokens=1000)

    def given(*messages: BaseMessage) -> list[Any]:
        return [message.content for message in hook({"messages": list(messages)}, {})["llm_input_messages"]]

    first, answer = HumanMessage("a secret", id="a"), AIMessage("ok", id="b")
    assert given(SystemMessage("s", id="s")) == ["s"]  # without a message of the user
    assert given(SystemMessage("s", id="s"), first, answer) == ["s", "a secret", "ok"]
    assert given(SystemMessage("s", id="s"), first, answer) == ["s", "a secret", "ok"]
    assert given(HumanMessage("no more", id="a"), answer) == ["no more", "ok"]
    assert given(HumanMessage("new", id="c")) == ["new"]
    assert len(conversation.turns()) == 4
    with pytest.raises(GraphKernelError) as caught:
        given(HumanMessage("without an id"))
    assert caught.value.word == "INVALID_MESSAGE"


def test_the_hook_stores_each_message_once(connection: psycopg.Connection[Any]) -> None:
    """Also where there are more than a slice has."""
    conversation = Conversation(connection)
    messages = [HumanMessage(f"m{n}", id=str(n)) for n in range(10_050)]
    hook = trim_hook(lambda config: conversation, max_tokens=100, goal=False)
    for _ in range(2):
        kept = hook({"messages": messages}, {})["llm_input_messages"]
        assert kept[-1].content == "m10049"
        row = connection.execute("SELECT count(*) FROM memory_turns WHERE session_id = %s", (conversation.session_id,))
        assert row.fetchone() == (10_050,)
