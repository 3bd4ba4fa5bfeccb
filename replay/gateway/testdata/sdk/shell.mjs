// What the scripts tools-*.mjs share: a tool that runs commands, and where the server is.
import { execFileSync } from 'node:child_process'

export const [url, key, prompt] = process.argv.slice(2)
export const model = 'composer-1'
export const description = 'Runs a shell command and returns its output.'
export const schema = {
  type: 'object',
  properties: { command: { type: 'string', description: 'The command' } },
  required: ['command'],
  additionalProperties: false,
}

// run runs the tool. A failure is a result like any other.
export function run(command) {
  try {
    return execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim()
  } catch (error) {
    return `failed: ${error.message}`
  }
}

// steps bounds the loops over requests.
export const steps = 10
