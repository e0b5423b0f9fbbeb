"""LlamaIndex: a memory of chat messages, and a retriever. Needs llama-index-core."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.bridge.pydantic import Field, field_validator
from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from .._messages import Part
from .._sync.conversation import Conversation
from .._sync.retrieval import MemoryRetriever
from ..types import SearchResult, SliceExport
from . import payloads, taken

__all__ = ["GraphKernelMemory", "GraphKernelRetriever"]

_ROLES = {"developer": "system", "function": "tool", "chatbot": "assistant", "model": "assistant"}


class GraphKernelMemory(BaseMemory):
    """The messages of a conversation: `get` gives those that fit into `max_tokens`, `get_all` all."""

    conversation: Any = Field(exclude=True)
    max_tokens: int | None = None

    @field_validator("conversation")
    @classmethod
    def _is_conversation(cls, given: Any) -> Conversation:
        return taken(given, Conversation)

    @classmethod
    def class_name(cls) -> str:
        return "GraphKernelMemory"

    @classmethod
    def from_defaults(cls, conversation: Conversation | None = None, **kwargs: Any) -> GraphKernelMemory:
        return cls(conversation=conversation or Conversation(), **kwargs)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        return self._messages(self.max_tokens)

    def get_all(self) -> list[ChatMessage]:
        return self._messages(None)

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        self.conversation.append_parts([_part(message) for message in messages])

    def set(self, messages: list[ChatMessage]) -> None:
        """Deletes the turns of the session, and stores these."""
        self.conversation.replace([_part(message) for message in messages])

    def reset(self) -> None:
        """Deletes the turns of the session."""
        self.conversation.clear()

    def _messages(self, max_tokens: int | None) -> list[ChatMessage]:
        turns = self.conversation.turns(max_tokens=max_tokens)
        stored = payloads(turns, "role", "blocks")
        return [ChatMessage.model_validate(_without_files(payload)) for payload in stored]


def _without_files(stored: dict[str, Any]) -> dict[str, Any]:
    """A message without blocks that name a file of this machine, or an address of another kind than https: whoever may
    insert a turn can write such, and the application would send the provider what is there."""
    message = {key: _blocks(value) if key in _BLOCKS else value for key, value in stored.items()}
    kwargs = stored.get("additional_kwargs")
    if isinstance(kwargs, dict):
        # The blocks of images are stored too.
        message["additional_kwargs"] = {key: value for key, value in kwargs.items() if key != "images"}
    return message


# The keys of blocks in a message and in a block.
_BLOCKS = ("blocks", "content", "cited_content")


def _blocks(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_blocks(block) for block in stored if not _is_file(block)]
    if isinstance(stored, dict):
        return {key: _blocks(value) if key in _BLOCKS else value for key, value in stored.items()}
    return stored


def _is_file(block: Any) -> bool:
    if not isinstance(block, dict) or "block_type" not in block:
        return False
    cited = block.get("cited_content")
    if any(map(_is_file, cited if isinstance(cited, list) else [cited])):
        return True
    url = block.get("url")
    return bool(block.get("path")) or (bool(url) and not str(url).startswith(("https://", "data:")))


def _part(message: ChatMessage) -> Part:
    role = str(message.role.value)
    answered = message.additional_kwargs.get("tool_call_id")
    text = "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))
    return Part(
        message.model_dump(mode="json"),
        [answered] if role == "tool" and isinstance(answered, str) else [],
        role=_ROLES.get(role, role),
        text=text,
    )


class GraphKernelRetriever(BaseRetriever):
    """Nodes of a slice, each with the provenance of the search; of the whole graph where there is no slice."""

    def __init__(
        self, retriever: MemoryRetriever, slice_export: SliceExport | None = None, limit: int = 10, **kwargs: Any
    ) -> None:
        taken(retriever, MemoryRetriever)
        self._retriever, self._slice_export, self._limit = retriever, slice_export, limit
        super().__init__(**kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query, embedding = query_bundle.query_str, query_bundle.embedding
        if self._slice_export is not None:
            results: Any = self._retriever.search_slice(query, self._slice_export, self._limit, embedding=embedding)
        else:
            results = self._retriever.search_global(query, self._limit, embedding=embedding)
        return [
            NodeWithScore(node=_node(result, results.provenance.document), score=result.similarity)
            for result in results
        ]


def _node(result: SearchResult, provenance: dict[str, Any] | None) -> TextNode:
    metadata = {"role": result.role, **result.metadata, "provenance": provenance}
    # Not for a model: it is sent all metadata that are not excluded.
    return TextNode(
        id_=str(result.turn_id),
        text=result.content,
        metadata=metadata,
        excluded_llm_metadata_keys=list(metadata),
        excluded_embed_metadata_keys=list(metadata),
    )
