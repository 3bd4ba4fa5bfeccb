package replay

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/conversation"
	subject "unwire/proto"
	"unwire/replay/internal/standintest"
	"unwire/replay/outbound"
	"unwire/replay/standin"
)

// poller is a client of the stand-in that asks for the server's half in calls
// of a few messages each.
type poller struct {
	*agent
	id    string
	calls int
}

func (p *poller) message(name string, v any) *dynamicpb.Message {
	p.Helper()
	m := dynamicpb.NewMessage(p.Schema.Message(name))
	b, err := json.Marshal(v)
	if err == nil {
		err = protojson.Unmarshal(b, m)
	}
	if err != nil {
		p.Fatal(err)
	}
	return m
}

func (p *poller) client(method, answer string) *connect.Client[dynamicpb.Message, dynamicpb.Message] {
	return connect.NewClient[dynamicpb.Message, dynamicpb.Message](&http.Client{Transport: p.Tap}, p.Server.URL()+method,
		connect.WithResponseInitializer(func(_ connect.Spec, m any) error {
			*m.(*dynamicpb.Message) = *dynamicpb.NewMessage(p.Schema.Message(answer))
			return nil
		}))
}

func header(h http.Header) {
	h.Set("authorization", "Bearer "+standintest.Token)
	h.Set("x-cursor-client-version", "cli-2026.02.01-abcdef0")
}

func (p *poller) append(number int, m *dynamicpb.Message) {
	p.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		p.Fatal(err)
	}
	req := connect.NewRequest(p.message("aiserver.v1.BidiAppendRequest", map[string]any{
		"data": hex.EncodeToString(b), "requestId": map[string]any{"requestId": p.id}, "appendSeqno": number,
	}))
	header(req.Header())
	p.calls++
	if _, err := p.client("/aiserver.v1.BidiService/BidiAppend", "aiserver.v1.BidiAppendResponse").CallUnary(p.Context(), req); err != nil {
		p.Fatal(err)
	}
}

// talk records a turn; it returns how many polls it took.
func (p *poller) talk(prompt string) (polls int) {
	p.Helper()
	p.append(0, p.Build(map[string]any{"runRequest": map[string]any{
		"action": map[string]any{"userMessageAction": map[string]any{"userMessage": map[string]any{"text": prompt, "messageId": "m-1"}}},
	}}))
	number := 1
	for eof := false; !eof; polls++ {
		req := connect.NewRequest(p.message("aiserver.v1.BidiPollRequest", map[string]any{"requestId": map[string]any{"requestId": p.id}, "startRequest": polls == 0}))
		header(req.Header())
		p.calls++
		stream, err := p.client("/agent.v1.AgentService/RunPoll", "aiserver.v1.BidiPollResponse").CallServerStream(p.Context(), req)
		if err != nil {
			p.Fatal(err)
		}
		for stream.Receive() {
			b, _ := protojson.Marshal(stream.Msg())
			var v struct {
				Data string
				EOF  bool
			}
			if err := json.Unmarshal(b, &v); err != nil {
				p.Fatal(err)
			}
			eof = eof || v.EOF
			data, err := base64.StdEncoding.DecodeString(v.Data)
			if err != nil {
				p.Fatal(err)
			}
			m := dynamicpb.NewMessage(p.Schema.Message("agent.v1.AgentServerMessage"))
			if err := proto.Unmarshal(data, m); err != nil {
				p.Fatal(err)
			}
			b, _ = protojson.Marshal(m)
			var said map[string]any
			if err := json.Unmarshal(b, &said); err != nil {
				p.Fatal(err)
			}
			for _, a := range p.Answers(said) {
				p.append(number, p.Build(a))
				number++
			}
		}
		if err := stream.Err(); err != nil {
			p.Fatal(err)
		}
		_ = stream.Close()
	}
	return polls
}

// Several calls that asked for the server's half are one conversation, and are
// sent again as several.
func TestPollsInSeveralCalls(t *testing.T) {
	t.Parallel()
	a := newAgent(t, standin.Options{Script: []byte(`{"v":1,"poll_messages":4,"fresh_ids":true}`)})
	a.Tap.Done = make(chan struct{}, 1000)
	p := &poller{agent: a, id: "1b2d3f40-0000-4000-8000-00000000c0de"}
	polls := p.talk("Does Backoff ever return more than its limit?")
	for range p.calls {
		select {
		case <-a.Tap.Done:
		case <-time.After(time.Minute):
			t.Fatal("the calls were not recorded to their end")
		}
	}
	if err := a.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := conversation.FindAll(t.Context(), a.Store)
	if err != nil {
		t.Fatal(err)
	}
	c, err := conversation.Decode(t.Context(), a.Store, all.Head(1), decode.Options{})
	if err != nil || c == nil || len(c.Heads) != polls || polls < 5 {
		t.Fatalf("%d polls recorded, %+v, %v", polls, c, err)
	}
	r := a.replay(c.ID)
	if r.Comparison != Same || r.Code != "ok" || r.Unsent != 0 {
		t.Errorf("%s %s %s %s %v", r.Comparison, r.Origin, r.Code, r.Message, r.Concluded)
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	o := a.settings()
	o.Pace = &outbound.Pace{Journal: openJournal(t, path)}
	plan := a.planned(c.ID, o)
	out, err := store.Create(filepath.Join(t.TempDir(), "answer.uwc"), store.Options{Profile: subject.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	if _, err := plan.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, err := range out.Exchanges(t.Context()) {
		if calls++; err != nil {
			t.Fatal(err)
		}
	}
	asked, answered := entries(t, path)
	if len(asked) != calls || len(answered) != calls || calls < 8 || asked[0].Of != 0 || asked[2].Of != 1 || answered[2].Status != http.StatusOK {
		t.Errorf("%d calls, of which the journal has %d, and %d answers", calls, len(asked), len(answered))
	}
	if r = a.replay(c.ID, "run_request.action.user_message_action.user_message.text=Tell me more"); r.Comparison != Differs || r.Code != "ok" {
		t.Errorf("edited: %s %s %s %s", r.Comparison, r.Origin, r.Code, r.Message)
	}
}
