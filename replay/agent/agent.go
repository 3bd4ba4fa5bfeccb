// Package agent is a client of the agent's API, whose conversation is one long stream in
// both directions on which the server asks the client to run tools.
//
//	c, err := agent.New(ctx, agent.Options{URL: u, Profile: proto.Profile(), Token: token})
//	s, err := c.Run(ctx, "", request)
//	defer s.Close()
//	for {
//		event, err := s.Next(ctx) // io.EOF after turn.Ended
//		if calling, ok := event.(turn.Calling); ok {
//			err = s.Answer(turn.Result{CallID: calling.Call.ID, Parts: …})
//		}
//	}
//
// A Client knows the server; a Stream is one turn. Between a call and its result a stream may wait
// for minutes. It sends heartbeats and answers the server's requests (stored blobs, the context of
// the request, questions to the user), whether or not the caller is in Next. Events are queued up
// to a limit; beyond it, the stream stops reading.
//
// Tools are announced only in AgentRunRequest.mcp_tools, because a server that gets them in two
// places is reported to hang; seed 004 saw that field on the wire. The system prompt goes into
// custom_system_prompt. The messages before the user's last one become the conversation's state:
// root_prompt_messages_json is what the model reads, turns is what is displayed. Both contain the
// names of blobs, which the server requests over the stream. If a transcript ends with results of
// tools, all of it is sent as state, with a resume_action. None of this was verified on the live
// service.
//
// The package is used by replay/gateway and by the serve command.
//
// Source: RESEARCH.md#agent-v1, RESEARCH.md#headers, RESEARCH.md#never-verified-live
package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/replay/agent/internal/history"
	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/internal/transport"
	"unwire/replay/agent/turn"
	"unwire/replay/outbound"
)

// The values of Options.Transport: HTTP/2 with fallback, only HTTP/2, or only the fallback over
// HTTP/1.1, in which the server's half of the stream is one response (server-sent events) and each
// client message is a call of its own.
const (
	Auto  = transport.Auto
	HTTP2 = transport.HTTP2
	SSE   = transport.SSE
)

// Defaults of Options.
const (
	DefaultClientVersion = "cli-2026.01.09-231024f"
	defaultClientType    = "cli"
	defaultUserAgent     = "connect-es/1.6.1"
)

// A ToolMap maps requests for tools that are built into the agent server (such as reading a file) to
// calls of tools that the client offers.
type ToolMap = tools.Map

// BuiltinToolMap returns the default ToolMap as JSON.
func BuiltinToolMap() []byte { return tools.BuiltinJSON() }

// ParseToolMap parses a ToolMap from JSON; the format is described at tools.Map. Its rows take
// precedence over those of the built-in ToolMap.
func ParseToolMap(data []byte) (*ToolMap, error) { return tools.ParseMap(data) }

// Options describe how a Client reaches its server. URL, Token and Profile are required.
type Options struct {
	// URL is the URL of the server. If Hosts is set and the server's configuration names a separate
	// host for agent streams, streams go to that host.
	URL *url.URL

	// Transport is Auto, HTTP2 or SSE. The default, Auto, uses HTTP/2, and falls back to SSE if the
	// server refuses it.
	Transport string

	// Token returns the bearer token, without "Bearer". It is called before each request.
	Token func(context.Context) (string, error)

	// Profile describes the service: its hosts, headers and codes.
	Profile *profile.Profile

	// RootCAs are the authorities that verify the server's certificate; nil means the system's trust
	// store.
	RootCAs *x509.CertPool

	// ToolMap maps the server's built-in tools to the client's; nil means the default, BuiltinToolMap.
	ToolMap *ToolMap

	// Recorder records and redacts every exchange with the server; nil records nothing.
	Recorder captures.Recorder

	// Live allows the hosts in AllowHosts in addition to this machine.
	Live bool
	// AllowHosts are the hosts that may be contacted if Live is set.
	AllowHosts []string

	// ClientVersion and ClientType are sent in headers; "" means the default.
	ClientVersion, ClientType string

	// Privacy requests the service's privacy mode. It also determines which host runs the agent.
	Privacy bool

	// Hosts asks the server which host runs the agent. If the server does not name one, the profile
	// decides.
	Hosts bool
}

// A Client runs turns of conversations on an agent server. Its methods may be called concurrently.
type Client struct {
	// o are the options with defaults filled in.
	o Options

	// definitions are the protobuf messages of the agent service.
	definitions *message.Definitions
	// backend is the dialer for all calls except the agent's stream.
	backend *transport.Dialer

	// agents are the dialers for the agent's streams.
	agents agents

	// tokens are the tokens sent recently, which are removed from error messages.
	tokens tokens

	// beat and execBeat are the intervals at which the client sends heartbeats for the stream and for
	// each open tool call.
	beat, execBeat time.Duration
}

// New validates the options and returns a client. It contacts no server.
//
// Errors: outbound.ErrRefused for a server that is not allowed; options that are missing.
func New(ctx context.Context, o Options) (*Client, error) {
	// Validate, and fill in the defaults.
	switch {
	case o.URL == nil || o.Token == nil || o.Profile == nil:
		return nil, errors.New("agent: URL, Token and Profile are required")
	case o.Transport == "":
		o.Transport = Auto
	case o.Transport != Auto && o.Transport != HTTP2 && o.Transport != SSE:
		return nil, fmt.Errorf("agent: the transport must be %[2]s, %[3]s or %[4]s, not %[1]q", o.Transport, Auto, HTTP2, SSE)
	}
	if err := outbound.CheckTarget(o.URL, o.Live, o.AllowHosts); err != nil {
		return nil, err
	}
	if o.ClientVersion == "" {
		o.ClientVersion = DefaultClientVersion
	}
	if o.ClientType == "" {
		o.ClientType = defaultClientType
	}
	if o.ToolMap == nil {
		o.ToolMap = tools.Builtin()
	}
	d, err := message.Load(ctx)
	if err != nil {
		return nil, err
	}
	c := &Client{o: o, definitions: d, beat: heartbeatInterval, execBeat: execHeartbeatInterval}
	c.backend = c.dialer(o.URL)
	return c, nil
}

// dialer returns a new dialer that opens streams to the server at u.
func (c *Client) dialer(u *url.URL) *transport.Dialer {
	return &transport.Dialer{
		URL: u, Choice: c.o.Transport, Profile: c.o.Profile, Recorder: c.o.Recorder, Authorization: c.authorization,
		Policy: outbound.Policy{Live: c.o.Live, AllowHosts: c.o.AllowHosts, Roots: c.o.RootCAs},
	}
}

// Close closes the idle connections.
func (c *Client) Close() {
	c.backend.Close()
	c.agents.close()
}

// Run sends a request and returns the stream of events that answers it. conversation is the id of the
// conversation; "" starts a new one. ctx limits only the opening; the stream lives until it is closed.
//
// Errors: a *turn.Error.
func (c *Client) Run(ctx context.Context, conversation string, r *turn.Request) (*Stream, error) {
	if conversation == "" {
		conversation = message.NewUUID()
	}
	set, err := tools.NewSet(c.definitions, r.Tools, c.o.ToolMap)
	if err != nil {
		return nil, err
	}
	s := newStream(c, conversation, set)
	first, err := history.Request(c.definitions, set, &s.blobs, conversation, r)
	if err != nil {
		return nil, turn.AsError(err)
	}
	header, err := c.header(ctx)
	if err != nil {
		return nil, err
	}
	header.Set("Connect-Accept-Encoding", "gzip")
	header.Set("X-Cursor-Streaming", "true")
	if s.link, err = c.agent(ctx).Open(ctx, header, first); err != nil {
		return nil, c.failure(err)
	}
	s.start()
	return s, nil
}

// authorization returns the value of the Authorization header, "Bearer" and a token from Options.Token.
// The token is remembered, so that it is removed from later error messages.
//
// Errors: a *turn.Error of kind Unauthorized.
func (c *Client) authorization(ctx context.Context) (string, error) {
	token, err := c.o.Token(ctx)
	if err != nil {
		return "", &turn.Error{Kind: turn.Unauthorized, Code: "no_upstream_token", Message: "there is no token for the upstream: " + err.Error(), Err: err}
	}
	token = strings.TrimPrefix(token, "Bearer ")
	c.tokens.add(token)
	return "Bearer " + token, nil
}

// header returns the headers for a request to the agent API.
func (c *Client) header(ctx context.Context) (http.Header, error) {
	authorization, err := c.authorization(ctx)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	h.Set("Authorization", authorization)
	h.Set("Connect-Protocol-Version", "1")
	h.Set("User-Agent", defaultUserAgent)
	h.Set("X-Cursor-Client-Type", c.o.ClientType)
	h.Set(c.o.Profile.VersionHeader, c.o.ClientVersion)
	h.Set(c.o.Profile.Endpoints.PrivacyHeader, c.privacy())
	h.Set("X-Request-Id", message.NewUUID())
	return h, nil
}

// privacy returns the value of the privacy-mode header, "true" or "false".
func (c *Client) privacy() string {
	if c.o.Privacy {
		return "true"
	}
	return "false"
}
