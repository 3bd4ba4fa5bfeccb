package intercept

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

const (
	// fileSuffix is appended to the name of a capture for the file with the server's address.
	fileSuffix = ".intercept"

	// socketFolder is the beginning of the name of a temporary folder, and socketName the name of the Unix
	// socket in it.
	socketFolder = "unwire-intercept-"
	socketName   = "held.sock"

	// maxWait limits how long a client may wait for a held frame with one request.
	maxWait = time.Minute

	// maxDecision limits the size of a request, in bytes.
	maxDecision = 256 << 20
)

// An address is the JSON content of the file next to the capture. Network and Address are as for net.Dial;
// Token is the secret that clients must send.
type address struct {
	// Network is the network of the server's address, such as "unix".
	Network string `json:"network"`
	// Address is the server's address in that network.
	Address string `json:"address"`
	// Token is the secret that clients must send.
	Token string `json:"token"`
}

// A Server lets other programs of the same user list held frames and decide about them.
type Server struct {
	// holder has the held frames.
	holder *Holder
	// http serves the requests of clients.
	http *http.Server
	// listener accepts their connections.
	listener net.Listener

	// file is the path of the file that has the server's address, next to the capture.
	file string
	// folder is the path of the folder with the Unix socket.
	folder string
	// token is the secret that clients must send.
	token string
}

// Serve starts a server for the held frames of the process that records to a capture.
func Serve(capture string, h *Holder) (*Server, error) {
	s := &Server{holder: h, file: capture + fileSuffix, token: rand.Text()}
	at, ln, err := s.listen()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /held", s.serveHeld)
	mux.HandleFunc("POST /held/{id}", s.serveDecision)
	mux.HandleFunc("POST /release-all", s.serveReleaseAll)
	s.http = &http.Server{Handler: s.authorized(mux), ReadHeaderTimeout: maxWait}
	if err := s.writeFile(at); err != nil {
		return nil, errors.Join(err, ln.Close(), s.removeFolder())
	}
	s.listener = ln
	go func() { _ = s.http.Serve(ln) }()
	return s, nil
}

// listen opens a Unix socket in a new folder, or a TCP port if that is not possible.
func (s *Server) listen() (address, net.Listener, error) {
	if runtime.GOOS != "windows" {
		for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
			if !filepath.IsAbs(parent) {
				continue
			}
			// MkdirTemp creates the folder with mode 0700.
			folder, err := os.MkdirTemp(parent, socketFolder)
			if err != nil {
				continue
			}
			path := filepath.Join(folder, socketName)
			if ln, err := net.Listen("unix", path); err == nil {
				s.folder = folder
				return address{"unix", path, s.token}, ln, nil
			}
			_ = os.Remove(folder)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return address{}, nil, err
	}
	return address{"tcp", ln.Addr().String(), s.token}, ln, nil
}

// writeFile writes the file with the server's address, replacing one that a killed recorder has left. The file appears
// whole, because clients may be waiting for it.
func (s *Server) writeFile(at address) error {
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	// CreateTemp creates the file with mode 0600.
	f, err := os.CreateTemp(filepath.Dir(s.file), filepath.Base(s.file)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// removeFolder deletes the socket's folder, if there is one.
func (s *Server) removeFolder() error {
	if s.folder == "" {
		return nil
	}
	return os.Remove(s.folder)
}

// Close stops the server, and removes its file. It does not close the Holder.
func (s *Server) Close() error {
	err := s.http.Close()
	// The HTTP server does not know the listener if Serve has not begun.
	if closeErr := s.listener.Close(); !errors.Is(closeErr, net.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return errors.Join(err, os.Remove(s.file), s.removeFolder())
}

// authorized wraps a handler so that it serves only requests with the token.
func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) != 1 {
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveHeld responds with the held frames. If there are none and the request asks for it, it waits for one.
func (s *Server) serveHeld(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	ctx, cancel := context.WithTimeout(r.Context(), min(max(wait, 0), maxWait))
	defer cancel()
	frames := s.holder.Held(ctx, after)
	if frames == nil {
		frames = []Frame{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(frames)
}

// serveDecision handles a decision about a held frame.
func (s *Server) serveDecision(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	var d Decision
	if err == nil {
		err = json.NewDecoder(io.LimitReader(r.Body, maxDecision)).Decode(&d)
	}
	if err == nil {
		err = s.holder.Decide(id, d)
	}
	switch {
	case errors.Is(err, ErrNotHeld):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// serveReleaseAll releases all held frames, and responds with their number.
func (s *Server) serveReleaseAll(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(map[string]int{"released": s.holder.ReleaseAll()})
}
