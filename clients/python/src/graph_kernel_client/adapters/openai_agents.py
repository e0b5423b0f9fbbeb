"""OpenAI Agents SDK: a session. Needs openai-agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._async.conversation import Conversation
from .._messages import Part, is_text_alone, item_part, items_part
from ..types import PromptTurn
from . import payloads, taken

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

__all__ = ["GraphKernelSession"]


class GraphKernelSession:
    """The items of a conversation: all, or those that fit into `max_tokens`, by the preset `chat`."""

    session_settings: SessionSettings | None = None

    def __init__(self, conversation: Conversation, *, max_tokens: int | None = None) -> None:
        self.conversation = taken(conversation, Conversation)
        self.session_id = conversation.session_id
        self.max_tokens = max_tokens

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        turns = await self.conversation.turns(max_tokens=self.max_tokens)
        items = [item for turn in turns for item in _items(turn)]
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self.conversation.append_parts([_part(dict(item)) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Deletes the latest item, and returns it: with its turn, or out of that of several."""

        def split(turn: PromptTurn) -> tuple[TResponseInputItem, Part | None]:
            *rest, item = _items(turn)
            return item, items_part(rest) if rest else None

        popped: TResponseInputItem | None = await self.conversation.pop(split)
        return popped

    async def clear_session(self) -> None:
        """Deletes the turns of the session."""
        await self.conversation.clear()


def _part(item: dict[str, Any]) -> Part:
    if is_text_alone(item):
        return Part(item, [])
    return item_part(item)


def _items(turn: PromptTurn) -> list[Any]:
    return [turn.message] if turn.payload is None else list(payloads([turn], "output")[0]["output"])
