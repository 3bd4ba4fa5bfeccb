// Package standin is a local server of the reconstructed API: a real connect-go
// server, over TLS with HTTP/2 and HTTP/1.1, whose conversation comes from a
// script.
//
// It is what the demo, the tests and a dry replay talk to. Its messages are
// built at run time from the .proto files in proto/, so it says what those
// files say and nothing else. Given the same seed, script and client behaviour
// it sends the same bytes: identifiers are derived, never random, and every
// duration that it reports comes from the script.
//
// A script is JSON that is read strictly; its names and templates are bound to the
// messages of the API before the server starts. A turn plays a script for the agent's
// stream, with tool calls that the client executes and an inbox for its answers; a
// chat plays one for the older endpoints. Clients without HTTP/2 get the same turn
// over server-sent events (SSE) or by polling, in sessions to which they append
// messages. The server makes its certificate. Handlers check each request's
// credentials and client version, exchange keys for tokens, and answer with the
// script's compression and codec; a response writer can leave out the end of an
// answer.
//
// Source: replay/standin/README.md
package standin

import (
	"log/slog"
	"net/http"
	"sync"

	"unwire/replay/standin/ledger"
)

// Options say how a server behaves. The zero value is a server of the default
// script that accepts any bearer token.
type Options struct {
	// Script is the conversation, as JSON: see [Script]. What it leaves out is
	// the default script's. Nil is the default script.
	Script []byte
	// Seed is what identifiers are derived from.
	Seed uint64
	// Token is the bearer token that calls must carry. Empty: any token will do,
	// but there must be one.
	Token string
	// CAFile is where the certificate of the throwaway authority is written, as
	// PEM. Empty: a temporary file, removed by Shutdown.
	CAFile string
	// Hosts are names that the certificate covers besides localhost, 127.0.0.1
	// and ::1.
	Hosts []string
	// Logger gets what net/http has to say of broken connections. Nil: nobody.
	Logger *slog.Logger
}

// A Server answers the reconstructed API. Its methods may be called from
// several goroutines.
type Server struct {
	// CAFile is the PEM file with the certificate that a client must trust.
	CAFile string

	o      Options
	api    *api
	script *script
	http   *http.Server
	ownCA  bool

	sessions sessions
	polls    polls
	ledger   ledger.Ledger
	blobs    blobs

	mu  sync.Mutex
	url string
}

// URL is the base URL of the server, "https://127.0.0.1:PORT"; empty before
// Listen or Serve.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}
