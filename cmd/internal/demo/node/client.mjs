// The demo's scenario with connect-es 1.x over HTTP/2: the same as client.go.
// Message types are built at run time, from the descriptor set that demo.go writes.
//
//   UNWIRE_DEMO_URL          the server's base URL
//   UNWIRE_DEMO_TOKEN        the bearer token
//   UNWIRE_DEMO_DESCRIPTORS  a file: google.protobuf.FileDescriptorSet
//   NODE_EXTRA_CA_CERTS      what Node is to trust, where the system does not
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { posix } from "node:path";
import { createRegistryFromDescriptors } from "@bufbuild/protobuf";
import { Code, ConnectError, createPromiseClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";

const testdata = new URL("../testdata/", import.meta.url);
const heartbeatMS = 5000;

function environment(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

const say = (line) => process.stdout.write(line + "\n");

// identity makes everything that a server could know the client by from the token.
function identity(token) {
  const derive = (use, n) => createHash("sha256").update(`unwire demo\n${token}\n${use}\n${n}`).digest();
  let n = 0;
  const uuid = () => {
    const b = derive("uuid", ++n).subarray(0, 16);
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    return b.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  };
  return { uuid, machine: derive("machine", 0).toString("hex") };
}

// checksumTime: see RESEARCH.md#checksum.
function checksumTime(nowMS) {
  const t = Math.floor(nowMS / 1e6);
  let key = 165;
  const bytes = [t >> 40, t >> 32, t >> 24, t >> 16, t >> 8, t].map((b, i) => (key = ((b & 255) ^ key) + i & 255));
  return Buffer.from(bytes).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}

// A queue is an async iterable that is filled from outside: the client's side
// of the stream.
function queue() {
  const items = [];
  let wake = () => {};
  let closed = false;
  return {
    push(item) { items.push(item); wake(); },
    close() { closed = true; wake(); },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (items.length > 0) yield items.shift();
        if (closed) return;
        await new Promise((resolve) => { wake = resolve; });
      }
    },
  };
}

class Client {
  constructor(url, token, registry, scenario) {
    this.registry = registry;
    this.scenario = scenario;
    this.id = identity(token);
    this.session = this.id.uuid();
    const interceptor = (next) => (req) => {
      for (const [name, value] of Object.entries(scenario.headers)) req.header.set(name, value);
      req.header.set("authorization", `Bearer ${token}`);
      req.header.set("x-request-id", this.id.uuid());
      req.header.set("x-session-id", this.session);
      req.header.set("x-cursor-checksum", checksumTime(Date.now()) + this.id.machine);
      return next(req);
    };
    const options = { baseUrl: url, httpVersion: "2", interceptors: [interceptor] };
    this.binary = createConnectTransport({ ...options, useBinaryFormat: true });
    this.json = createConnectTransport({ ...options, useBinaryFormat: false });
  }

  service(name, transport) {
    const type = this.registry.findService(name);
    if (!type) throw new Error(`the descriptor set has no service ${name}`);
    return createPromiseClient(type, transport);
  }

  // models asks for the usable models: one unary call, in JSON.
  async models() {
    const { models } = await this.service("agent.v1.AgentService", this.json).getUsableModels({});
    say(`models  ${models.map((m) => m.modelId).join(", ")}`);
  }

  // turn asks, answers what the server asks back, and listens to the end.
  async turn() {
    const { prompt, model, request_context } = this.scenario;
    const messageType = this.registry.findMessage("agent.v1.AgentClientMessage");
    const up = queue();
    const send = (form) => up.push(messageType.fromJson(form));
    say(`agent   prompt: ${prompt}`);
    send({
      runRequest: {
        conversationState: {},
        action: {
          userMessageAction: {
            userMessage: { text: prompt, messageId: this.id.uuid(), selectedContext: {} },
            requestContext: request_context,
          },
        },
        modelDetails: model,
        mcpTools: {},
        conversationId: this.id.uuid(),
      },
    });
    send({ clientHeartbeat: {} });
    const beat = setInterval(() => send({ clientHeartbeat: {} }), heartbeatMS);
    const state = { thinking: "", answer: "", ended: false, frames: 0, blobs: new Map() };
    try {
      for await (const m of this.service("agent.v1.AgentService", this.binary).run(up)) {
        state.frames++;
        await this.take(m.message, state, send, up);
      }
    } finally {
      clearInterval(beat);
      up.close();
    }
    if (!state.ended) throw new Error("the stream ended before the answer did");
    say(`agent   the answer ended after ${state.frames} frames`);
  }

  // take does what a server message asks for.
  async take({ case: kind, value }, state, send, up) {
    if (kind === "interactionUpdate") this.update(value.message, state, up);
    else if (kind === "execServerMessage") await this.execute(value, send);
    else if (kind === "kvServerMessage") this.blob(value, state, send);
  }

  update({ case: kind, value }, state, up) {
    switch (kind) {
      case "thinkingDelta":
        state.thinking += value.text;
        break;
      case "thinkingCompleted":
        say(`agent   thinking: ${state.thinking}`);
        state.thinking = "";
        break;
      case "textDelta":
        state.answer += value.text;
        break;
      case "turnEnded":
        state.ended = true;
        say(`agent   answer: ${state.answer}`);
        up.close();
    }
  }

  // execute answers a tool call and closes it, as the CLI does.
  async execute({ id, execId, message }, send) {
    if (message.case !== "readArgs") {
      say(`agent   tool call ${id}: not supported by this client`);
      send({ execClientControlMessage: { throw: { id, error: "the demo's client only reads files" } } });
      return;
    }
    const readResult = await this.read(message.value.path);
    send({ execClientMessage: { id, execId, readResult } });
    send({ execClientControlMessage: { streamClose: { id } } });
  }

  async read(path) {
    const { workspace } = this.scenario;
    const relative = path.startsWith(workspace) ? path.slice(workspace.length) : path;
    // Made absolute before it is cleaned, so that no path leads out of the workspace.
    const inside = posix.normalize("/" + relative);
    let data;
    try {
      data = await readFile(new URL("shop" + inside, testdata));
    } catch {
      say(`agent   tool call: read ${path}: there is no such file`);
      return { fileNotFound: { path } };
    }
    const content = data.toString("utf8");
    const totalLines = content.split("\n").length - 1;
    say(`agent   tool call: read ${path}: ${totalLines} lines`);
    return { success: { path, content, totalLines, fileSize: data.length } };
  }

  // blob stores a blob for the server, or gives one back.
  blob({ id, message }, state, send) {
    const key = Buffer.from(message.value.blobId).toString("hex");
    if (message.case === "setBlobArgs") {
      state.blobs.set(key, message.value.blobData);
      say(`agent   stored ${message.value.blobData.length} bytes for the server under the key ${key.slice(0, 8)}…`);
      send({ kvClientMessage: { id, setBlobResult: {} } });
      return;
    }
    const data = state.blobs.get(key);
    say(`agent   returned ${data?.length ?? 0} stored bytes to the server`);
    const getBlobResult = data ? { blobData: Buffer.from(data).toString("base64") } : {};
    send({ kvClientMessage: { id, getBlobResult } });
  }

  // chat asks the older endpoint, whose stream ends in an error.
  async chat() {
    const request = this.registry.findMessage("aiserver.v1.StreamUnifiedChatRequest").fromJson({
      conversation: [
        { text: this.scenario.chat_before, type: 1, bubbleId: this.id.uuid() },
        { text: this.scenario.chat_reply, type: 2, bubbleId: this.id.uuid() },
        { text: this.scenario.chat_prompt, type: 1, bubbleId: this.id.uuid() },
      ],
      modelDetails: { modelName: "composer-1" },
      isChat: true,
      conversationId: this.id.uuid(),
    });
    say(`chat    prompt: ${this.scenario.chat_prompt}`);
    let said = "";
    let refusal;
    try {
      for await (const m of this.service("aiserver.v1.ChatService", this.binary).streamUnifiedChat(request)) said += m.text;
    } catch (err) {
      if (!(err instanceof ConnectError)) throw err;
      refusal = err;
    }
    if (said) say(`chat    answer: ${said.trim()}…`);
    say(refusal ? `chat    ended with ${codeName(refusal.code)}: ${refusal.rawMessage}${this.details(refusal)}` : "chat    ended");
  }

  details(refusal) {
    const type = this.registry.findMessage("aiserver.v1.ErrorDetails");
    return refusal.findDetails(type).map((d) => {
      const name = type.fields.findJsonName("error").T.findNumber(d.error)?.name ?? d.error;
      return ` (${[name, d.details?.title, d.details?.detail].filter(Boolean).join("; ")})`;
    }).join("");
  }
}

const codeName = (code) => Code[code].replace(/(?!^)[A-Z]/g, "_$&").toLowerCase();

try {
  const registry = createRegistryFromDescriptors(await readFile(environment("UNWIRE_DEMO_DESCRIPTORS")));
  const scenario = JSON.parse(await readFile(new URL("scenario.json", testdata), "utf8"));
  const client = new Client(environment("UNWIRE_DEMO_URL"), environment("UNWIRE_DEMO_TOKEN"), registry, scenario);
  await client.models();
  await client.turn();
  await client.chat();
} catch (err) {
  process.stderr.write(`demo client: ${err instanceof Error ? err.message : err}\n`);
  process.exitCode = 1;
}
