// Package ui serves the workbench, a page that shows captures in a browser.
//
// Captures go in, by Options. An http.Handler comes out: the page with its modules (folder
// page), and the API that they ask, which returns objects of package contract that package
// query makes. Nothing is interpreted here that the command line does not interpret alike.
//
//	s, err := ui.New(ui.Options{Files: files, Open: open, Definitions: definitions})
//	go s.Serve(listener)
//	fmt.Println(s.URL(listener.Addr())) // http://127.0.0.1:PORT/#token=…
//
// guard.go decides which requests are answered. endpoints, below, is the table of the API. Each
// view of the page has a file of handlers here and a module in the folder page; README.md
// says how to add one. file.go keeps what was derived of captures until they change.
package ui

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// page is the page with its modules and styles.
//
//go:embed page/*.html page/*.css page/*.svg page/*.js page/*.txt
var page embed.FS

// A Server serves the workbench: the page and its API.
type Server struct {
	// library is the set of captures.
	library *library

	// token is the secret that API requests must have.
	token string

	// static serves the files of the page.
	static http.Handler

	// api are the endpoints by their paths.
	api map[string]endpoint

	// server is the HTTP server.
	server *http.Server

	// stop ends the requests that wait for changes.
	stop context.CancelFunc

	// mu guards hosts.
	mu sync.Mutex

	// hosts are the values of the Host header that requests may have.
	hosts []string
}

// New returns a Server that does not listen yet. It has a new random token.
func New(o Options) (*Server, error) {
	static, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	s := &Server{library: &library{options: o}, token: rand.Text(), static: http.FileServerFS(static), api: map[string]endpoint{}}
	for _, e := range endpoints() {
		s.api[e.path] = e
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.server = &http.Server{
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	return s, nil
}

// endpoints returns all endpoints of the API. Each view of the page adds the list of its file.
func endpoints() []endpoint {
	return slices.Concat(listEndpoints(), liveEndpoints(), exchangeEndpoints(), frameEndpoints(), readingEndpoints(), noteEndpoints(), shareEndpoints(),
		heldEndpoints(), transcriptEndpoints(), diffEndpoints(), coverageEndpoints(), schemaGraphEndpoints(), replayEndpoints(), probeEndpoints())
}

// URL returns the address of the page, with the token in its fragment, which browsers do not
// send.
func (s *Server) URL(addr net.Addr) string {
	return "http://" + addr.String() + "/#token=" + s.token
}

// Serve answers the requests of a listener until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	s.allowHost(l.Addr())
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends the server and closes the captures. When ctx ends, it aborts the requests that still run.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = s.server.Close()
	}
	return errors.Join(err, s.library.close())
}
