// Threads of Mastra, made and filled by its PostgresStore; the second one writes between.
import { PostgresStore } from '@mastra/pg'

const store = new PostgresStore({
  connectionString: `postgresql://${process.env.PGUSER}@localhost:${process.env.PGPORT}/${process.env.PGDATABASE}` +
    `?host=${encodeURIComponent(process.env.PGHOST)}`
})
await store.init()
const start = new Date('2026-01-05T10:00:00Z')
for (const id of ['a', 'b']) {
  await store.saveThread({
    thread: { id, resourceId: 'u1', title: id, metadata: {}, createdAt: start, updatedAt: start }
  })
}
let count = 0
async function save(threadId, role, ...parts) {
  count += 1
  const message = {
    id: `m${count}`, threadId, resourceId: 'u1', role, type: 'v2', createdAt: new Date(+start + 1000 * count),
    content: { format: 2, parts, content: parts.map(part => part.text ?? '').join('') }
  }
  await store.saveMessages({ messages: [message], format: 'v2' })
}
await save('a', 'user', { type: 'text', text: 'Where is my parcel?' })
await save('b', 'user', { type: 'text', text: 'Cancel my order.' })
await save('a', 'assistant', { type: 'step-start' }, {
  type: 'tool-invocation',
  toolInvocation: { state: 'result', toolCallId: 'c1', toolName: 'track', args: {}, result: 'in transit' }
}, { type: 'text', text: 'It arrives today.' })
await save('a', 'user', { type: 'text', text: 'Thanks.' })
await store.close()
