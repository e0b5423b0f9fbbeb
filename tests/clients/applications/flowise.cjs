// Chats of Flowise: its migrations make the table, TypeORM writes rows by its entity.
require('reflect-metadata')
const fs = require('fs')
const path = require('path')
const { DataSource } = require('typeorm')

const dist = path.join(process.env.PACKAGES, 'flowise/dist/database')
const { ChatMessage } = require(path.join(dist, 'entities/ChatMessage.js'))
const { Execution } = require(path.join(dist, 'entities/Execution.js'))
const { ChatFlow } = require(path.join(dist, 'entities/ChatFlow.js'))

// All migrations but those that load the whole application; none of them is about chats.
const folder = path.join(dist, 'migrations/postgres')
const migrations = fs.readdirSync(folder)
  .filter(name => /^\d+.*\.js$/.test(name))
  .filter(name => !fs.readFileSync(path.join(folder, name), 'utf8').includes('require("..'))
  .flatMap(name => Object.values(require(path.join(folder, name))))

async function main() {
  const source = new DataSource({
    type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: process.env.PGUSER,
    database: process.env.PGDATABASE, entities: [ChatMessage, Execution, ChatFlow], migrations
  })
  await source.initialize()
  await source.runMigrations({ transaction: 'each' })
  const messages = source.getRepository(ChatMessage)
  let count = 0
  const save = (sessionId, role, content) => messages.save(messages.create({
    sessionId, role, content, chatId: sessionId, chatType: 'INTERNAL',
    chatflowid: '00000000-0000-4000-8000-00000000000f', createdDate: new Date(Date.UTC(2026, 0, 5, 10, 0, count++))
  }))
  await save('a', 'userMessage', 'Where is my parcel?')
  await save('b', 'userMessage', 'Cancel my order.')
  await save('a', 'apiMessage', 'It arrives today.')
  await save('a', 'userMessage', 'Thanks.')
  await source.destroy()
}

main()
