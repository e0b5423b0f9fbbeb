"""Sessions of the OpenAI Agents SDK, with a call of a tool; the second one writes between."""

import asyncio

from agents.extensions.memory import SQLAlchemySession

URL = "postgresql+asyncpg://"


async def main():
    first = SQLAlchemySession.from_url("a", url=URL, create_tables=True)
    second = SQLAlchemySession.from_url("b", url=URL, create_tables=True)
    await first.add_items([{"role": "user", "content": "Where is my parcel?"}])
    await second.add_items([{"role": "user", "content": "Cancel my order."}])
    await first.add_items(
        [
            {"type": "function_call", "call_id": "c1", "name": "track", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "in transit"},
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "It arrives today.", "annotations": []}],
            },
        ]
    )
    await first.add_items([{"role": "user", "content": "Thanks."}])
    await first.engine.dispose()
    await second.engine.dispose()


asyncio.run(main())
