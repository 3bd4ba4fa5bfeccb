// A conversation with @anthropic-ai/sdk: node anthropic.mjs URL. The server's script has
// three turns: two tool calls, a text, and one that breaks off.
import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: process.argv[2], apiKey: 'key', maxRetries: 0 })
const tools = [
  { name: 'read', input_schema: { type: 'object', properties: { path: { type: 'string' } } } },
  { name: 'list', input_schema: { type: 'object' } },
]
const messages = [{ role: 'user', content: 'Read both.' }]
const ask = () => client.messages.stream({ model: 'default', max_tokens: 1000, thinking: { type: 'adaptive' }, tools, messages })

const events = []
const first = await ask().on('text', (delta) => events.push(delta)).on('thinking', (delta) => events.push(delta)).finalMessage()
console.log(JSON.stringify({ events, stop: first.stop_reason, content: first.content }))

messages.push({ role: 'assistant', content: first.content })
messages.push({
  role: 'user',
  content: first.content.filter((block) => block.type === 'tool_use')
    .map((block) => ({ type: 'tool_result', tool_use_id: block.id, content: `result of ${block.name} ${block.input.path ?? ''}` })),
})
const second = await ask().finalMessage()
console.log(JSON.stringify({ stop: second.stop_reason, content: second.content, usage: second.usage }))

try {
  await ask().finalMessage()
  console.log('the broken turn looks complete')
} catch (error) {
  console.log(JSON.stringify({ type: error.constructor.name, error: error.error }))
}
const models = []
for await (const model of client.models.list({ limit: 1 })) models.push(model.id)
console.log(JSON.stringify(models))
try {
  await client.messages.countTokens({ model: 'default', messages })
} catch (error) {
  console.log(JSON.stringify({ type: error.constructor.name, status: error.status }))
}
