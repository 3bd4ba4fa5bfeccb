// Runs the tools that a model asks for with @langchain/openai:
// node tools-langchain.mjs URL KEY PROMPT. Prints the last answer.
import { HumanMessage, SystemMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { description, key, model, prompt, run, schema, steps, url } from './shell.mjs'

const bash = tool(({ command }) => run(command), { name: 'bash', description, schema })
const chat = new ChatOpenAI({ model, apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` } }).bindTools([bash])
const messages = [new SystemMessage('Use the tools.'), new HumanMessage(prompt)]
for (let i = 0; i < steps; i++) {
  let answer
  for await (const chunk of await chat.stream(messages)) answer = answer ? answer.concat(chunk) : chunk
  messages.push(answer)
  if (!answer.tool_calls.length) {
    console.log(answer.content)
    break
  }
  for (const call of answer.tool_calls) messages.push(await bash.invoke(call))
}
