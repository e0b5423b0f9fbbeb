"""LangChain: a history of messages, and a retriever. Needs langchain-core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig

from .._messages import Part
from .._sync.conversation import Conversation
from .._sync.retrieval import MemoryRetriever
from ..types import SearchResult, SliceExport
from . import taken

__all__ = ["GraphKernelChatMessageHistory", "GraphKernelRetriever", "part_of", "message_of", "trim_hook"]


def part_of(message: BaseMessage) -> Part:
    """The turn that a message becomes."""
    answers = [message.tool_call_id] if isinstance(message, ToolMessage) else []
    return Part(message_to_dict(message), answers)


def message_of(payload: dict[str, Any]) -> BaseMessage:
    (message,) = messages_from_dict([payload])
    return message


class GraphKernelChatMessageHistory(BaseChatMessageHistory):
    """The messages of a conversation: all, or those that fit into `max_tokens`, by the preset `chat`."""

    def __init__(self, conversation: Conversation, *, max_tokens: int | None = None) -> None:
        self.conversation = taken(conversation, Conversation)
        self.max_tokens = max_tokens

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        turns = self.conversation.turns(max_tokens=self.max_tokens)
        return [message_of(turn.payload) for turn in turns if turn.payload is not None]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.conversation.append_parts([part_of(message) for message in messages])

    def clear(self) -> None:
        """Deletes the turns of the session."""
        self.conversation.remove()


class GraphKernelRetriever(BaseRetriever):
    """Documents of a slice, each with the provenance of the search; of the whole graph where there is no slice."""

    retriever: MemoryRetriever
    slice_export: SliceExport | None = None
    limit: int = 10

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if self.slice_export is not None:
            results: Any = self.retriever.search_slice(query, self.slice_export, self.limit)
        else:
            results = self.retriever.search_global(query, self.limit)
        return [_document(result, results.provenance.document) for result in results]


def _document(result: SearchResult, provenance: dict[str, Any] | None) -> Document:
    return Document(
        id=str(result.turn_id),
        page_content=result.content,
        metadata={
            "turn_id": str(result.turn_id),
            "role": result.role,
            "similarity": result.similarity,
            **result.metadata,
            "provenance": provenance,
        },
    )


def trim_hook(
    conversation: Callable[[RunnableConfig], Conversation], *, max_tokens: int, goal: bool = True
) -> Callable[[dict[str, Any], RunnableConfig], dict[str, Any]]:
    """A hook for LangGraph that runs before the model: stores what is new, and gives the model what fits.

    `conversation` returns that of a configuration, by its thread, say. In `messages` of the state all stay: only the
    input of the model is replaced, and each turn keeps the id of its message.
    """

    def hook(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        chosen = taken(conversation(config), Conversation)
        stored = {turn.payload["data"].get("id") for turn in chosen.turns() if turn.payload is not None}
        new = [message for message in state["messages"] if message.id is None or message.id not in stored]
        chosen.append_parts([part_of(message) for message in new])
        pins = {"pins": [turn.turn_id for turn in chosen.turns() if turn.role == "user"][:1]} if goal else None
        turns = chosen.turns(max_tokens=max_tokens, policy=pins)
        return {"llm_input_messages": [message_of(turn.payload) for turn in turns if turn.payload is not None]}

    return hook
