// The client over node-postgres and over supabase-js, which asks a stand-in for the RPC of PostgREST. PG* name a
// database with the sample and its embeddings. node-postgres, supabase-js and the built client are where this file is.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createClient } from '@supabase/supabase-js'
import pg from 'pg'
import { GraphKernelError, messages, recall, record, why } from './dist/index.js'

const ANCHOR = 'a9ad8365-bc0a-5da2-93e6-e37e99d95d9c'
const pool = new pg.Pool()

// What PostgREST makes of a call: arguments by name, as the function declares their types.
async function rpc(name, body) {
  const { rows } = await pool.query(
    `SELECT p.proretset, coalesce(p.proargnames, '{}') AS names,
            ARRAY(SELECT format_type(t, NULL) FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) AS t) AS types
       FROM pg_proc AS p WHERE p.proname = $1 AND p.pronamespace = 'public'::regnamespace`,
    [name],
  )
  const [found] = rows
  const given = Object.keys(JSON.parse(body))
  const columns = given.map((key) => `"${key}" ${found.types[found.names.indexOf(key)]}`)
  const values = given.map((key) => `"${key}" := a."${key}"`)
  const answer = found.proretset ? "coalesce(json_agg(r), '[]')" : 'to_json(r)'
  const query = `SELECT ${answer}::text AS answer FROM json_to_record($1::json) AS a (${columns}), ${name}(${values}) AS r`
  return (await pool.query(query, [body])).rows[0].answer
}
const server = createServer(async (request, response) => {
  let body = ''
  for await (const part of request) body += part
  response.setHeader('content-type', 'application/json')
  try {
    response.end(await rpc(request.url.split('/').pop(), body))
  } catch ({ code, message, detail, hint }) {
    response.statusCode = 400
    response.end(JSON.stringify({ code, message, details: detail ?? null, hint: hint ?? null }))
  }
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
// Node 20 has no WebSocket, which is not used here.
const realtime = { transport: class {} }
const supabase = createClient(`http://127.0.0.1:${server.address().port}`, 'key', { realtime })

const question = (await pool.query("SELECT embedding FROM questions WHERE question LIKE 'How are invoice%'")).rows[0]
const answers = []
for (const database of [pool, supabase]) {
  const policy = { preset: 'chat', max_tokens: 600 }
  const taken = await messages(database, ANCHOR, { policy, format: 'anthropic', context: 'ab'.repeat(32) })
  assert.equal(taken.prompt.messages.at(-1).role, 'user') // the results of the last call
  const text = typeof taken.record === 'string' ? taken.record : JSON.stringify(taken.record)
  const verdict = await pool.query('SELECT valid, reason FROM graph_verify($1::json)', [text])
  assert.deepEqual(verdict.rows, [{ valid: true, reason: 'ok' }])
  const kept = await record(database, ANCHOR, { policy, context: 'ab'.repeat(32) })
  assert.deepEqual(typeof kept === 'string' ? JSON.parse(kept) : kept, JSON.parse(text))

  const found = await recall(database, { embedding: question.embedding, policy: { preset: 'recall', max_tokens: 500 } })
  assert.ok(found.turns.length > 1 && found.turns.at(-1).part === 'anchor')
  assert.ok(found.turns.at(-1).cumulative_tokens <= 500 && !('slice' in found.turns[0]))
  const slice = typeof found.slice === 'string' ? found.slice : JSON.stringify(found.slice)
  assert.ok((await pool.query('SELECT valid FROM graph_verify($1::json)', [slice])).rows[0].valid)

  const because = await why(database, ANCHOR, ANCHOR, 'focused')
  assert.equal(because.included, true)

  for (const [given, sqlstate, word] of [
    [() => record(database, '00000000-0000-4000-8000-00000000dead'), '02000', 'ANCHOR_NOT_FOUND'],
    [() => record(database, ANCHOR, { policy: { max_nodes: 0 } }), '22023', 'INVALID_POLICY'],
  ]) {
    await assert.rejects(given, (error) => {
      assert.ok(error instanceof GraphKernelError)
      assert.deepEqual([error.sqlstate, error.word], [sqlstate, word])
      return true
    })
  }
  // What JSON has no number for is not sent: as null it would be no limit.
  for (const given of [
    () => record(database, ANCHOR, { policy: { preset: 'chat', max_tokens: NaN } }),
    () => recall(database, { text: 'x', policy: { edge_weights: { reply: Infinity } } }),
    () => recall(database, { text: 'x', filter: { from: NaN } }),
    () => why(database, ANCHOR, ANCHOR, { max_nodes: -Infinity }),
  ]) {
    await assert.rejects(given, { name: 'GraphKernelError', sqlstate: '22023', message: /not a finite number/ })
  }
  const turns = found.turns.map(({ turn_id, content }) => [turn_id, content])
  answers.push({ prompt: taken.prompt, record: JSON.parse(text), turns, because })
}
// The same, whichever way it was asked.
assert.deepEqual(answers[0], answers[1])
server.close()
await pool.end()

// Where there is no server, nothing was refused by one.
const nobody = new pg.Pool({ host: '127.0.0.1', port: 1 })
await assert.rejects(record(nobody, ANCHOR), (error) => !(error instanceof GraphKernelError))
const failing = (code) => ({ rpc: async () => ({ data: null, error: { message: 'no', code } }) })
for (const [code, sqlstate] of [['', null], ['PGRST202', null], [undefined, null], ['22023', '22023']]) {
  await assert.rejects(record(failing(code), ANCHOR), { name: 'GraphKernelError', sqlstate })
}
const empty = { rpc: async () => ({ data: null, error: null }) }
assert.deepEqual(await recall(empty, { text: 'x' }), { turns: [], slice: null })
await assert.rejects(why(empty, ANCHOR, ANCHOR), { name: 'GraphKernelError', message: /no row/ })
