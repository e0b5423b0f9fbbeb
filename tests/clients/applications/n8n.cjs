// A session of n8n's chat hub: its migrations make the tables of the hub; rows are written as its repository writes them.
// What the migrations refer to but the hub does not need, tables of other parts, is made here with their keys alone.
const Module = require('module')
const path = require('path')

// The migrations take one class of n8n-workflow, an error; the package has a hundred megabytes.
const load = Module._load
Module._load = (name, ...rest) => (name === 'n8n-workflow' ? { UnexpectedError: Error } : load(name, ...rest))

const { DataSource } = require('@n8n/typeorm')
const dist = path.join(process.env.PACKAGES, 'n8n-db/dist')
const { createSchemaBuilder } = require(path.join(dist, 'migrations/dsl/index.js'))
const migrations = [
  '1760019379982-CreateChatHubTables', '1760965142113-DropUnusedChatHubColumns',
  '1761773155024-AddAttachmentsToChatHubMessages', '1766068346315-AddChatMessageIndices'
]

const id = number => `00000000-0000-4000-8000-0000000000${number}`

async function main() {
  const source = new DataSource({
    type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: process.env.PGUSER,
    database: process.env.PGDATABASE
  })
  await source.initialize()
  const queryRunner = source.createQueryRunner()
  await queryRunner.query('CREATE TABLE "user" (id uuid PRIMARY KEY)')
  await queryRunner.query('CREATE TABLE credentials_entity (id varchar(36) PRIMARY KEY)')
  await queryRunner.query('CREATE TABLE workflow_entity (id varchar(36) PRIMARY KEY)')
  await queryRunner.query('CREATE TABLE execution_entity (id integer PRIMARY KEY)')
  const escape = { columnName: name => `"${name}"`, tableName: name => `"${name}"`, indexName: name => `"${name}"` }
  for (const name of migrations) {
    const [migration] = Object.values(require(path.join(dist, 'migrations/common', `${name}.js`)))
    await new migration().up({
      schemaBuilder: createSchemaBuilder('', queryRunner), queryRunner, escape, tablePrefix: '',
      isPostgres: true, isSqlite: false, dbType: 'postgresdb', runQuery: (sql, values) => queryRunner.query(sql, values)
    })
  }
  await queryRunner.query('INSERT INTO "user" VALUES ($1)', [id('0a')])
  for (const session of ['0b', '0c']) {
    await queryRunner.query('INSERT INTO chat_hub_sessions (id, title, "ownerId", "lastMessageAt") VALUES ($1, $2, $3, now())',
      [id(session), session, id('0a')])
  }
  let count = 0
  const save = (number, session, type, content, previous = null, retryOf = null) => queryRunner.query(
    `INSERT INTO chat_hub_messages (id, "sessionId", "previousMessageId", "retryOfMessageId", type, name, content,
       status, "createdAt") VALUES ($1, $2, $3, $4, $5, $5, $6, 'success', $7)`,
    [id(number), id(session), previous && id(previous), retryOf && id(retryOf), type, content,
      new Date(Date.UTC(2026, 0, 5, 10, 0, count++))]
  )
  await save('c1', '0b', 'human', 'Where is my parcel?')
  await save('d1', '0c', 'human', 'Cancel my order.')
  await save('c2', '0b', 'ai', 'I do not know.', 'c1')
  await save('c3', '0b', 'ai', 'It arrives today.', 'c1', 'c2')
  await save('c4', '0b', 'human', 'Thanks.', 'c3')
  await source.destroy()
}

main()
