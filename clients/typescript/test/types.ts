// Compiled, not run: both packages are what the client takes.
import type { SupabaseClient } from '@supabase/supabase-js'
import type { Client, Pool } from 'pg'
import { messages, type Database } from '../src/index.js'

declare const pool: Pool, client: Client, supabase: SupabaseClient
export const databases: Database[] = [pool, client, supabase]
export const prompt: Promise<Record<string, unknown>> = messages(pool, '').then((made) => made.prompt)
// @ts-expect-error: not a format
messages(pool, '', { format: 'xml' })
