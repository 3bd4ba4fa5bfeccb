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
	maxConnections = 16

	authTime    = 5 * time.Second  // for the first message
	messageTime = 60 * time.Second // from the first byte of a request to its last
	answerTime  = 5 * time.Second  // for a client to read an answer

	// lastAnswerTime is the same when the server closes.
	lastAnswerTime = 200 * time.Millisecond

	requestTime = 60 * time.Second // for the recorder to carry out a request
)

// largeRequest is the size of requests of which one is handled at a time.
const largeRequest = 1 << 20

// A target carries out requests. Its methods are called from several goroutines.
type target interface {
	// Add stores an addition, and returns the number of its row once it is committed.
	Add(ctx context.Context, a captures.Addition) (n int64, err error)

	// Flush waits until everything that was recorded is committed.
	Flush(ctx context.Context) error
}

// A Server serves the socket of one recording.
type Server struct {
	target   target
	listener *listener
	file     string // the control file
	token    []byte // in hex

	large   sync.Mutex // held while a large request is read and handled
	running sync.WaitGroup

	mu          sync.Mutex
	closing     bool
	connections map[net.Conn]bool
}

// Listen serves additions to the capture at path, and writes its control file. A control
// file that a killed recorder left is replaced: the caller holds the lock of the capture.
func Listen(path string, r target) (*Server, error) {
	token := make([]byte, 32)
	_, _ = rand.Read(token) // never fails: it would end the program
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
	s.running.Go(s.accept)
	return s, nil
}

// writeFile writes the control file, which nobody sees before it is complete.
func (s *Server) writeFile() error {
	text, err := marshal(controlFile{V: version, Network: s.listener.network, Address: s.listener.address, Token: string(s.token)})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.file), ".unwire-control-*") // 0600
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

// Close removes the control file, ends the requests that are being carried out, and closes
// all connections. It must be called before the writer ends.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closing = true
	for c := range s.connections {
		_ = c.SetReadDeadline(time.Now())
		_ = c.SetWriteDeadline(time.Now().Add(lastAnswerTime))
	}
	s.mu.Unlock()
	err := os.Remove(s.file)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // the folder of the capture was removed, which its writer reports
	}
	err = errors.Join(err, s.listener.close())
	s.running.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || s.isClosing() {
				return
			}
			time.Sleep(50 * time.Millisecond) // no file descriptors are left, say
			continue
		}
		if !s.admit(conn) {
			_ = conn.Close()
			continue
		}
		s.running.Go(func() {
			defer s.forget(conn)
			s.serve(conn)
		})
	}
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// admit counts a connection, unless there are enough.
func (s *Server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.connections) >= maxConnections {
		return false
	}
	s.connections[conn] = true
	return true
}

func (s *Server) forget(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, conn)
}

// readBy sets when a message must have been read. It fails once the server closes.
func (s *Server) readBy(conn net.Conn, t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closing && conn.SetReadDeadline(t) == nil
}

// serve answers the messages of a connection.
func (s *Server) serve(conn net.Conn) {
	if !sameUser(conn) {
		return
	}
	r := bufio.NewReader(conn)
	if !s.readBy(conn, time.Now().Add(authTime)) || !s.authenticate(conn, r) {
		return
	}
	s.serveRequests(conn, r)
}

// serveRequests answers requests until the connection ends.
func (s *Server) serveRequests(conn net.Conn, r *bufio.Reader) {
	for s.readBy(conn, time.Time{}) {
		// Between two requests a client may take its time, but not within one.
		if _, err := r.Peek(1); err != nil {
			break
		}
		if !s.readBy(conn, time.Now().Add(messageTime)) || !s.serveOne(conn, r) {
			return
		}
	}
	if s.isClosing() {
		s.send(conn, answer{Error: &reason{codeClosing, "the recording is about to end"}})
	}
}

// authenticate reads the first message and answers it.
func (s *Server) authenticate(conn net.Conn, r *bufio.Reader) bool {
	text, err := readMessage(r, maxFirst)
	if why := tooLong(err); why != nil {
		s.send(conn, answer{V: version, Error: why})
		return false
	}
	if err != nil {
		return false
	}
	var h hello
	if err := json.Unmarshal(text, &h); err != nil {
		s.send(conn, answer{V: version, Error: &reason{codeBadRequest, `the first message has to be {"v":1,"token":"…"}`}})
		return false
	}
	if h.V != version {
		s.send(conn, answer{V: version, Error: &reason{codeVersion, fmt.Sprintf("version %d is not spoken here, but %d", h.V, version)}})
		return false
	}
	if subtle.ConstantTimeCompare([]byte(h.Token), s.token) != 1 {
		s.send(conn, answer{V: version, Error: &reason{codeUnauthorized, "the token is not that of this recording"}})
		return false
	}
	return s.send(conn, answer{V: version, OK: true})
}

// serveOne reads one request and answers it; more says that the connection stays open.
func (s *Server) serveOne(conn net.Conn, r *bufio.Reader) (more bool) {
	if head, err := r.Peek(4); err == nil && isLarge(head) {
		s.large.Lock()
		defer s.large.Unlock()
	}
	text, err := readMessage(r, maxRequest)
	if why := tooLong(err); why != nil {
		s.send(conn, answer{Error: why})
		return false
	}
	if err != nil {
		return false
	}
	var q request
	if err := json.Unmarshal(text, &q); err != nil {
		// What could be read of a request with a member of another type has its id.
		wrong, readable := errors.AsType[*json.UnmarshalTypeError](err)
		readable = readable && wrong.Field != ""
		return s.send(conn, answer{ID: q.ID, Error: &reason{codeBadRequest, "no request: " + err.Error()}}) && readable
	}
	return s.send(conn, s.handle(&q))
}

// handle carries out a request.
func (s *Server) handle(q *request) answer {
	if q.ID == nil {
		return answer{Error: &reason{codeBadRequest, "a request has an id"}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	n, err := s.carryOut(ctx, q)
	if err != nil {
		return answer{ID: q.ID, Error: &reason{codeOf(err), shorten(err.Error())}}
	}
	return answer{ID: q.ID, OK: true, N: n}
}

func (s *Server) carryOut(ctx context.Context, q *request) (n int64, err error) {
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

// send sends an answer, and reports whether it could.
func (s *Server) send(conn net.Conn, a answer) bool {
	b, err := appendMessage(nil, a)
	if err != nil {
		return false
	}
	patience := answerTime
	if s.isClosing() {
		patience = lastAnswerTime
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	_, err = conn.Write(b)
	return err == nil
}

// tooLong is the answer to a message that is too long, or nil.
func tooLong(err error) *reason {
	if !errors.Is(err, errTooLong) {
		return nil
	}
	return &reason{codeTooLarge, err.Error()}
}

// isLarge reports whether the length of a message is one of a large request.
func isLarge(head []byte) bool {
	return uint64(head[0])<<24|uint64(head[1])<<16|uint64(head[2])<<8|uint64(head[3]) > largeRequest
}

// shorten cuts what is longer than an answer may be.
func shorten(message string) string {
	const most = maxAnswer / 16 // six bytes of JSON for one are possible
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}
