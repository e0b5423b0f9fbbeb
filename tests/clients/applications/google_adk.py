"""Sessions of Google ADK; the second one writes between."""

import asyncio
import time

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.genai.types import Content, FunctionCall, FunctionResponse, Part


async def main():
    service = DatabaseSessionService("postgresql+asyncpg://")
    first = await service.create_session(app_name="shop", user_id="u1", session_id="a")
    second = await service.create_session(app_name="shop", user_id="u1", session_id="b")
    start = time.time()
    count = 0

    async def add(session, author, *parts):
        nonlocal count
        count += 1
        role = "user" if author == "user" or parts[0].function_response else "model"
        event = Event(
            invocation_id=f"i{count}",
            author=author,
            content=Content(role=role, parts=list(parts)),
            timestamp=start + count,
        )
        await service.append_event(session, event)

    await add(first, "user", Part(text="Where is my parcel?"))
    await add(second, "user", Part(text="Cancel my order."))
    await add(first, "clerk", Part(function_call=FunctionCall(id="c1", name="track", args={})))
    answer = FunctionResponse(id="c1", name="track", response={"result": "in transit"})
    await add(first, "clerk", Part(function_response=answer))
    await add(first, "clerk", Part(text="It arrives today."))
    await add(first, "user", Part(text="Thanks."))


asyncio.run(main())
