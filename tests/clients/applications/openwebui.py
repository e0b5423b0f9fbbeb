"""Chats and channels of Open WebUI: its migrations make the tables, its models write the rows."""

import asyncio
import os
import tempfile
from urllib.parse import quote

environment = {
    "DATABASE_URL": "postgresql://{PGUSER}@/{PGDATABASE}?host={}&port={PGPORT}".format(
        quote(os.environ["PGHOST"], safe=""), **os.environ
    ),
    "DATA_DIR": tempfile.mkdtemp(),
    "WEBUI_SECRET_KEY": "none",
    "ENABLE_DB_MIGRATIONS": "False",
}
os.environ.update(environment)

from alembic import command  # noqa: E402
from alembic.config import Config  # noqa: E402
from open_webui.env import OPEN_WEBUI_DIR  # noqa: E402
from open_webui.internal.db import get_async_db_context  # noqa: E402
from open_webui.models.chat_messages import ChatMessages  # noqa: E402
from open_webui.models.chats import Chat  # noqa: E402
from open_webui.models.messages import Message  # noqa: E402

config = Config(OPEN_WEBUI_DIR / "alembic.ini")
config.set_main_option("script_location", str(OPEN_WEBUI_DIR / "migrations"))
command.upgrade(config, "head")

SECOND = 1767607200


async def main():
    async with get_async_db_context() as session:
        for chat in ("a", "b"):
            session.add(Chat(id=chat, user_id="u1", title=chat, chat={}, created_at=SECOND, updated_at=SECOND))
        await session.commit()

    async def chat(chat_id, message_id, parent, role, content, **more):
        data = {"role": role, "parentId": parent, "content": content, "timestamp": SECOND, **more}
        await ChatMessages.upsert_message(message_id, chat_id, "u1", data)

    await chat("a", "m1", None, "user", "Where is my parcel?")
    await chat("b", "m1", None, "user", "Cancel my order.")
    await chat("a", "m2", "m1", "assistant", "I do not know.")
    output = [{"type": "function_call", "call_id": "c1", "name": "track", "arguments": "{}"}]
    await chat("a", "m3", "m1", "assistant", "It arrives today.", output=output)
    await chat("a", "m4", "m3", "user", [{"type": "text", "text": "Thanks."}])

    async with get_async_db_context() as session:
        rows = [
            ("n1", "general", None, None, "Where is my parcel?"),
            ("n2", "other", None, None, "Cancel my order."),
            ("n3", "general", "n1", None, "It arrives today."),
            ("n4", "general", "n1", "n3", "Thanks."),
            ("n5", "general", None, None, "Who is on call?"),
        ]
        for index, (key, channel, parent, replied, content) in enumerate(rows):
            time = (SECOND + index) * 10**9
            session.add(
                Message(
                    id=key,
                    user_id="u1",
                    channel_id=channel,
                    parent_id=parent,
                    reply_to_id=replied,
                    content=content,
                    meta={"model_id": "m"} if key == "n3" else None,
                    created_at=time,
                    updated_at=time,
                )
            )
        await session.commit()


asyncio.run(main())
