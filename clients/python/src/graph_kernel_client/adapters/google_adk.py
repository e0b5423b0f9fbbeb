"""Google ADK: a memory service over sessions. Needs google-adk."""

from __future__ import annotations

from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from .._async.conversation import Conversation
from .._async.database import Database
from .._async.embedding import Embed
from .._messages import Part

__all__ = ["GraphKernelMemoryService"]


class GraphKernelMemoryService(BaseMemoryService):
    """Events of sessions as turns, whose owner is the user of the application; what a query finds comes with what was
    said around it, within `max_tokens`."""

    def __init__(self, database: Database, *, embed: Embed | None = None, max_tokens: int = 2000) -> None:
        self._database, self._embed, self._max_tokens = database, embed, max_tokens

    async def add_session_to_memory(self, session: Session) -> None:
        """Stores the events of a session that have a content and are not stored yet."""
        conversation = self._conversation(session.app_name, session.user_id, session.id)
        stored = {turn.payload["id"] for turn in await conversation.turns() if turn.payload is not None}
        events = [event for event in session.events if event.content is not None and event.content.parts]
        await conversation.append_parts([_part(event) for event in events if event.id not in stored])

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        found = await self._conversation(app_name, user_id).recall(query, self._max_tokens)
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=turn.turn_id,
                    content=types.Content.model_validate(turn.payload["content"]),
                    author=turn.payload.get("author"),
                    timestamp=turn.created_at.isoformat() if turn.created_at is not None else None,
                    custom_metadata={"part": turn.part, "score": turn.score, "seed": turn.seed},
                )
                for turn in found
                if turn.payload is not None and "content" in turn.payload
            ]
        )

    def _conversation(self, app_name: str, user_id: str, session_id: str | None = None) -> Conversation:
        owner = f"{app_name}/{user_id}"
        return Conversation(
            self._database, None if session_id is None else f"{owner}/{session_id}", embed=self._embed, owner=owner
        )


def _part(event: Event) -> Part:
    payload: dict[str, Any] = event.model_dump(mode="json", by_alias=True, exclude_none=True)
    content = event.content or types.Content()
    parts = content.parts or []
    answers = [part.function_response.id for part in parts if part.function_response and part.function_response.id]
    role = (
        "tool" if any(part.function_response for part in parts) else "user" if content.role == "user" else "assistant"
    )
    said = [part.text for part in parts if part.text and not part.thought]
    said += [str(part.function_response.response) for part in parts if part.function_response]
    return Part(payload, answers, role=role, text="\n".join(said))
