// Package proto holds the reconstructed .proto files of the subject's API and
// the evidence for each of their elements.
//
// The files are data: they say what is believed of agent.v1 and aiserver.v1, in
// a form that any protobuf compiler reads. Nothing here was published by the
// owner of the API, and nothing was checked against the live API.
//
// The profile is what is known of that service beyond its messages, with the checksum
// that its clients send in a header.
//
// Source: RESEARCH.md#agent-v1, RESEARCH.md#aiserver-v1
package proto

import "embed"

// Files holds every .proto file below the import root, so that a path in it is
// what an import statement says (agent/v1/agent.proto), and evidence.jsonl: one
// JSON object a line for each field, enum value and method, and for each message
// and service of which only the name is known.
//
// Shape: {"element":"agent.v1.AgentRunRequest.mcp_tools","kind":"field","number":4,"sources":["ext","seed 004"],"certainty":"reported","note":"…"}
// with kind one of field, value, method, message, service; certainty one of
// reported (a source states it), inferred (it follows from what sources state),
// assumed (stated nowhere); number on fields and values only.
//
//go:embed agent/v1/*.proto aiserver/v1/*.proto evidence.jsonl
var Files embed.FS

// AgentPackage is the package of the agent's service and of its messages.
const AgentPackage = "agent.v1"
