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
// Source: RESEARCH.md#stand-in
package standin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
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
	o      Options
	api    *api
	script *Script
	http   *http.Server
	caFile string
	ownCA  bool

	sessions sessions
	polls    polls

	mu  sync.Mutex
	url string
}

// New makes a server; it listens to nothing yet.
//
// Errors: a script that does not hold together, with the place:
// `standin: script: turns[0].steps[3].tool.name: …`; a CAFile that cannot be
// written.
func New(o Options) (*Server, error) {
	a, err := loadAPI()
	if err != nil {
		return nil, err
	}
	script, err := readScript(a, o.Script)
	if err != nil {
		return nil, fmt.Errorf("standin: script: %w", err)
	}
	ca, leaf, err := makeCertificate(o.Hosts)
	if err != nil {
		return nil, fmt.Errorf("standin: certificate: %w", err)
	}
	s := &Server{o: o, api: a, script: script, caFile: o.CAFile}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	handler, err := s.handler()
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12},
	}
	if err := s.writeCA(ca); err != nil {
		return nil, fmt.Errorf("standin: certificate: %w", err)
	}
	return s, nil
}

func (s *Server) writeCA(ca []byte) error {
	if s.caFile != "" {
		return os.WriteFile(s.caFile, ca, 0o644)
	}
	f, err := os.CreateTemp("", "unwire-standin-*.pem")
	if err != nil {
		return err
	}
	s.caFile, s.ownCA = f.Name(), true
	_, err = f.Write(ca)
	return errors.Join(err, f.Close())
}

// Listen opens the address ("127.0.0.1:0" is the usual one) that Serve will
// serve; from then on URL is known.
func (s *Server) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("standin: %w", err)
	}
	s.setURL(l)
	return l, nil
}

// Serve answers calls that arrive at l until Shutdown. It returns nil after
// Shutdown and never otherwise.
func (s *Server) Serve(l net.Listener) error {
	s.setURL(l)
	if err := s.http.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("standin: %w", err)
	}
	return nil
}

// Shutdown lets the calls that are under way finish until ctx ends, then ends
// them, and removes the CA file if it was a temporary one.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if s.ownCA {
		err = errors.Join(err, os.Remove(s.caFile))
	}
	return err
}

// URL is the base URL of the server, "https://127.0.0.1:PORT"; empty before
// Listen or Serve.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// CAFile is the PEM file with the certificate that a client must trust.
func (s *Server) CAFile() string { return s.caFile }

func (s *Server) setURL(l net.Listener) {
	host := l.Addr().String()
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		host = fmt.Sprintf("127.0.0.1:%d", a.Port)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url = "https://" + host
}
