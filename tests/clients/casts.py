"""What docs/clients.md says that drivers refuse, and with which error. The database is that of the examples."""

import asyncio
import json
from uuid import UUID

import asyncpg
import psycopg
from psycopg.types.json import Json, Jsonb
from sqlalchemy import create_engine, func, select, text
from sqlalchemy.exc import DBAPIError

ANCHOR = UUID("a9ad8365-bc0a-5da2-93e6-e37e99d95d9c")
EMBEDDING = [0.5] * 384
SLICE = "SELECT turn_id FROM graph_slice_turns(%s, %s)"
SEARCH = "SELECT turn_id FROM graph_search_slice(%s, %s::uuid)"

connection = psycopg.connect(autocommit=True)


def psycopg_error(sql, *arguments):
    try:
        connection.execute(sql, arguments).fetchall()
    except psycopg.Error as error:
        return error.sqlstate or type(error).__name__


assert psycopg_error(SLICE, ANCHOR, "focused") is None
assert psycopg_error(SLICE, ANCHOR, Jsonb({"max_nodes": 10})) is None
assert psycopg_error(SLICE, ANCHOR, Json({"max_nodes": 10})) == "42883"
assert psycopg_error(SLICE, ANCHOR, {"max_nodes": 10}) == "ProgrammingError"
assert psycopg_error(SLICE, ANCHOR, None) == "22004"
assert psycopg_error(SEARCH, EMBEDDING, ANCHOR) == "42883"
assert psycopg_error("SELECT graph_verify(%s)", Jsonb({})) == "42883"

# An export that was parsed and written again has other bytes, and verifies.
(export,) = connection.execute("SELECT graph_slice(%s)::text", (ANCHOR,)).fetchone()
(as_jsonb,) = connection.execute("SELECT %s::jsonb::text", (export,)).fetchone()
for again in (json.dumps(json.loads(export)), as_jsonb):
    assert again != export
    assert connection.execute("SELECT valid FROM graph_verify(%s::json)", (again,)).fetchone() == (True,)

# A column of jsonb takes a cast.
connection.execute("CREATE TEMP TABLE kept_slices (slice jsonb)")
connection.execute("INSERT INTO kept_slices VALUES (%s::jsonb)", (export,))
assert psycopg_error("SELECT graph_verify(slice) FROM kept_slices") == "42883"
verified = connection.execute("SELECT v.valid FROM kept_slices, graph_verify(slice::json) AS v").fetchone()
assert verified == (True,)

# A list of str has no type: without the cast its text is the id.
parts = ["a", "-", "b"]
ids = "SELECT graph_turn_id(%s) = graph_turn_id(42), graph_turn_id(VARIADIC {}) = graph_turn_id('a', '-', 'b')"
assert connection.execute(ids.format("%s::text[]"), (42, parts)).fetchone() == (True, True)
assert connection.execute(ids.format("%s"), (42, parts)).fetchone() == (True, False)

engine = create_engine("postgresql+psycopg://", isolation_level="AUTOCOMMIT").connect()


def sqlalchemy_error(statement, **arguments):
    try:
        engine.execute(statement, arguments).all()
    except DBAPIError as error:
        return error.orig.sqlstate


turns = "SELECT turn_id FROM graph_slice_turns(:anchor, {})"
given = {"anchor": ANCHOR, "policy": "focused"}
assert sqlalchemy_error(text(turns.format("CAST(:policy AS slice_policy)")), **given) is None
assert sqlalchemy_error(text(turns.format(":policy::slice_policy")), **given) == "42601"
assert sqlalchemy_error(select(func.graph_slice_turns(ANCHOR, "focused").table_valued("turn_id"))) == "42883"
assert sqlalchemy_error(select(func.graph_search_slice(EMBEDDING, ANCHOR).table_valued("turn_id"))) == "42883"


async def with_asyncpg():
    connection = await asyncpg.connect()
    assert await connection.fetchval("SELECT graph_turn_id($1::bigint) = graph_turn_id(42)", 42)
    assert await connection.fetchval("SELECT graph_turn_id(VARIADIC $1::text[]) = graph_turn_id('a', 'b')", ["a", "b"])
    try:
        await connection.fetch("SELECT turn_id FROM graph_slice_turns($1, $2)", ANCHOR, {"max_nodes": 10})
    except asyncpg.DataError:
        return "refused"
    finally:
        await connection.close()


assert asyncio.run(with_asyncpg()) == "refused"
assert not issubclass(asyncpg.NoData, asyncpg.PostgresError)
