"""LangChain, with its package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

pytest.importorskip("langchain_core")

from conftest import ANCHOR, QUESTION
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory

from graph_kernel_client import ConfigurationError, Conversation, GraphKernelError, MemoryRetriever, aio, sync
from graph_kernel_client.adapters.langchain import GraphKernelChatMessageHistory, GraphKernelRetriever

MESSAGES: list[BaseMessage] = [
    SystemMessage("You are brief.", id="m0"),
    HumanMessage("Weather?", id="m1"),
    AIMessage(
        "",
        id="m2",
        tool_calls=[{"name": "weather", "args": {"city": city}, "id": city} for city in ("Oslo", "Bergen")],
    ),
    ToolMessage("sun", tool_call_id="Oslo", id="m3"),
    ToolMessage("rain", tool_call_id="Bergen", id="m4"),
    AIMessage([{"type": "text", "text": "Sun and rain."}], id="m5"),
]


def test_history(connection: psycopg.Connection[Any]) -> None:
    conversation = Conversation(connection)
    history = GraphKernelChatMessageHistory(conversation)
    assert history.messages == []
    history.add_messages(MESSAGES[:3])
    # Another process.
    history = GraphKernelChatMessageHistory(Conversation(connection, conversation.session_id))
    history.add_messages(MESSAGES[3:])
    assert history.messages == MESSAGES
    rows = connection.execute(
        "SELECT role, content_text FROM memory_turns WHERE session_id = %s ORDER BY created_at",
        (conversation.session_id,),
    ).fetchall()
    assert rows == [
        ("system", "You are brief."),
        ("user", "Weather?"),
        ("assistant", None),
        ("tool", "sun"),
        ("tool", "rain"),
        ("assistant", "Sun and rain."),
    ]
    # The server reads this form, with its calls.
    sent = history.conversation.messages("openai")["messages"]
    assert [call["id"] for call in sent[2]["tool_calls"]] == [message["tool_call_id"] for message in sent[3:5]]
    history.clear()
    assert history.messages == []


def test_two_requests_of_one_session(connection: psycopg.Connection[Any]) -> None:
    def history() -> GraphKernelChatMessageHistory:
        return GraphKernelChatMessageHistory(Conversation(connection, "langchain-two"))

    history().add_messages([HumanMessage("start"), AIMessage("ok")])
    one, two = history(), history()
    assert one.messages == two.messages
    one.add_messages([HumanMessage("from tab 1"), AIMessage("answer 1")])
    two.add_messages([HumanMessage("from tab 2"), AIMessage("answer 2")])
    said = [message.content for message in history().messages]
    assert said == ["start", "ok", "from tab 1", "answer 1", "from tab 2", "answer 2"]


def test_a_result_of_no_call_that_is_known(connection: psycopg.Connection[Any]) -> None:
    history = GraphKernelChatMessageHistory(Conversation(connection))
    wrong = {"name": "w", "args": "{", "id": "i1", "error": "no JSON"}
    messages: list[BaseMessage] = [
        HumanMessage("x"),
        AIMessage("", invalid_tool_calls=[wrong]),
        ToolMessage("Try again.", tool_call_id="i1"),
    ]
    history.add_messages(messages)
    assert history.messages == messages


def test_what_was_redacted(connection: psycopg.Connection[Any]) -> None:
    conversation = Conversation(connection)
    history = GraphKernelChatMessageHistory(conversation)
    history.add_messages(MESSAGES)
    asked = conversation.turns()[1]
    conversation.redact(asked.turn_id)
    assert history.messages == [MESSAGES[0], *MESSAGES[2:]]
    assert conversation.messages()["messages"][1] == {"role": "user", "content": "[redacted]"}
    history.clear()


def test_what_is_not_a_conversation(connection: psycopg.Connection[Any]) -> None:
    for wrong in (sync.Database(connection), aio.Conversation(), None):
        with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.Conversation"):
            GraphKernelChatMessageHistory(wrong)  # type: ignore[arg-type]
    with pytest.raises(GraphKernelError, match="adapters"):
        Conversation(connection).append(HumanMessage("Hi"))


def test_history_within_a_budget(connection: psycopg.Connection[Any]) -> None:
    history = GraphKernelChatMessageHistory(Conversation(connection), max_tokens=200)
    for n in range(20):
        history.add_messages([HumanMessage(f"question {n} " * 10), AIMessage(f"answer {n} " * 10)])
    kept = history.messages
    assert 2 <= len(kept) < 40 and kept[-1].content == "answer 19 " * 10
    assert isinstance(kept[0], HumanMessage)


def test_a_chain_with_history(connection: psycopg.Connection[Any]) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Hello."), AIMessage("Again.")]))
    chain = RunnableWithMessageHistory(
        model, lambda session_id: GraphKernelChatMessageHistory(Conversation(connection, session_id))
    )
    config: Any = {"configurable": {"session_id": "langchain-1"}}
    assert chain.invoke("Hi", config).content == "Hello."
    assert chain.invoke("Hi again", config).content == "Again."
    said = [
        message.content for message in GraphKernelChatMessageHistory(Conversation(connection, "langchain-1")).messages
    ]
    assert said == ["Hi", "Hello.", "Hi again", "Again."]


def test_retriever(connection: psycopg.Connection[Any], embed: Callable[[str], list[float]]) -> None:
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    search = MemoryRetriever(connection, embed=embed)
    documents = GraphKernelRetriever(retriever=search, slice_export=export, limit=3).invoke(QUESTION)
    assert [document.metadata["turn_id"][:8] for document in documents] == ["42cf2e38", "10eae790", "95484ab0"]
    assert documents[0].page_content and documents[0].metadata["provenance"]["slice_id"] == export.slice_id
    everywhere = GraphKernelRetriever(retriever=search, limit=2).invoke(QUESTION)
    assert len(everywhere) == 2 and everywhere[0].metadata["provenance"]["retrieval_mode"] == "global"
