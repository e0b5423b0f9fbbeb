// What docs/clients.md says of graph_turn_id with a parameter. The database is that of the examples.
import assert from 'node:assert/strict'
import pg from 'pg'

const client = new pg.Client()
await client.connect()
const id = async (call, value) => (await client.query(`SELECT ${call} AS id`, [value])).rows[0].id

const number = (await client.query('SELECT graph_turn_id(42) AS id')).rows[0].id
const parts = (await client.query("SELECT graph_turn_id('a', '-', 'b') AS id")).rows[0].id
assert.equal(await id('graph_turn_id($1::bigint)', 42), number)
assert.equal(await id('graph_turn_id(VARIADIC $1::text[])', ['a', '-', 'b']), parts)
// Without a type, a number is its text, which has the same id; an array is the text {a,-,b}, which has another one.
assert.equal(await id('graph_turn_id($1)', 42), number)
assert.notEqual(await id('graph_turn_id(VARIADIC $1)', ['a', '-', 'b']), parts)
await client.end()
