// Runs the tools that a model asks for with @anthropic-ai/sdk:
// node tools-anthropic.mjs URL KEY PROMPT. Prints the last answer.
import Anthropic from '@anthropic-ai/sdk'
import { description, key, model, prompt, run, schema, steps, url } from './shell.mjs'

const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 })
const tools = [{ name: 'bash', description, input_schema: schema }]
const messages = [{ role: 'user', content: prompt }]
for (let i = 0; i < steps; i++) {
  const stream = client.messages.stream({ model, max_tokens: 4000, thinking: { type: 'adaptive' }, system: 'Use the tools.', tools, messages })
  const answer = await stream.finalMessage()
  messages.push({ role: 'assistant', content: answer.content })
  const calls = answer.content.filter((block) => block.type === 'tool_use')
  if (!calls.length) {
    console.log(answer.content.filter((block) => block.type === 'text').map((block) => block.text).join(''))
    break
  }
  messages.push({ role: 'user', content: calls.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: run(call.input.command) })) })
}
