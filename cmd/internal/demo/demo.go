// Package demo holds the clients of `unwire demo`: real Connect clients, one in
// Go and one on Node (in the folder node), that play the same scenario: ask for
// the models, hold one turn of a conversation over a bidirectional stream, and
// ask an older endpoint that ends in an error.
//
// What both say is in testdata, a folder that the go tool leaves alone: the
// scenario, and the workspace whose file the model wants to read.
//
// The Go client has a file for what its turn answers to the server, one for its
// messages, and one for its transport; fallback is how it splits the stream into
// calls where there is no HTTP/2. The clients know no captures: the demo command runs
// them through a proxy.
package demo

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	definitions "unwire/proto"
	"unwire/schema"
)

//go:embed testdata/scenario.json testdata/shop
var files embed.FS

// A scenario is the conversation that the demo's clients play: questions, texts and headers.
type scenario struct {
	// Prompt is the question on the bidirectional stream.
	Prompt string `json:"prompt"`

	// ChatBefore is the first message of the conversation with the older chat endpoint.
	ChatBefore string `json:"chat_before"`

	// ChatReply is the endpoint's answer to ChatBefore, which the request repeats.
	ChatReply string `json:"chat_reply"`

	// ChatPrompt is the question to the older chat endpoint.
	ChatPrompt string `json:"chat_prompt"`

	// Model is the model description in requests, as JSON.
	Model json.RawMessage `json:"model"`

	// Workspace is the path of the made-up folder whose files the model reads.
	Workspace string `json:"workspace"`

	// RequestContext is the description of the client's environment in requests, as JSON.
	RequestContext json.RawMessage `json:"request_context"`

	// Headers are the HTTP headers of every request.
	Headers map[string]string `json:"headers"`
}

// loadScenario returns the scenario in testdata/scenario.json.
func loadScenario() (*scenario, error) {
	data, err := files.ReadFile("testdata/scenario.json")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	sc := &scenario{}
	if err := json.Unmarshal(data, sc); err != nil {
		return nil, fmt.Errorf("demo: scenario.json cannot be read: %w", err)
	}
	return sc, nil
}

// workspaceFile returns the content of a file in the scenario's workspace. The name may include the
// workspace's path.
func (sc *scenario) workspaceFile(name string) ([]byte, error) {
	name = path.Clean(strings.TrimPrefix(strings.TrimPrefix(name, sc.Workspace), "/"))
	return fs.ReadFile(files, "testdata/shop/"+name)
}

// An identity generates the identifiers that a real client would send, such as machine and session ids.
// All are derived from the token, so that they are reproducible.
type identity struct {
	// token is the bearer token.
	token string

	// n is the number of UUIDs generated so far.
	n uint64
}

// derive returns a hash of the token, a purpose such as "uuid", and a number.
func (id *identity) derive(use string, n uint64) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "unwire demo\n%s\n%s\n%d", id.token, use, n))
}

// uuid returns the next generated UUID.
func (id *identity) uuid() string {
	id.n++
	b := id.derive("uuid", id.n)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// headers sets the HTTP headers that every request of the client has. nowMS is the time in milliseconds
// since 1970.
func (id *identity) headers(h http.Header, sc *scenario, session string, nowMS int64) {
	for name, value := range sc.Headers {
		h.Set(name, value)
	}
	h.Set("authorization", "Bearer "+id.token)
	h.Set("x-request-id", id.uuid())
	h.Set("x-session-id", session)
	machine := id.derive("machine", 0)
	h.Set("x-cursor-checksum", checksumTime(nowMS)+hex.EncodeToString(machine[:]))
}

// checksumTime returns the first part of the header x-cursor-checksum: the time nowMS (milliseconds since
// 1970) in units of 1,000,000 ms, about 17 minutes, lightly scrambled and in base64. The original is
// JavaScript, whose shifts wrap at 32 bits, so two of the six bytes repeat others.
//
// Source: RESEARCH.md#checksum
func checksumTime(nowMS int64) string {
	var be [4]byte
	binary.BigEndian.PutUint32(be[:], uint32(nowMS/1_000_000))
	b := []byte{be[2], be[3], be[0], be[1], be[2], be[3]}
	key := byte(165)
	for i := range b {
		b[i] = (b[i] ^ key) + byte(i)
		key = b[i]
	}
	return base64.URLEncoding.EncodeToString(b)
}

// descriptorSet returns the built-in definitions as a serialized google.protobuf.FileDescriptorSet with
// all imports, each file after those that it imports. The Node client builds its messages from it.
func descriptorSet() ([]byte, error) {
	s, err := schema.Load(context.Background(), definitions.Files)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	set, seen := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	var add func(fd protoreflect.FileDescriptor)
	add = func(fd protoreflect.FileDescriptor) {
		if seen[fd.Path()] {
			return
		}
		seen[fd.Path()] = true
		for i := range fd.Imports().Len() {
			add(fd.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
	}
	for _, fd := range s.Files {
		add(fd)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return data, nil
}
