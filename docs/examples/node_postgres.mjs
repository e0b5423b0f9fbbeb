// Slices with node-postgres (pg). PGHOST, PGDATABASE and so on name a database that setup.sql has prepared.
import assert from 'node:assert/strict'
import pg from 'pg'

const anchor = 'a9ad8365-bc0a-5da2-93e6-e37e99d95d9c'
const missing = '00000000-0000-4000-8000-00000000dead'

const client = new pg.Client()
await client.connect()

// Rows, joined with their text. The policy is a preset's name or an object.
const { rows: turns } = await client.query(
  `SELECT s.role, t.content_text
     FROM graph_slice_turns($1, $2) AS s
     JOIN memory_turns AS t ON t.id = s.turn_id
    ORDER BY s.selection_order`,
  [anchor, 'focused']
)
assert.equal(turns.length, 28)
assert.equal(turns[0].role, 'assistant')

const { rows: few } = await client.query(
  'SELECT turn_id, priority FROM graph_slice_turns($1, $2)', [anchor, { max_nodes: 10 }]
)
assert.equal(few.length, 10)

// The export as text: pg parses what comes as json, and JSON.stringify writes 1.0 as 1.
const { rows: [{ slice }] } = await client.query('SELECT graph_slice($1)::text AS slice', [anchor])
await client.query('CREATE TEMP TABLE kept_slices (slice json)')
await client.query('INSERT INTO kept_slices VALUES ($1)', [slice])
const { rows: [kept] } = await client.query(
  'SELECT k.slice::text, v.valid, v.reason FROM kept_slices AS k, graph_verify(k.slice) AS v'
)
assert.deepEqual(kept, { slice, valid: true, reason: 'ok' })

// Parsed and written again it verifies too, but its bytes are others.
const again = JSON.stringify(JSON.parse(slice))
assert.notEqual(again, slice)
assert.equal((await client.query('SELECT valid FROM graph_verify($1)', [again])).rows[0].valid, true)

const edited = slice.replace('"role":"user"', '"role":"assistant"')
const { rows: [verdict] } = await client.query('SELECT valid, reason FROM graph_verify($1)', [edited])
assert.deepEqual(verdict, { valid: false, reason: 'digest_mismatch' })

// A question's embedding is an array of numbers from your model; here it is one of the sample's.
const { rows: [{ embedding }] } = await client.query(
  "SELECT embedding FROM questions WHERE question LIKE 'How are invoice numbers%'"
)
const { rows: found } = await client.query(
  'SELECT turn_id, similarity, provenance FROM graph_search_slice($1, $2, limit_count => $3)',
  [embedding, anchor, 3]
)
assert.equal(found.length, 3)
assert.equal(found[0].turn_id, '42cf2e38-23b6-526e-9986-c9360dae1b4d')

// The first row has the provenance. It is an object, and stays what it is on the way back.
const { rows: [{ admissible }] } = await client.query(
  'SELECT graph_is_admissible_result($1) AS admissible', [found[0].provenance]
)
assert.equal(admissible, true)

const { rows: everywhere } = await client.query(
  'SELECT turn_id, similarity FROM graph_search($1, limit_count => $2)', [embedding, 2]
)
assert.equal(everywhere[0].turn_id, found[0].turn_id)

// Match the SQLSTATE and the word in DETAIL.
let failure
try {
  await client.query('SELECT graph_slice($1)', [missing])
} catch (error) {
  failure = { sqlstate: error.code, word: error.detail }
}
assert.deepEqual(failure, { sqlstate: '02000', word: 'ANCHOR_NOT_FOUND' })

await client.end()
