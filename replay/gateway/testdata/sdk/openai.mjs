// A conversation with openai: node openai.mjs chat|responses URL. The server's script has
// four turns: two tool calls, a text, a text that is not streamed, and one that breaks off.
import OpenAI from 'openai'

const [mode, url] = process.argv.slice(2)
const client = new OpenAI({ baseURL: url + '/v1', apiKey: 'key', maxRetries: 0 })
const parameters = { type: 'object', properties: { path: { type: 'string' } } }
const print = (value) => console.log(JSON.stringify(value))
const run = (name, args) => `result of ${name} ${JSON.parse(args).path ?? ''}`

async function chat() {
  const models = []
  for await (const model of client.models.list()) models.push(model.id)
  print(models)

  const tools = ['read', 'list'].map((name) => ({ type: 'function', function: { name, parameters } }))
  const messages = [{ role: 'user', content: 'Read both.' }]
  const request = () => ({ model: 'gpt-5', tools, messages, stream_options: { include_usage: true } })
  const ask = async () => {
    const reasoning = [], text = []
    const stream = client.chat.completions.stream(request())
    stream.on('chunk', (chunk) => {
      const delta = chunk.choices[0]?.delta
      if (delta?.reasoning_content) reasoning.push(delta.reasoning_content)
      if (delta?.content) text.push(delta.content)
    })
    const { choices: [{ message, finish_reason }], usage } = await stream.finalChatCompletion()
    print({ reasoning, text, finish_reason, calls: message.tool_calls, usage })
    return message
  }

  const first = await ask()
  messages.push(first, ...first.tool_calls.map(({ id, function: f }) => ({ role: 'tool', tool_call_id: id, content: run(f.name, f.arguments) })))
  messages.push(await ask(), { role: 'user', content: 'Again.' })
  const { choices: [third], usage } = await client.chat.completions.create({ model: 'gpt-5', messages })
  print({ message: third.message, finish_reason: third.finish_reason, usage })
  await ask()
}

async function responses() {
  const tools = ['read', 'list'].map((name) => ({ type: 'function', name, parameters, strict: false }))
  const ask = async (input, previous_response_id) => {
    const types = {}
    const stream = client.responses.stream({ model: 'gpt-5', tools, input, previous_response_id })
    for await (const event of stream) types[event.type] = (types[event.type] ?? 0) + 1
    const response = await stream.finalResponse()
    print({ types, status: response.status, text: response.output_text, usage: response.usage })
    return response
  }

  const first = await ask('Read both.')
  const outputs = first.output.filter((item) => item.type === 'function_call')
    .map(({ call_id, name, arguments: args }) => ({ type: 'function_call_output', call_id, output: run(name, args) }))
  const second = await ask(outputs, first.id)
  const third = await client.responses.create({ model: 'gpt-5', input: 'Again.', previous_response_id: second.id })
  print({ status: third.status, text: third.output_text, usage: third.usage })
  await ask('Again.')
}

try {
  await { chat, responses }[mode]()
  print('the broken turn looks complete')
} catch (error) {
  print({ type: error.constructor.name, code: error.code, message: error.message })
}
