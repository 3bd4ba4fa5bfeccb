// Runs the tools that a model asks for with Chat Completions of the openai package:
// node tools-openai-chat.mjs URL KEY PROMPT. Prints the last answer.
import OpenAI from 'openai'
import { description, key, model, prompt, run, schema, steps, url } from './shell.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })
const tools = [{ type: 'function', function: { name: 'bash', description, parameters: schema } }]
const messages = [{ role: 'system', content: 'Use the tools.' }, { role: 'user', content: prompt }]
for (let i = 0; i < steps; i++) {
  const stream = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } })
  const message = await stream.finalMessage()
  messages.push(message)
  if (!message.tool_calls?.length) {
    console.log(message.content)
    break
  }
  for (const call of message.tool_calls) {
    messages.push({ role: 'tool', tool_call_id: call.id, content: run(JSON.parse(call.function.arguments).command) })
  }
}
