package replay

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/internal/standintest"
	"unwire/replay/standin"
)

// An agent is a client of the stand-in whose calls are recorded and replayed.
type agent struct{ *standintest.Agent }

func newAgent(t *testing.T, o standin.Options) *agent {
	t.Helper()
	return &agent{standintest.New(t, o)}
}

// settings are those of a request to the stand-in.
func (a *agent) settings(edits ...string) settings {
	a.Helper()
	c, err := credential.Resolver{Getenv: func(name string) string {
		return map[string]string{credential.EnvToken: standintest.Token}[name]
	}}.Load("")
	if err != nil {
		a.Fatal(err)
	}
	o := settings{Roots: a.Roots, Schema: a.Schema, Credentials: c, Wait: time.Minute, random: rand.NewChaCha8([32]byte{1})}
	for _, text := range edits {
		e, err := edit.Parse("set", text)
		if err != nil {
			a.Fatal(err)
		}
		o.Edits = append(o.Edits, e)
	}
	return o
}

func (a *agent) plan(id int64, edits ...string) *Plan {
	a.Helper()
	return a.planned(id, a.settings(edits...))
}

func (a *agent) planned(id int64, o settings) *Plan {
	a.Helper()
	p, err := newPlan(a.Context(), a.Store, id, o)
	if err != nil {
		a.Fatal(err)
	}
	return p
}

func (a *agent) replay(id int64, edits ...string) *Result {
	a.Helper()
	r, err := a.plan(id, edits...).Send(a.Context(), nil)
	if err != nil {
		a.Fatal(err)
	}
	return r
}

func TestAgentTurn(t *testing.T) {
	for name, o := range map[string]struct {
		script string
		client []connect.ClientOption
	}{
		"default":       {"", nil},
		"gzip":          {"", []connect.ClientOption{connect.WithSendGzip()}},
		"json":          {"", []connect.ClientOption{connect.WithProtoJSON()}},
		"scattered ids": {`{"v":1,"scatter_ids":true}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			so := standin.Options{Seed: 7}
			if o.script != "" {
				so.Script = []byte(o.script)
			}
			a := newAgent(t, so)
			id := a.Turn("Does Backoff ever return more than its limit?", o.client...)
			r := a.replay(id)
			if r.Comparison != Same || r.Code != "ok" || r.Origin != FromServer {
				for _, c := range r.Diff {
					if c.Ignored == "" {
						t.Logf("%+v", c)
					}
				}
				t.Fatalf("%s %s %s: %s", r.Comparison, r.Origin, r.Code, r.Message)
			}
			p := a.plan(id)
			timed := 0
			for _, f := range p.shown.Frames {
				if f.Beat {
					timed++
				}
			}
			if r.Sent-r.Beats != len(p.shown.Frames)-timed || r.Sent < 6 || r.Received < 10 || r.Unsent != 0 || r.Concluded != nil {
				t.Errorf("%d of %d frames sent, %d received", r.Sent, len(p.shown.Frames), r.Received)
			}
			// The prompt is echoed, so another one gives another answer.
			r = a.replay(id, "run_request.action.user_message_action.user_message.text=What does Backoff do?")
			if r.Comparison != Differs || r.Code != "ok" {
				t.Errorf("edited: %s %s %s %s", r.Comparison, r.Origin, r.Code, r.Message)
			}
		})
	}
}

func TestAgentTurnPlan(t *testing.T) {
	t.Parallel()
	a := newAgent(t, standin.Options{})
	p := a.plan(a.Turn("Does Backoff ever return more than its limit?"))
	heartbeats, bound := 0, map[string]bool{}
	for _, f := range p.shown.Frames {
		if string(f.Data) == "\x3a\x00" {
			heartbeats++
			if f.After != 0 || f.Answers != "" {
				t.Errorf("frame %d is a heartbeat and waits for %s", f.Seq, f.Answers)
			}
			continue
		}
		for _, b := range f.Live {
			bound[b.Path+"<"+b.FromPath] = true
		}
	}
	if heartbeats == 0 {
		t.Error("no heartbeat")
	}
	// The tool call's number, also where its end is told, and its id, the number of a blob, and the blob itself.
	for _, want := range []string{"2.1<2.1", "2.15<2.15", "5.1.1<2.1", "3.1<4.1", "3.2.1<4.3.2"} {
		if !bound[want] {
			t.Errorf("%s is not bound: %v", want, bound)
		}
	}
}

func TestAgentRejects(t *testing.T) {
	t.Parallel()
	a := newAgent(t, standin.Options{})
	id := a.Turn("Does Backoff ever return more than its limit?")
	r := a.replay(id, "run_request.action.user_message_action.user_message.text=fault:error")
	if r.Comparison != Rejected || r.Code != "resource_exhausted" || r.ConnectCode() != 8 {
		t.Fatalf("%+v", r)
	}
	if len(r.Details) != 1 || !strings.Contains(r.Details[0].Text, "ERROR_RATE_LIMITED") {
		t.Errorf("details %+v", r.Details)
	}
	r = a.replay(id, "run_request.action.user_message_action.user_message.text=fault:drop-end")
	if r.Comparison != Differs || r.Origin != FromLocal || r.Code != "unavailable" {
		t.Errorf("dropped end: %+v", r)
	}
	r = a.replay(id, "run_request.action.user_message_action.user_message.text=fault:reset")
	if r.Comparison != Differs || r.Origin != FromLocal || r.Code != "unavailable" {
		t.Errorf("reset: %+v", r)
	}
}
