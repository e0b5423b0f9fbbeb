"""Threads of Chainlit, written by its SQLAlchemy data layer; it makes no tables, its users do."""

import asyncio
import os
from urllib.parse import quote

from sqlalchemy import text
from chainlit.data.sql_alchemy import SQLAlchemyDataLayer

# Columns of the tables that the data layer writes to.
TABLES = """
CREATE TABLE users (id uuid PRIMARY KEY, identifier text NOT NULL UNIQUE, metadata jsonb NOT NULL, "createdAt" text);
CREATE TABLE threads (id uuid PRIMARY KEY, "createdAt" text, name text, "userId" uuid, "userIdentifier" text,
                      tags text[], metadata jsonb);
CREATE TABLE steps (id uuid PRIMARY KEY, name text NOT NULL, type text NOT NULL, "threadId" uuid NOT NULL,
                    "parentId" uuid, streaming boolean NOT NULL, "waitForAnswer" boolean, "isError" boolean,
                    metadata jsonb, tags text[], input text, output text, "createdAt" text, command text, start text,
                    "end" text, generation jsonb, "showInput" text, language text, indent int,
                    "defaultOpen" boolean, "autoCollapse" boolean, icon text, modes jsonb);
CREATE TABLE elements (id uuid PRIMARY KEY, "threadId" uuid, type text, url text, "chainlitKey" text,
                       name text NOT NULL, display text, "objectKey" text, size text, page int, language text,
                       "forId" uuid, mime text, props jsonb);
CREATE TABLE feedbacks (id uuid PRIMARY KEY, "forId" uuid NOT NULL, "threadId" uuid NOT NULL, value int NOT NULL,
                        comment text);
"""
URL = "postgresql+asyncpg://"


async def main():
    layer = SQLAlchemyDataLayer(URL)
    async with layer.engine.begin() as connection:
        for statement in TABLES.split(";"):
            if statement.strip():
                await connection.execute(text(statement))
    count = 0

    async def step(thread, number, kind, output, parent=None):
        nonlocal count
        count += 1
        await layer.create_step.__wrapped__(
            layer,
            {
                "id": f"00000000-0000-4000-8000-0000000000{number}",
                "threadId": f"00000000-0000-4000-8000-00000000000{thread}",
                "parentId": parent and f"00000000-0000-4000-8000-0000000000{parent}",
                "name": "step",
                "type": kind,
                "streaming": False,
                "output": output,
                "createdAt": f"2026-01-05T10:00:0{count}Z",
                "metadata": {},
                "tags": [],
            },
        )

    await step("a", "c1", "user_message", "Where is my parcel?")
    await step("b", "d1", "user_message", "Cancel my order.")
    await step("a", "c2", "run", "", "c1")
    await step("a", "c3", "tool", "in transit", "c2")
    await step("a", "c4", "assistant_message", "It arrives today.", "c2")
    await step("a", "c5", "user_message", "Thanks.")


asyncio.run(main())
