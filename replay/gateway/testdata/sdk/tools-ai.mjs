// Runs the tools that a model asks for with the ai package and @ai-sdk/openai-compatible:
// node tools-ai.mjs URL KEY PROMPT. Prints the last answer.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { description, key, model, prompt, run, schema, steps, url } from './shell.mjs'

const provider = createOpenAICompatible({ name: 'unwire', baseURL: `${url}/v1`, apiKey: key, includeUsage: true })
const result = streamText({
  model: provider(model),
  system: 'Use the tools.',
  prompt,
  maxRetries: 0,
  stopWhen: stepCountIs(steps),
  tools: { bash: tool({ description, inputSchema: jsonSchema(schema), execute: ({ command }) => run(command) }) },
  onError: ({ error }) => { throw error },
})
console.log(await result.text)
