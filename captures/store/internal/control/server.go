package control

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/additions"
)

const (

	// maxConnections limits the number of concurrent clients.
	maxConnections = 16

	// authTimeout limits the time until a client's first message, which authenticates it, was received.
	authTimeout = 5 * time.Second
	// messageTimeout is the time for receiving one request, from its first to its last byte.
	messageTimeout = 60 * time.Second
	// answerTimeout is the time in which a client must read a response.
	answerTimeout = 5 * time.Second

	// closingAnswerTimeout is the same while the server closes.
	closingAnswerTimeout = 200 * time.Millisecond

	// requestTimeout is for the recorder to execute a request.
	requestTimeout = 60 * time.Second
)

// largeRequest is the size in bytes above which requests are read one at a time, to limit memory.
const largeRequest = 1 << 20

// A target is the recorder that executes the requests of other processes. Its methods are called from several
// goroutines.
type target interface {
	// Add stores an addition, and returns the number of its row after the commit.
	Add(ctx context.Context, a captures.Addition) (n int64, err error)

	// Flush waits until all data recorded so far is committed.
	Flush(ctx context.Context) error
}

// A Server receives additions to a capture from other processes while this process records to it.
type Server struct {
	// target stores the additions in the capture.
	target target
	// listener is the socket on which clients connect.
	listener *listener
	// file is the path of the control file.
	file string
	// token is the secret that clients must send, in hex.
	token []byte

	// large is locked while a large request is read and executed.
	large sync.Mutex
	// goroutines counts the goroutines that accept and serve connections.
	goroutines sync.WaitGroup

	// mu guards closing and connections.
	mu sync.Mutex

	// closing means that Close was called, so new connections are rejected.
	closing bool
	// connections are the open connections.
	connections map[net.Conn]bool
}

// Listen starts a server for additions to the capture at path and writes its control file, replacing that of a
// recorder that was killed. r stores the additions. The caller must have locked the capture.
func Listen(path string, r target) (*Server, error) {
	token := make([]byte, 32)
	// rand.Read never fails: it would end the program.
	_, _ = rand.Read(token)
	s := &Server{
		target: r, file: path + suffix, token: hex.AppendEncode(nil, token), connections: make(map[net.Conn]bool),
	}
	removeStale(s.file)
	var err error
	if s.listener, err = listen(); err != nil {
		return nil, err
	}
	if err := s.writeFile(); err != nil {
		return nil, errors.Join(err, s.listener.close())
	}
	s.goroutines.Go(s.accept)
	return s, nil
}

// writeFile creates the control file atomically, by renaming a temporary one.
func (s *Server) writeFile() error {
	text, err := marshal(controlFile{V: version, Network: s.listener.network, Address: s.listener.address, Token: string(s.token)})
	if err != nil {
		return err
	}
	// CreateTemp creates the file with mode 0600.
	f, err := os.CreateTemp(filepath.Dir(s.file), ".unwire-control-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Close removes the control file, waits for the requests that are being executed, and closes all connections. It
// must be called before the writer ends.
func (s *Server) Close() error {
	s.mu.Lock()

	// The deadlines end connections that wait for a request.
	s.closing = true
	for c := range s.connections {
		_ = c.SetReadDeadline(time.Now())
		_ = c.SetWriteDeadline(time.Now().Add(closingAnswerTimeout))
	}
	s.mu.Unlock()
	err := os.Remove(s.file)
	if errors.Is(err, os.ErrNotExist) {
		// The folder of the capture was deleted, which the writer reports.
		err = nil
	}
	err = errors.Join(err, s.listener.close())
	s.goroutines.Wait()
	return err
}

// accept accepts and serves connections until the server closes.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || s.isClosing() {
				return
			}
			// Accept fails, for instance, while no file descriptor is free.
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if !s.addConnection(conn) {
			_ = conn.Close()
			continue
		}
		s.goroutines.Go(func() {
			defer s.removeConnection(conn)
			s.serve(conn)
		})
	}
}

// isClosing reports whether Close was called.
func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// addConnection registers a connection. It returns false if there are too many.
func (s *Server) addConnection(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.connections) >= maxConnections {
		return false
	}
	s.connections[conn] = true
	return true
}

// removeConnection closes and unregisters a connection.
func (s *Server) removeConnection(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, conn)
}

// setReadDeadline sets the deadline for reading a message from a client. It returns false if the server is
// closing.
func (s *Server) setReadDeadline(conn net.Conn, t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closing && conn.SetReadDeadline(t) == nil
}

// serve authenticates a client, and executes its requests.
func (s *Server) serve(conn net.Conn) {
	if !sameUser(conn) {
		return
	}
	r := bufio.NewReader(conn)
	if !s.setReadDeadline(conn, time.Now().Add(authTimeout)) || !s.authenticate(conn, r) {
		return
	}
	s.serveRequests(conn, r)
}

// serveRequests executes a client's requests until the connection ends.
func (s *Server) serveRequests(conn net.Conn, r *bufio.Reader) {
	for s.setReadDeadline(conn, time.Time{}) {
		// Between two requests a client may wait; within one it may not.
		if _, err := r.Peek(1); err != nil {
			break
		}
		if !s.setReadDeadline(conn, time.Now().Add(messageTimeout)) || !s.serveOne(conn, r) {
			return
		}
	}
	if s.isClosing() {
		s.send(conn, answer{Error: &reason{codeClosing, "the recording is about to end"}})
	}
}

// authenticate reads and answers the client's first message, which must contain the token. It reports
// whether the client may continue.
func (s *Server) authenticate(conn net.Conn, r *bufio.Reader) bool {
	text, err := readMessage(r, maxHello)
	if why := tooLongReason(err); why != nil {
		s.send(conn, answer{V: version, Error: why})
		return false
	}
	if err != nil {
		return false
	}
	var h hello
	if err := json.Unmarshal(text, &h); err != nil {
		s.send(conn, answer{V: version, Error: &reason{codeBadRequest, `the first message must be {"v":1,"token":"…"}`}})
		return false
	}
	if h.V != version {
		s.send(conn, answer{V: version, Error: &reason{codeVersion, fmt.Sprintf("version %d of the protocol is not supported, only version %d", h.V, version)}})
		return false
	}
	if subtle.ConstantTimeCompare([]byte(h.Token), s.token) != 1 {
		s.send(conn, answer{V: version, Error: &reason{codeUnauthorized, "the token does not belong to this recording"}})
		return false
	}
	return s.send(conn, answer{V: version, OK: true})
}

// serveOne reads and executes one request. more reports whether the connection stays open.
func (s *Server) serveOne(conn net.Conn, r *bufio.Reader) (more bool) {
	// The length comes first in a message.
	if head, err := r.Peek(4); err == nil && isLarge(head) {
		s.large.Lock()
		defer s.large.Unlock()
	}
	text, err := readMessage(r, maxRequest)
	if why := tooLongReason(err); why != nil {
		s.send(conn, answer{Error: why})
		return false
	}
	if err != nil {
		return false
	}
	var q request
	if err := json.Unmarshal(text, &q); err != nil {
		// If a member has the wrong type, the JSON was read to its end: the id is known and the stream is in
		// step.
		wrong, readable := errors.AsType[*json.UnmarshalTypeError](err)
		readable = readable && wrong.Field != ""
		return s.send(conn, answer{ID: q.ID, Error: &reason{codeBadRequest, "the message is not a request: " + err.Error()}}) && readable
	}
	return s.send(conn, s.handle(&q))
}

// handle executes one request of a client, and returns the response.
func (s *Server) handle(q *request) answer {
	if q.ID == nil {
		return answer{Error: &reason{codeBadRequest, "a request must have an id"}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	n, err := s.execute(ctx, q)
	if err != nil {
		return answer{ID: q.ID, Error: &reason{codeOf(err), truncateMessage(err.Error())}}
	}
	return answer{ID: q.ID, OK: true, N: n}
}

// execute executes a request and returns the row number of the addition.
func (s *Server) execute(ctx context.Context, q *request) (n int64, err error) {
	if q.Do == doFlush {
		return 0, s.target.Flush(ctx)
	}
	a, err := q.addition()
	if err == nil {
		err = additions.Check(&a)
	}
	if err != nil {
		return 0, err
	}
	return s.target.Add(ctx, a)
}

// send sends a response to the client, and reports whether that succeeded.
func (s *Server) send(conn net.Conn, a answer) bool {
	b, err := appendMessage(nil, a)
	if err != nil {
		return false
	}
	patience := answerTimeout
	if s.isClosing() {
		patience = closingAnswerTimeout
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	_, err = conn.Write(b)
	return err == nil
}

// tooLongReason returns the reason for the response to a message that is too long, or nil if err is another
// error.
func tooLongReason(err error) *reason {
	if !errors.Is(err, errTooLong) {
		return nil
	}
	return &reason{codeTooLarge, err.Error()}
}

// isLarge reports whether a message with this length prefix is a large request.
func isLarge(head []byte) bool {
	return uint64(head[0])<<24|uint64(head[1])<<16|uint64(head[2])<<8|uint64(head[3]) > largeRequest
}

// truncateMessage truncates an error message for a response to a limited length.
func truncateMessage(message string) string {
	// A byte can become six bytes of JSON.
	const most = maxAnswer / 16
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}
