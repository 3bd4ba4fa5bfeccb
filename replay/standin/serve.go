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
	"time"

	"unwire/replay/standin/certificate"
)

// New returns a server that does not listen yet.
//
// Errors: an inconsistent script, with the position of the error (`standin: script:
// turns[0].steps[3].tool.name: …`); a CAFile that cannot be written.
func New(o Options) (*Server, error) {
	a, err := loadAPI()
	if err != nil {
		return nil, err
	}
	script, err := readScript(a, o.Script)
	if err != nil {
		return nil, fmt.Errorf("standin: script: %w", err)
	}

	// Each server has its own certificate, which is valid for a week.
	ca, leaf, err := certificate.Make(o.Hosts)
	if err != nil {
		return nil, fmt.Errorf("standin: certificate: %w", err)
	}
	s := &Server{o: o, api: a, script: script, CAFile: o.CAFile}
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

// writeCA writes the CA's certificate to Options.CAFile, or to a temporary file.
func (s *Server) writeCA(ca []byte) error {
	if s.CAFile != "" {
		return os.WriteFile(s.CAFile, ca, 0o644)
	}
	f, err := os.CreateTemp("", "unwire-standin-*.pem")
	if err != nil {
		return err
	}
	s.CAFile, s.ownCA = f.Name(), true
	_, err = f.Write(ca)
	return errors.Join(err, f.Close())
}

// Listen listens on an address, usually "127.0.0.1:0". URL returns the server's URL afterwards.
func (s *Server) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("standin: %w", err)
	}
	s.setURL(l)
	return l, nil
}

// Serve handles calls that arrive at l until Shutdown is called. It returns nil only after Shutdown.
func (s *Server) Serve(l net.Listener) error {
	s.setURL(l)
	if err := s.http.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("standin: %w", err)
	}
	return nil
}

// Shutdown stops the server. It waits for the calls in progress until ctx ends, then aborts them. A
// temporary CA file is removed.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if s.ownCA {
		err = errors.Join(err, os.Remove(s.CAFile))
	}
	return err
}

// setURL sets the server's URL from the address of a listener.
func (s *Server) setURL(l net.Listener) {
	host := l.Addr().String()
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		host = fmt.Sprintf("127.0.0.1:%d", a.Port)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url = "https://" + host
}
