package standin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// An appender is the client's side of a stream that arrives in pieces.
type appender struct {
	t      testing.TB
	s      *Server
	client *connect.Client[message, message]
	id     string
	seqno  int64
	binary bool // data_binary instead of data
	wg     sync.WaitGroup
}

func newAppender(t testing.TB, s *Server, hc *http.Client, id string) *appender {
	c, _ := rpc(t, s, hc, procedureAppend, connect.WithSendGzip())
	return &appender{t: t, s: s, client: c, id: id}
}

func (a *appender) append(seqno int64, m *message) error {
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	req := dynamicpb.NewMessage(a.s.api.Message("aiserver.v1.BidiAppendRequest"))
	set(within(req, "request_id"), "request_id", a.id)
	set(req, "append_seqno", seqno)
	if a.binary {
		set(req, "data_binary", data)
	} else {
		set(req, "data", hex.EncodeToString(data))
	}
	return a.send(req)
}

func (a *appender) send(m *message) error {
	req := connect.NewRequest(m)
	headers(req.Header())
	_, err := a.client.CallUnary(context.Background(), req)
	return err
}

// all sends messages at once, the last first.
func (a *appender) all(list []*message) {
	first := a.seqno
	a.seqno += int64(len(list))
	for i := len(list) - 1; i >= 0; i-- {
		a.wg.Go(func() {
			if err := a.append(first+int64(i), list[i]); err != nil {
				a.t.Errorf("append %d: %v", first+int64(i), err)
			}
		})
		time.Sleep(2 * time.Millisecond) // so that they leave in this order
	}
}

// enveloped frames a message as a client that has no library for it does.
func enveloped(t testing.TB, m *message) string {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(data)))) + string(data)
}

// runOverSSE plays a turn as RunSSE and BidiAppend; unwrap turns the response's
// body into envelopes.
func runOverSSE(t *testing.T, s *Server, http2 bool, contentType string, unwrap func(io.Reader) io.Reader) []*message {
	t.Helper()
	return playOverSSE(t, s, &player{prompt: "What does Backoff do?"}, "r-"+contentType, http2, contentType, unwrap)
}

// playOverSSE is runOverSSE for any player and request id.
func playOverSSE(t *testing.T, s *Server, p *player, requestID string, http2 bool, contentType string, unwrap func(io.Reader) io.Reader) []*message {
	t.Helper()
	hc := httpClient(t, s, http2)
	p.t, p.api, p.blobs = t, s.api, map[string][]byte{}
	a := newAppender(t, s, hc, requestID)
	id := dynamicpb.NewMessage(s.api.Message("aiserver.v1.BidiRequestId"))
	set(id, "request_id", a.id)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+procedureRunSSE, strings.NewReader(enveloped(t, id)))
	if err != nil {
		t.Fatal(err)
	}
	headers(req.Header)
	req.Header.Set("Content-Type", "application/connect+proto")
	req.Header.Set("x-cursor-streaming", "true")
	// The first messages, the last one first, before the stream is even asked for.
	a.all([]*message{p.first(), build(t, s.api.client, `{"clientHeartbeat":{}}`), build(t, s.api.client, `{"clientHeartbeat":{}}`)})
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != contentType {
		t.Errorf("content type %q, want %q", got, contentType)
	}
	body := unwrap(resp.Body)
	var got []*message
	for {
		var head [5]byte
		if _, err := io.ReadFull(body, head[:]); err != nil {
			t.Fatalf("after %d messages: %v", len(got), err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(body, payload); err != nil {
			t.Fatalf("after %d messages: %v", len(got), err)
		}
		if head[0] == 2 {
			if string(payload) != "{}" {
				t.Errorf("the end says %s", payload)
			}
			a.wg.Wait()
			return got
		}
		m := dynamicpb.NewMessage(s.api.server)
		if err := proto.Unmarshal(payload, m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
		a.wg.Wait()
		a.binary = !a.binary
		a.all(p.answers(m))
	}
}

// events reads base64 events back into the bytes that they carry.
func events(r io.Reader) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		var pending bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			pending.Write(buf[:n])
			for {
				event, rest, ok := strings.Cut(pending.String(), "\n\n")
				if !ok {
					break
				}
				pending.Reset()
				pending.WriteString(rest)
				data, isData := strings.CutPrefix(event, "data: ")
				if !isData {
					if event != "event: end\ndata:" {
						pw.CloseWithError(fmt.Errorf("event %q", event))
					}
					continue
				}
				raw, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					pw.CloseWithError(err)
				}
				pw.Write(raw)
			}
			if err != nil {
				pw.CloseWithError(err)
				return
			}
		}
	}()
	return pr
}

func TestRunSSE(t *testing.T) {
	plain := func(r io.Reader) io.Reader { return r }
	for _, c := range []struct {
		form, contentType string
		unwrap            func(io.Reader) io.Reader
	}{
		{"raw", "text/event-stream", plain},
		{"base64", "text/event-stream", events},
		{"connect", "application/connect+proto", plain},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http2=%v", c.form, http2), func(t *testing.T) {
				s := start(t, Options{Script: []byte(`{"v":1,"sse":"` + c.form + `","appends":{"window":16,"hold_ms":10}}`)})
				got := runOverSSE(t, s, http2, c.contentType, c.unwrap)
				if answer := answerOf(got); !strings.Contains(answer, "The file is 3 lines long") {
					t.Errorf("answer %q", answer)
				}
			})
		}
	}
}

func TestRunPoll(t *testing.T) {
	s := start(t, Options{})
	hc := httpClient(t, s, false)
	a := newAppender(t, s, hc, "r-poll")
	p := &player{t: t, api: s.api, blobs: map[string][]byte{}, prompt: "What does Backoff do?"}
	a.all([]*message{p.first()})
	c, md := rpc(t, s, hc, procedureRunPoll)
	req := connect.NewRequest(build(t, md.Input(), `{"requestId":{"requestId":"r-poll"},"startRequest":true}`))
	headers(req.Header())
	stream, err := c.CallServerStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var got []*message
	ended := false
	for n := int64(0); stream.Receive(); n++ {
		if seqno := get(stream.Msg(), "seqno").Int(); seqno != n || ended {
			t.Fatalf("seqno %d at %d, after the end: %v", seqno, n, ended)
		}
		if ended = get(stream.Msg(), "eof").Bool(); ended {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(get(stream.Msg(), "data").String())
		if err != nil {
			t.Fatal(err)
		}
		m := dynamicpb.NewMessage(s.api.server)
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
		a.all(p.answers(m))
	}
	a.wg.Wait()
	if err := stream.Err(); err != nil || !ended || !strings.Contains(answerOf(got), "The file is 3 lines long") {
		t.Errorf("answer %q, ended %v, %v", answerOf(got), ended, err)
	}
}

func TestAppendsThatAreRefused(t *testing.T) {
	s := start(t, Options{})
	a := newAppender(t, s, httpClient(t, s, false), "r-1")
	beat := build(t, s.api.client, `{"clientHeartbeat":{}}`)
	request := func(form string) error {
		return a.send(build(t, s.api.Message("aiserver.v1.BidiAppendRequest"), form))
	}
	wantCode(t, a.append(16, beat), connect.CodeOutOfRange, "append_seqno 16 is too large: it must be less than 16 above the next expected number, 0")
	wantCode(t, request(`{"requestId":{"requestId":"r"},"data":"3a0"}`), connect.CodeInvalidArgument, "odd length hex")
	wantCode(t, request(`{"requestId":{"requestId":"r"},"data":"07"}`), connect.CodeInvalidArgument, "unmarshal into *agentv1.AgentClientMessage")
	wantCode(t, request(`{"requestId":{"requestId":"r"},"data":"3a00","dataBinary":"OgA="}`), connect.CodeInvalidArgument, "both")
	wantCode(t, request(`{"data":"3a00"}`), connect.CodeInvalidArgument, "request_id is empty")
	for range 2 { // the client may not have seen the first answer
		if err := a.append(0, beat); err != nil {
			t.Errorf("a repeated append: %v", err)
		}
	}
}

func TestAppendsThatNobodyTakesAreBounded(t *testing.T) {
	ses := &session{early: map[int64]*dynamicpb.Message{}, changed: make(chan struct{})}
	a, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	big := dynamicpb.NewMessage(a.client)
	big.SetUnknown(append([]byte{0xc2, 0x3e, 0x80, 0x80, 0x80, 0x02}, make([]byte, 4<<20)...))
	for seqno := range int64(3) {
		if err := ses.addMessage(seqno, big, 16); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, ses.addMessage(3, big, 16), connect.CodeResourceExhausted, "wait for RunSSE")
}

func TestSessionsAreBounded(t *testing.T) {
	var ss sessions
	for i := range maxSessions {
		if _, err := ss.get(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ss.get("one more")
	wantCode(t, err, connect.CodeResourceExhausted, "streams are open")
	ss.all["7"].touched = time.Now().Add(-2 * sessionIdle)
	if _, err := ss.get("one more"); err != nil {
		t.Errorf("with a stale one to forget: %v", err)
	}
}

func TestOneStreamARequest(t *testing.T) {
	s := start(t, Options{})
	if _, err := s.sessions.get("r-2"); err != nil {
		t.Fatal(err)
	}
	s.sessions.all["r-2"].claim()
	md := s.api.Method("agent.v1.AgentService", "RunSSE")
	hc := httpClient(t, s, true)
	status, body := post(t, hc, s.URL()+procedureRunSSE, "application/connect+proto", enveloped(t, build(t, md.Input(), `{"requestId":"r-2"}`)))
	if status != 200 || !strings.Contains(body, "already_exists") {
		t.Errorf("%d %q", status, body)
	}
	status, body = post(t, hc, s.URL()+procedureRunSSE, "application/connect+proto", enveloped(t, build(t, md.Input(), `{}`)))
	if status != 200 || !strings.Contains(body, "request_id is empty") {
		t.Errorf("%d %q", status, body)
	}
}
