// Package proto contains the reconstructed .proto files of the subject's API, the evidence for each of their
// elements, and a profile of the service.
//
// The files are data: they describe agent.v1 and aiserver.v1 in a form that any protobuf compiler reads. None of
// it was published by the owner of the API, and none of it has been tested against the live API.
//
// Profile describes the service apart from its messages, including the checksum that its clients send in a
// header. The commands, replay/standin and replay/agent use this package; the other packages receive a profile
// as a value:
//
//	data, err := proto.Files.ReadFile("agent/v1/agent.proto")
//
// Source: RESEARCH.md#agent-v1, RESEARCH.md#aiserver-v1
package proto

import "embed"

// Files contains every .proto file by its import path (agent/v1/agent.proto), and evidence.jsonl. The latter has
// one JSON object per line, for each field, enum value and method, and for each message and service of which
// only the name is documented.
//
// Shape: {"element":"agent.v1.AgentRunRequest.mcp_tools","kind":"field","number":4,"sources":["ext","seed 004"],"certainty":"reported","note":"…"}
//
// kind is one of field, value, method, message, service. certainty is one of reported (a source states it),
// inferred (it follows from statements of sources), assumed (no source states it). number occurs for fields and
// values only.
//
//go:embed agent/v1/*.proto aiserver/v1/*.proto evidence.jsonl
var Files embed.FS

// AgentPackage is the protobuf package of the agent's service and its messages.
const AgentPackage = "agent.v1"
