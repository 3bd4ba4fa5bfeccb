// Package standin is a local server of the reconstructed API: a real connect-go
// server, over TLS with HTTP/2 and HTTP/1.1, whose conversation comes from a
// script.
//
// The demo, the tests and dry replays use it. Its messages are built at run time from
// the .proto files in proto/. With the same seed, script and client behaviour, it sends
// the same bytes: identifiers are derived, not random, and all durations that it reports
// come from the script.
//
// A script is JSON that is parsed strictly. Its names and templates are resolved against
// the messages of the API before the server starts. A turn plays a script for the agent's
// stream: the client executes tool calls, and an inbox buffers its answers. A chat plays a
// script for the older endpoints. Clients without HTTP/2 get the same turn over
// server-sent events (SSE) or by polling, in sessions to which they append messages. The
// server creates its own certificate. Handlers check each request's credentials and client
// version, exchange keys for tokens, and use the script's compression and codec. A
// response writer can omit the end of an answer.
//
// Source: replay/standin/README.md
package standin

import (
	"log/slog"
	"net/http"
	"sync"

	"unwire/replay/standin/ledger"
)

// Options configure a server. The zero value has the default script and accepts any
// bearer token.
type Options struct {
	// Script is the script of the conversation, as JSON; the README describes the format. Members that
	// it lacks, or all of them if it is nil, come from the default script.
	Script []byte
	// Seed determines the generated identifiers: the same seed gives the same ones.
	Seed uint64
	// Token is the bearer token that calls must have. If it is "", any token is accepted, but one is
	// required.
	Token string
	// CAFile is the file to which the CA's certificate is written, as PEM. If it is "", a temporary
	// file is created, which Shutdown removes.
	CAFile string
	// Hosts are names for which the certificate is valid, in addition to localhost,
	// 127.0.0.1 and ::1.
	Hosts []string
	// Logger receives net/http's messages about broken connections; nil discards them.
	Logger *slog.Logger
}

// A Server is a local server of the reconstructed API, which plays a script. Its methods may be called
// concurrently.
type Server struct {
	// CAFile is the PEM file with the certificate that a client must trust.
	CAFile string

	// o are the options.
	o Options

	// api has the definitions of the API.
	api *api

	// script is the parsed script.
	script *script

	// http is the HTTP server.
	http *http.Server

	// ownCA means that CAFile is a temporary file.
	ownCA bool

	// sessions are the split streams of clients without HTTP/2.
	sessions sessions

	// polls are the turns whose messages clients fetch by polling.
	polls polls

	// ledger counts events for the statistics.
	ledger ledger.Ledger

	// blobs are byte strings that were exchanged with clients.
	blobs blobs

	// mu guards url.
	mu sync.Mutex

	// url is the base URL; "" before Listen.
	url string
}

// URL returns the base URL of the server, "https://127.0.0.1:PORT"; empty before
// Listen or Serve.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}
