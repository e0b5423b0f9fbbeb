/** Prompts, records and recall of graph_kernel, over node-postgres or over the `rpc` of supabase-js. */

/** A `Client` or `Pool` of node-postgres. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

/** A client of supabase-js, or `client.schema(…)` where the functions are in another schema than the default. */
export interface Rpc {
  rpc(name: string, args: Record<string, unknown>): PromiseLike<{ data: unknown; error: RpcError | null }>
}

export interface RpcError {
  message: string
  code?: string
  details?: string | null
  hint?: string | null
}

export type Database = Queryable | Rpc

/** The name of a preset, or the parameters of a SlicePolicy. */
export type Policy = string | Record<string, unknown>

export type Format = 'openai' | 'responses' | 'anthropic' | 'plain'

/** The record of a prompt: keep it. As JSON it has the same meaning in any spelling, and as a text also the same bytes. */
export type PromptRecord = string | Record<string, unknown>

export interface PromptOptions {
  policy?: Policy
  /** A SHA-256 of what else is sent, such as model and tools, as 64 lower-case hex digits. */
  context?: string
}

export interface RenderOptions extends PromptOptions {
  format?: Format
  /** Those of `graph_messages_json`. */
  options?: Record<string, unknown>
}

export interface Prompt {
  /** What the provider's call takes beside its model: `{ messages }`, `{ input }` or `{ system, messages }`. */
  prompt: Record<string, unknown>
  record: PromptRecord
}

export interface RecallOptions {
  /** The question's embedding, its words, or both. */
  embedding?: number[]
  text?: string
  policy?: Policy
  anchor?: string
  /** Those of `graph_search`. */
  filter?: Record<string, unknown>
}

export interface RecalledTurn {
  n: number
  turn_id: string
  part: 'anchor' | 'pinned' | 'line' | 'recalled'
  role: string
  content: string | null
  payload: Record<string, unknown> | null
  session_id: string
  tokens: number
  cumulative_tokens: number
  distance: number
  score: number
  seed: string | null
}

export interface Recall {
  turns: RecalledTurn[]
  /** The export of what was recalled, to verify and keep; null where nothing was found. */
  slice: string | Record<string, unknown> | null
}

export interface Why {
  included: boolean
  explanation: string
  [column: string]: unknown
}

/** What the server refused: match `sqlstate` and `word`, never the message. */
export class GraphKernelError extends Error {
  /** The word in DETAIL, such as ANCHOR_NOT_FOUND; null where PostgreSQL itself raised the error. */
  readonly word: string | null
  /** What follows the word, as in `NOT_ADMISSIBLE: bad_mac`. */
  readonly reason: string | null

  constructor(
    message: string,
    readonly sqlstate: string | null,
    detail: string | null,
    readonly hint: string | null,
    cause: unknown,
  ) {
    super(message, { cause })
    this.name = 'GraphKernelError'
    const match = /^([A-Z][A-Z0-9_]{2,})(?:: ([a-z0-9_]+))?$/.exec(detail ?? '')
    this.word = match?.[1] ?? null
    this.reason = match?.[2] ?? null
  }
}

/**
 * The prompt at a turn as a provider takes it, and its record: what is sent is what was recorded. In arguments of calls,
 * where a form has them as JSON and not as text, integers above 2^53 are rounded, as JavaScript reads JSON.
 */
export async function messages(database: Database, anchor: string, options: RenderOptions = {}): Promise<Prompt> {
  const { format = 'openai', options: render = {} } = options
  if ('rpc' in database) {
    const taken = await record(database, anchor, options)
    const prompt = await call(database, 'graph_messages_json', { record: taken, format, options: finite(render) })
    return { prompt: prompt as Record<string, unknown>, record: taken }
  }
  const row = await one(
    database,
    `SELECT r::text AS record, graph_messages_json(r, $4::text, $5::jsonb) AS prompt
       FROM graph_messages_record($1::uuid, $2::slice_policy, $3::text) AS r`,
    [anchor, policyText(options.policy, 'chat'), options.context ?? null, format, JSON.stringify(finite(render))],
  )
  return { prompt: row['prompt'] as Record<string, unknown>, record: row['record'] as string }
}

/** Which turns a model is shown at a turn, in order, with hashes of their texts, signed. */
export async function record(database: Database, anchor: string, options: PromptOptions = {}): Promise<PromptRecord> {
  const { policy = 'chat', context } = options
  if ('rpc' in database) {
    const args = { anchor, policy: finite(policy), ...(context === undefined ? {} : { context }) }
    return (await call(database, 'graph_messages_record', args)) as Record<string, unknown>
  }
  const row = await one(database, 'SELECT graph_messages_record($1::uuid, $2::slice_policy, $3::text)::text AS record', [
    anchor,
    policyText(policy, 'chat'),
    context ?? null,
  ])
  return row['record'] as string
}

/** What was said anywhere that fits a question, with what was said around it, within the policy's budget. */
export async function recall(database: Database, options: RecallOptions): Promise<Recall> {
  const { embedding = null, text = null, policy = 'recall', anchor = null, filter = {} } = options
  let rows: Record<string, unknown>[]
  if ('rpc' in database) {
    const args = { query_embedding: embedding, query_text: text, policy: finite(policy), anchor, filter: finite(filter) }
    rows = await rowsOf(database, 'graph_recall', args)
  } else {
    rows = await all(
      database,
      `SELECT n, turn_id::text AS turn_id, part, role, content, payload, session_id, tokens,
              cumulative_tokens::float8 AS cumulative_tokens, distance, score, seed::text AS seed, slice::text AS slice
         FROM graph_recall($1::real[], $2::text, $3::slice_policy, $4::uuid, $5::jsonb) ORDER BY n`,
      [embedding, text, policyText(policy, 'recall'), anchor, JSON.stringify(finite(filter))],
    )
  }
  const slice = (rows[0]?.['slice'] ?? null) as Recall['slice']
  return { turns: rows.map(({ slice: _, ...turn }) => turn as unknown as RecalledTurn), slice }
}

/** Why a turn is in the slice at an anchor, or is not. */
export async function why(database: Database, anchor: string, turn: string, policy: Policy = 'default'): Promise<Why> {
  if ('rpc' in database) {
    return only(await rowsOf(database, 'graph_why', { anchor, turn, policy: finite(policy) })) as Why
  }
  return (await one(database, 'SELECT * FROM graph_why($1::uuid, $2::uuid, $3::slice_policy)', [
    anchor,
    turn,
    policyText(policy, 'default'),
  ])) as Why
}

function policyText(policy: Policy | undefined, preset: string): string {
  return policy === undefined ? preset : typeof policy === 'string' ? policy : JSON.stringify(finite(policy))
}

/** The same value. A number that is none is null as JSON, and so would be no limit at all. */
function finite<T>(value: T, name = 'a parameter'): T {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new GraphKernelError(`${name} is not a finite number: ${value}`, '22023', null, null, undefined)
  }
  if (typeof value === 'object' && value !== null) {
    for (const [key, nested] of Object.entries(value)) finite(nested, key)
  }
  return value
}

async function all(database: Queryable, text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
  try {
    return (await database.query(text, values)).rows
  } catch (error) {
    // Of the server, not of the connection to it.
    if (!(error instanceof Error) || !('code' in error && 'severity' in error)) throw error
    const { code, detail, hint } = error as Error & { code?: unknown; detail?: unknown; hint?: unknown }
    throw new GraphKernelError(error.message, textOf(code), textOf(detail), textOf(hint), error)
  }
}

async function one(database: Queryable, text: string, values: unknown[]): Promise<Record<string, unknown>> {
  return only(await all(database, text, values))
}

function only(rows: Record<string, unknown>[]): Record<string, unknown> {
  const [row] = rows
  if (row === undefined) throw new GraphKernelError('the server returned no row', null, null, null, undefined)
  return row
}

async function call(database: Rpc, name: string, args: Record<string, unknown>): Promise<unknown> {
  const { data, error } = await database.rpc(name, args)
  if (error === null) return data
  // PostgREST has codes of its own, and what is not of it has none.
  const sqlstate = /^[0-9A-Z]{5}$/.test(error.code ?? '') ? (error.code ?? null) : null
  throw new GraphKernelError(error.message, sqlstate, error.details ?? null, error.hint ?? null, error)
}

async function rowsOf(database: Rpc, name: string, args: Record<string, unknown>): Promise<Record<string, unknown>[]> {
  return ((await call(database, name, args)) ?? []) as Record<string, unknown>[]
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
