package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway"
)

// An upstream is an agent whose task is in the prompt: "task 7: 1 3 2" asks for one call,
// then three at once, then two, and ends with a text that quotes all results. Each call's
// argument names the task, and a result of another task breaks the stream.
type upstream struct {
	mu      sync.Mutex
	streams []*stream
	// cut breaks streams after so many answers; 0: never.
	cut int
	// refuse, if set, is returned by Run.
	refuse error
	// silent streams send nothing.
	silent bool
	models []turn.Model
}

func (u *upstream) Models(context.Context) ([]turn.Model, error) { return u.models, nil }

func (u *upstream) Run(_ context.Context, r *turn.Request) (gateway.Stream, error) {
	if u.refuse != nil {
		return nil, u.refuse
	}
	s := &stream{u: u, request: r, arrived: make(chan struct{}, 1), closed: make(chan struct{}), open: map[string]bool{}}
	if !u.silent {
		s.begin()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.streams = append(u.streams, s)
	return s, nil
}

// opened returns how many streams were opened, and how many are open.
func (u *upstream) opened() (all, open int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.streams {
		select {
		case <-s.closed:
		default:
			open++
		}
	}
	return len(u.streams), open
}

type stream struct {
	u       *upstream
	request *turn.Request
	task    string
	rounds  []int
	arrived chan struct{}
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	queue   []turn.Event
	fail    error
	taken   bool            // calls were taken back
	open    map[string]bool // native ids of calls without an answer
	calls   int
	answers []turn.Result
	results []string
}

// begin reads the task from the request, and what was done of it from its history.
func (s *stream) begin() {
	last := 0
	for i, m := range s.request.Messages {
		if m.Role == turn.User {
			last = i
		}
	}
	prompt := s.request.Messages[last].Parts[0].Text
	s.task, _, _ = strings.Cut(prompt, ":")
	_, sizes, _ := strings.Cut(prompt, ":")
	for size := range strings.FieldsSeq(sizes) {
		var n int
		if _, err := fmt.Sscan(size, &n); err == nil {
			s.rounds = append(s.rounds, n)
		}
	}
	for _, m := range s.request.Messages[last+1:] {
		for _, p := range m.Parts {
			if p.Result != nil {
				s.take(*p.Result)
			}
		}
	}
	s.calls = len(s.results)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round()
}

// take notes a result.
func (s *stream) take(r turn.Result) {
	text := ""
	for _, p := range r.Parts {
		text += p.Text
	}
	if r.Rejected {
		text = "rejected"
	} else if !strings.Contains(text, s.task+"/") {
		s.fail = &turn.Error{Kind: turn.Internal, Message: fmt.Sprintf("cross-talk: %s got %q", s.task, text)}
	}
	s.results = append(s.results, text)
	for len(s.rounds) > 0 && s.rounds[0] == 0 {
		s.rounds = s.rounds[1:]
	}
	if len(s.rounds) > 0 {
		s.rounds[0]--
	}
}

// round asks for the calls of the next round, or ends the turn.
func (s *stream) round() {
	for len(s.rounds) > 0 && s.rounds[0] == 0 {
		s.rounds = s.rounds[1:]
	}
	if len(s.rounds) == 0 {
		s.send(turn.Thinking{Text: "all done"}, turn.Text{Text: s.task + " done: "}, turn.Text{Text: strings.Join(s.results, ",")},
			turn.Ended{Reason: turn.Finished, Usage: &turn.Usage{Input: 10, Output: int64(len(s.results))}})
		return
	}
	s.send(turn.Text{Text: "Looking. "})
	for range s.rounds[0] {
		s.calls++
		native := fmt.Sprintf("%s-%d\nnative", s.task, s.calls)
		s.open[native] = true
		args, _ := json.Marshal(map[string]any{"of": s.task, "n": s.calls})
		s.send(turn.Calling{Call: turn.Call{ID: native, Name: "look", Arguments: args}})
	}
}

func (s *stream) send(events ...turn.Event) {
	s.queue = append(s.queue, events...)
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

func (s *stream) Next(ctx context.Context) (turn.Event, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			event := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return event, nil
		}
		fail := s.fail
		s.mu.Unlock()
		if fail != nil {
			return nil, fail
		}
		select {
		case <-s.arrived:
		case <-s.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *stream) Pending() bool     { return false }
func (s *stream) ExchangeID() int64 { return 0 }

func (s *stream) Answer(r turn.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return errors.New("the stream is closed")
	default:
	}
	if s.taken {
		return &turn.Error{Kind: turn.NotFound, Message: "the call was taken back"}
	}
	if !s.open[r.CallID] {
		s.fail = fmt.Errorf("%s: an answer to %q, which is not open", s.task, r.CallID)
		s.send()
		return s.fail
	}
	delete(s.open, r.CallID)
	s.answers = append(s.answers, r)
	if s.u.cut > 0 && len(s.answers) >= s.u.cut {
		s.fail = &turn.Error{Kind: turn.Upstream, Message: "the stream was cut"}
		s.send()
		return nil
	}
	s.take(r)
	if len(s.open) == 0 {
		s.round()
	}
	return nil
}

// takeBack ends the open calls without results, and the task with them.
func (s *stream) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
	s.taken, s.rounds = true, nil
	s.round()
}

func (s *stream) Close() { s.once.Do(func() { close(s.closed) }) }

// A client speaks a request-per-turn API: it sends its whole transcript each time.
type client struct {
	core     *gateway.Core
	key      string
	model    string
	tools    []turn.Tool
	messages []turn.Message
}

func newClient(core *gateway.Core, prompt string) *client {
	return &client{
		core: core, key: "key", model: "model", tools: []turn.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}},
		messages: []turn.Message{
			{Role: turn.System, Parts: []turn.Part{{Text: "Be brief."}}},
			{Role: turn.User, Parts: []turn.Part{{Text: prompt}}},
		},
	}
}

func (c *client) request() *turn.Request {
	return &turn.Request{Model: c.model, Messages: append([]turn.Message(nil), c.messages...), Tools: c.tools}
}

// An answer is one response.
type answer struct {
	text  string
	calls []turn.Call
	end   turn.Ended
}

func (c *client) send(ctx context.Context) (*answer, error) {
	t, err := c.core.Turn(gateway.WithKey(ctx, c.key), c.request())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return readAnswer(ctx, t)
}

func readAnswer(ctx context.Context, t interface {
	Next(context.Context) (turn.Event, error)
},
) (*answer, error) {
	var a answer
	for {
		event, err := t.Next(ctx)
		if errors.Is(err, io.EOF) {
			return &a, nil
		}
		if err != nil {
			return &a, err
		}
		switch e := event.(type) {
		case turn.Text:
			a.text += e.Text
		case turn.Calling:
			a.calls = append(a.calls, e.Call)
		case turn.Ended:
			a.end = e
		}
	}
}

// add puts an answer into the transcript, as clients do: without the reasoning.
func (c *client) add(a *answer) {
	m := turn.Message{Role: turn.Assistant}
	if a.text != "" {
		m.Parts = append(m.Parts, turn.Part{Text: strings.TrimSpace(a.text)})
	}
	for _, call := range a.calls {
		m.Parts = append(m.Parts, turn.Part{Call: &call})
	}
	c.messages = append(c.messages, m)
}

// result is what a client's tool returns.
func result(call turn.Call) turn.Part {
	var args struct {
		Of string `json:"of"`
		N  int    `json:"n"`
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		args.Of = err.Error()
	}
	return turn.Part{Result: &turn.Result{CallID: call.ID, Parts: []turn.Part{{Text: fmt.Sprintf("%s/%d", args.Of, args.N)}}}}
}

// run answers all calls until the final text.
func (c *client) run(ctx context.Context) (string, error) {
	for range 100 {
		a, err := c.send(ctx)
		if err != nil {
			return "", err
		}
		c.add(a)
		if len(a.calls) == 0 {
			return a.text, nil
		}
		for _, call := range a.calls {
			c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: []turn.Part{result(call)}})
		}
	}
	return "", errors.New("the conversation does not end")
}
