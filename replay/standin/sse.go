package standin

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/codec"
)

const (
	procedureRun       = "/agent.v1.AgentService/Run"
	procedureRunSSE    = "/agent.v1.AgentService/RunSSE"
	procedureRunPoll   = "/agent.v1.AgentService/RunPoll"
	procedureAppend    = "/aiserver.v1.BidiService/BidiAppend"
	procedureStreamSSE = "/aiserver.v1.HealthService/StreamSSE"

	maxSessions = 1000
	// sessionIdle is how long appends wait for their RunSSE.
	sessionIdle = time.Minute
)

// get returns the session for a request id, and creates it if there is none. It fails if there are too
// many.
func (ss *sessions) get(id string) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.all[id]; s != nil {
		return s, nil
	}
	if ss.all == nil {
		ss.all = map[string]*session{}
	}
	if len(ss.all) >= maxSessions {
		ss.expire()
	}
	if len(ss.all) >= maxSessions {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%d streams are open", maxSessions))
	}
	s := &session{early: map[int64]*dynamicpb.Message{}, changed: make(chan struct{}), touched: time.Now()}
	ss.all[id] = s
	return s, nil
}

// expire removes sessions for which the client never called RunSSE. The caller must hold the lock.
func (ss *sessions) expire() {
	for id, s := range ss.all {
		s.mu.Lock()
		if !s.claimed && time.Since(s.touched) > sessionIdle {
			delete(ss.all, id)
		}
		s.mu.Unlock()
	}
}

// drop removes the session of a request id.
func (ss *sessions) drop(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.all, id)
}

// runSSE implements RunSSE, which carries the server's half of a turn for clients without HTTP/2.
func (s *Server) runSSE(ctx context.Context, req *connect.Request[message], stream *serverStream) error {
	return s.runSession(ctx, procedureRunSSE, stringField(req.Msg, "request_id"), req.Header(), stream.Send)
}

// runPoll implements RunPoll, which carries the server's half of a turn for clients without HTTP/2. Unlike in RunSSE,
// messages are numbered and in base64, and the last one marks the end.
func (s *Server) runPoll(ctx context.Context, req *connect.Request[message], stream *serverStream) error {
	md := s.api.Method("agent.v1.AgentService", "RunPoll").Output()
	send := func(seqno int64, m *dynamicpb.Message, eof bool) error {
		out := dynamicpb.NewMessage(md)
		set(out, "seqno", seqno)
		if m != nil {
			data, err := codec.Binary{}.Marshal(m)
			if err != nil {
				return err
			}
			set(out, "data", base64.StdEncoding.EncodeToString(data))
		}
		set(out, "eof", eof)
		return stream.Send(out)
	}

	// With a limit per call, the turn outlives this call.
	id := stringField(get(req.Msg, "request_id").Message(), "request_id")
	if most := s.script.PollMessages; most > 0 {
		return s.poll(ctx, id, get(req.Msg, "start_request").Bool(), req.Header(), most, send)
	}
	var seqno int64
	err := s.runSession(ctx, procedureRunPoll, id, req.Header(), func(m *dynamicpb.Message) error {
		seqno++
		return send(seqno-1, m, false)
	})
	if err != nil {
		return err
	}
	return send(seqno, nil, true)
}

// runSession executes the turn of a split stream, whose client messages arrive in append calls. id is
// the request id, and emit sends a server message.
func (s *Server) runSession(ctx context.Context, procedure, id string, header http.Header, emit func(*dynamicpb.Message) error) error {
	if id == "" {
		return connect.NewError(connect.CodeInvalidArgument, errors.New("request_id is empty"))
	}
	ses, err := s.sessions.get(id)
	if err != nil {
		return err
	}
	if !ses.claim() {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("request %s already has a stream", id))
	}
	defer s.sessions.drop(id)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := s.fill(ctx, func() (*dynamicpb.Message, error) { return ses.receive(ctx) })
	header = header.Clone()
	header.Set("x-request-id", id)
	return s.runTurn(ctx, procedure, header, in, emit)
}

// claim assigns the session to a RunSSE call; false if it already has one.
func (ses *session) claim() bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if ses.claimed {
		return false
	}
	ses.claimed = true
	return true
}

// receive returns the client's next message, in the order of the sequence numbers.
func (ses *session) receive(ctx context.Context) (*dynamicpb.Message, error) {
	for {
		ses.mu.Lock()
		if len(ses.ready) > 0 {
			m := ses.ready[0]
			ses.ready = ses.ready[1:]
			ses.bytes -= proto.Size(m)
			ses.mu.Unlock()
			return m, nil
		}
		changed := ses.changed
		ses.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// bidiAppend implements BidiAppend, a call that carries one client message.
func (s *Server) bidiAppend(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
	m, err := s.appended(req.Msg)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	id := stringField(get(req.Msg, "request_id").Message(), "request_id")
	if id == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("request_id is empty"))
	}
	ses, err := s.sessions.get(id)
	if err != nil {
		return nil, err
	}
	if ses.withhold() {
		if err := sleep(ctx, s.script.Appends.HoldMS); err != nil {
			return nil, err
		}
	}
	if err := ses.addMessage(get(req.Msg, "append_seqno").Int(), m, s.script.Appends.Window); err != nil {
		return nil, err
	}
	return connect.NewResponse(dynamicpb.NewMessage(req.Spec().Schema.(protoreflect.MethodDescriptor).Output())), nil
}

// appended returns the client message that an append request contains, as hexadecimal text or bytes.
func (s *Server) appended(append *message) (*dynamicpb.Message, error) {
	data := get(append, "data_binary").Bytes()
	if text := get(append, "data").String(); text != "" {
		if len(data) > 0 {
			return nil, errors.New("both data and data_binary are set")
		}
		var err error
		if data, err = hex.DecodeString(text); err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	m := dynamicpb.NewMessage(s.api.client)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("data: unmarshal into %s: %w", codec.GoType(m), err)
	}
	return m, nil
}

// withhold reports whether the response to an append call is delayed, so that later ones overtake it.
func (ses *session) withhold() bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.held++
	return ses.held%2 == 0
}

// addMessage stores the message of an append, which may come before earlier ones, at most window
// numbers ahead. A repeated append succeeds like the first, because the client may not have received
// the response.
func (ses *session) addMessage(seqno int64, m *dynamicpb.Message, window int) error {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.touched = time.Now()
	switch {
	case seqno < ses.next:
		return nil
	case seqno >= ses.next+int64(window):
		return connect.NewError(connect.CodeOutOfRange, fmt.Errorf("append_seqno %d is too large: it must be less than %d above the next expected number, %d", seqno, window, ses.next))
	case ses.early[seqno] != nil:
		return nil
	case len(ses.ready) >= maxPending, ses.bytes+proto.Size(m) > maxMessageBytes:
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%d appends (%d bytes) wait for RunSSE", len(ses.ready), ses.bytes))
	}
	ses.early[seqno] = m
	ses.bytes += proto.Size(m)
	for ; ses.early[ses.next] != nil; ses.next++ {
		ses.ready = append(ses.ready, ses.early[ses.next])
		delete(ses.early, ses.next)
	}
	close(ses.changed)
	ses.changed = make(chan struct{})
	return nil
}
