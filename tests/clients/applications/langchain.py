"""Histories of langchain-postgres; the second one writes between."""

from uuid import UUID

import psycopg
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_postgres import PostgresChatMessageHistory

connection = psycopg.connect()
PostgresChatMessageHistory.create_tables(connection, "chat_history")
first, second = (
    PostgresChatMessageHistory("chat_history", str(UUID(int=number)), sync_connection=connection) for number in (1, 2)
)
first.add_messages([HumanMessage("Where is my parcel?")])
second.add_messages([HumanMessage("Cancel my order.")])
first.add_messages(
    [
        AIMessage("", tool_calls=[{"name": "track", "args": {}, "id": "c1"}]),
        ToolMessage("in transit", tool_call_id="c1"),
        AIMessage([{"type": "text", "text": "It arrives today."}]),
    ]
)
first.add_messages([HumanMessage("Thanks.")])
connection.commit()
