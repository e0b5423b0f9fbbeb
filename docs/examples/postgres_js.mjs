// Slices with postgres.js. PGHOST, PGDATABASE and so on name a database that setup.sql has prepared.
import assert from 'node:assert/strict'
import postgres from 'postgres'

const anchor = 'a9ad8365-bc0a-5da2-93e6-e37e99d95d9c'

const sql = postgres({ host: process.env.PGHOST })
const turns = await sql`SELECT turn_id, role FROM graph_slice_turns(${anchor}, ${'focused'})`
assert.equal(turns.length, 28)

const [{ slice }] = await sql`SELECT graph_slice(${anchor})::text AS slice`
const [{ valid }] = await sql`SELECT valid FROM graph_verify(${slice}::text::json)`
assert.equal(valid, true)

await sql.end()
