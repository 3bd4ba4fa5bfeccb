// Runs the tools that a model asks for with the Responses API of the openai package:
// node tools-openai-responses.mjs URL KEY PROMPT. Prints the last answer.
import OpenAI from 'openai'
import { description, key, model, prompt, run, schema, steps, url } from './shell.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })
const tools = [{ type: 'function', name: 'bash', description, parameters: schema, strict: false }]
const input = [{ role: 'developer', content: 'Use the tools.' }, { role: 'user', content: prompt }]
for (let i = 0; i < steps; i++) {
  const response = await client.responses.stream({ model, input, tools, store: false }).finalResponse()
  input.push(...response.output)
  const calls = response.output.filter((item) => item.type === 'function_call')
  if (!calls.length) {
    console.log(response.output_text)
    break
  }
  for (const call of calls) {
    input.push({ type: 'function_call_output', call_id: call.call_id, output: run(JSON.parse(call.arguments).command) })
  }
}
