"""LangChain: a history of messages, and a retriever. Needs langchain-core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever

from .._messages import Part
from .._sync.conversation import Conversation
from .._sync.retrieval import MemoryRetriever
from ..types import SearchResult, SliceExport
from . import payloads, taken

__all__ = ["GraphKernelChatMessageHistory", "GraphKernelRetriever", "part_of", "message_of"]


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
        return [message_of(payload) for payload in payloads(turns, "type", "data")]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.conversation.append_parts([part_of(message) for message in messages])

    def clear(self) -> None:
        """Deletes the turns of the session."""
        self.conversation.clear()


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
