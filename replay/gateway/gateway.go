// Package gateway runs the conversations of request-per-turn APIs on an agent whose
// conversation is one long stream.
//
// When the agent asks the client to run a tool, the client of such an API gets the call
// and its response ends, while the agent's stream stays open: its session is parked. The
// next request brings the transcript with the results. If it continues a parked session,
// the results go to the open stream, which costs no second start; otherwise the request
// is started cold, as a new stream with the whole transcript as its history.
//
// A session is found by the ids of its calls alone, since clients repeat headers and
// first messages in requests that have nothing to do with the session. It continues only
// if model, tools and the transcript before the results are the ones it knows.
//
//	core := gateway.New(upstream, gateway.Options{})
//	t, err := core.Turn(gateway.WithKey(ctx, key), request)
//	...
//	event, err := t.Next(ctx)
//
// The front ends (replay/gateway/chat, responses, messages) translate public APIs to and
// from Core's requests and events. The upstream is a replay/agent client.
package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// An Upstream opens streams to an agent server, each of which is one conversation.
type Upstream interface {
	// Models returns the models that the upstream offers.
	Models(ctx context.Context) ([]turn.Model, error)

	// Run opens a stream for a new conversation with the transcript in r. ctx limits only the opening.
	//
	// Errors: a *turn.Error.
	Run(ctx context.Context, r *turn.Request) (Stream, error)
}

// A Stream is one conversation with an agent server, which stays open while the client runs tools.
type Stream interface {
	// Next waits for the next event of the conversation. After turn.Ended it returns io.EOF. If ctx
	// ends first, no event is lost.
	Next(ctx context.Context) (turn.Event, error)

	// Pending reports whether the agent has announced a tool call but not requested it yet.
	Pending() bool

	// Answer sends the result of a tool call to the agent.
	//
	// Errors: a *turn.Error of kind NotFound if the agent has aborted the call.
	Answer(r turn.Result) error

	// ExchangeID returns the number of the stream's exchange in the capture; 0 if it is not recorded.
	ExchangeID() int64

	// Close ends the stream, also on the upstream server.
	Close()
}

// Options are the limits of a Core. A field that is zero has its default. A session is an open stream
// to the agent; it is parked while it waits for the client to send results of tool calls.
type Options struct {
	// Idle is how long a session may be parked before it is closed. Default: 15 minutes.
	Idle time.Duration
	// MaxAge is how long a session may last; an older one is closed instead of being parked again.
	// Default: 4 hours.
	MaxAge time.Duration
	// MaxSessions limits the number of open sessions. When another one is needed, the session that has
	// been parked for the longest time is closed. Default: 24.
	MaxSessions int
	// Models maps model names that the upstream server lacks (such as clients' default models) to its
	// models. The first matching pattern is used. Default: no mapping.
	Models []ModelAlias
	// NoReuse opens a new stream for every request, instead of continuing a parked session.
	NoReuse bool
	// Settle is how long the agent must be silent after a tool call before the response ends, so that
	// parallel calls are returned in one response. Default: 20 ms.
	Settle time.Duration
	// Silence is how long a response may wait for the agent, which sends nothing but heartbeats. The
	// response then ends with an error. Default: 10 minutes.
	Silence time.Duration
	// MaxResult limits the text of one tool result, in bytes. Longer text is truncated, with a notice
	// that the model sees. Default: 256 KiB.
	MaxResult int
}

// A ModelAlias maps model names that match a pattern to a model of the upstream server.
type ModelAlias struct {
	// Pattern is a model name, or a pattern with wildcards as in path.Match; case is ignored.
	Pattern string
	// Model is an id or alias of an upstream model; "" means the first model in the upstream's list.
	Model string
}

// setDefaults sets fields that are zero to their defaults.
func (o *Options) setDefaults() {
	setDefault(&o.Idle, 15*time.Minute)
	setDefault(&o.MaxAge, 4*time.Hour)
	setDefault(&o.MaxSessions, 24)
	setDefault(&o.Settle, 20*time.Millisecond)
	setDefault(&o.Silence, 10*time.Minute)
	setDefault(&o.MaxResult, 256<<10)
}

// setDefault sets *v to the default to if it is not positive.
func setDefault[T int | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

// pendingWait is how long a response waits for a tool call that the agent has announced but not
// requested yet.
const pendingWait = 2 * time.Second

// restartTime limits the opening of a stream that replaces a lost one.
const restartTime = time.Minute

// A Core implements front.Core: it runs the turns of client requests on streams to an agent. Its
// methods may be called concurrently.
type Core struct {
	// o are the options with defaults filled in.
	o Options

	// upstream opens streams to the agent.
	upstream Upstream

	// models caches the upstream's list of models.
	models modelCache

	// draining means that Shutdown was called, so that new turns are refused.
	draining atomic.Bool

	// closing waits for sessions whose streams are being closed.
	closing sync.WaitGroup

	// mu guards the fields below. To avoid deadlocks, no session's lock may be acquired while it is
	// locked.
	mu sync.Mutex

	// open are the running and parked sessions, by id.
	open map[string]*session

	// starting is the number of streams that are being opened.
	starting int

	// past are sessions that have ended.
	past *pastSessions

	// countsLock guards counts.
	countsLock sync.Mutex

	// counts are the statistics.
	counts Counts
}

// New returns a Core that runs turns on upstream. Shutdown must be called when it is no longer needed.
func New(upstream Upstream, o Options) *Core {
	o.setDefaults()
	return &Core{o: o, upstream: upstream, open: map[string]*session{}, past: newPastSessions()}
}

var _ front.Core = (*Core)(nil)

// keyContext is the context key for the API key of a request.
type keyContext struct{}

// WithKey returns a context for a request that was made with this API key. Sessions belong to a key: a
// request with another key cannot continue them.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyContext{}, sha256.Sum256([]byte(key)))
}

// keyOf returns the hash of the API key in ctx.
func keyOf(ctx context.Context) sum {
	key, _ := ctx.Value(keyContext{}).(sum)
	return key
}

// observerContext is the context key for an *Observer.
type observerContext struct{}

// An Observer is notified of the progress of one request.
type Observer struct {
	// OnStream is called with the capture's number of each upstream exchange that is used for the
	// request; more than one if a lost stream is replaced.
	OnStream func(exchange int64)
	// OnEnd is called when the last event of the response was returned to the front end.
	OnEnd func()
}

// WithObserver returns a context for a request whose progress is reported to o.
func WithObserver(ctx context.Context, o *Observer) context.Context {
	return context.WithValue(ctx, observerContext{}, o)
}

// observed connects the reader t to the observer in ctx, if there is one, and returns t.
func observed(ctx context.Context, t *reader) *reader {
	o, _ := ctx.Value(observerContext{}).(*Observer)
	if o == nil {
		return t
	}
	t.onEnd = o.OnEnd
	if id := t.s.stream.ExchangeID(); id != 0 {
		o.OnStream(id)
	}
	return t
}

// Turn runs one turn: it continues a parked session if the request is its continuation, and opens a new
// stream to the agent otherwise. See front.Core.
func (c *Core) Turn(ctx context.Context, r *turn.Request) (front.Turn, error) {
	if err := validate(r); err != nil {
		return nil, err
	}
	tr := read(r)
	key := keyOf(ctx)

	s, cause := c.find(key, tr)
	if s != nil {
		var t *reader
		if t, cause = s.resume(tr, r); t != nil {
			c.count(func(n *Counts) { n.Resumed++ })
			t.restart = func(ctx context.Context) (*reader, error) {
				// The caller's context bounds one event, which is too short for a start.
				ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), restartTime)
				defer stop()
				return c.start(ctx, key, r, tr, coldBroken)
			}
			return observed(ctx, t), nil
		}
	}
	t, err := c.start(ctx, key, r, tr, cause)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// validate returns an error for requests that no public API allows, such as one without messages.
func validate(r *turn.Request) error {
	invalid := func(param, format string, args ...any) error {
		return &turn.Error{Kind: turn.Invalid, Param: param, Message: fmt.Sprintf(format, args...)}
	}
	last := len(r.Messages) - 1
	for last >= 0 && r.Messages[last].Role == turn.System {
		last--
	}
	if last < 0 {
		return invalid("messages", "the conversation has no message from the user")
	}
	if r.Messages[last].Role == turn.Assistant {
		return invalid("messages", "the last message must be from the user or contain tool results, but it is from the assistant")
	}
	names := map[string]bool{}
	for _, tool := range r.Tools {
		if tool.Name == "" || names[tool.Name] {
			return invalid("tools", "tool names must be unique and not empty: %.60q", tool.Name)
		}
		names[tool.Name] = true
	}
	return nil
}

// start opens a new stream to the agent for a request. tr is the request's transcript in comparable
// form, and cause the reason why no session is continued, for the statistics.
func (c *Core) start(ctx context.Context, key sum, r *turn.Request, tr *transcript, cause coldCause) (*reader, error) {
	if err := c.reserve(); err != nil {
		return nil, err
	}
	cold := *r
	cold.Messages = repair(r.Messages, c.o.MaxResult)
	stream, err := c.upstream.Run(ctx, &cold)
	if err != nil {
		c.release()
		return nil, err
	}

	s := newSession(c, key, stream, r, tr)
	c.count(func(n *Counts) { n.Streams++; n.Cold[cause]++ })
	c.mu.Lock()
	c.starting--
	c.open[s.id] = s
	c.mu.Unlock()
	if c.draining.Load() {
		s.end(errDraining)
		return nil, errDraining
	}
	return observed(ctx, s.attach()), nil
}

// errDraining refuses requests after Shutdown was called.
var errDraining = &turn.Error{Kind: turn.Overloaded, Code: "shutting_down", Message: "unwire serve is shutting down"}

// reserve reserves a place for one more session, if necessary by closing the one that was parked first.
// It fails if all sessions are running, or after Shutdown.
func (c *Core) reserve() error {
	if c.draining.Load() {
		return errDraining
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open)+c.starting >= c.o.MaxSessions {
		oldest := c.longestParked()
		if oldest == nil {
			return &turn.Error{Kind: turn.Overloaded, Code: "too_many_sessions", Message: fmt.Sprintf("%d conversations are running, which is the limit of --max-sessions: try again when one has ended", c.o.MaxSessions)}
		}
		delete(c.open, oldest.id)
		c.count(func(n *Counts) { n.Evicted++ })
		c.closing.Go(func() { oldest.end(errEvicted) })
	}
	c.starting++
	return nil
}

// longestParked returns the session that was parked first; nil if all are running. The caller must hold
// c.mu.
func (c *Core) longestParked() *session {
	var oldest *session
	for _, s := range c.open {
		if at := s.parked.Load(); at != 0 && (oldest == nil || at < oldest.parked.Load()) {
			oldest = s
		}
	}
	return oldest
}

// release gives back a place that reserve has reserved.
func (c *Core) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting--
}

// find returns the session to which the last tool call in a transcript belongs; if there is none, or it
// has ended, also the reason why it cannot be continued. key is the hashed API key.
func (c *Core) find(key sum, tr *transcript) (*session, coldCause) {
	id, ok := tr.lastSession()
	if !ok {
		return nil, coldNew
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.open[id]; s != nil && s.key == key {
		return s, coldNew
	}
	return c.past.find(key, id)
}

// forget moves a session that has ended from the open to the past sessions.
func (c *Core) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, s.id)
	c.past.add(s)
}

// Shutdown refuses new turns, closes the parked sessions, and waits until the running ones have ended.
// When ctx ends, it cancels those that are still running.
func (c *Core) Shutdown(ctx context.Context) {
	c.draining.Store(true)
	c.mu.Lock()
	sessions := slices.Collect(maps.Values(c.open))
	c.mu.Unlock()
	for _, s := range sessions {
		if s.parked.Load() != 0 {
			s.end(errDraining)
		}
	}
	for _, s := range sessions {
		select {
		case <-s.ended:
		case <-ctx.Done():
			s.end(errDraining)
		}
	}
	c.closing.Wait()
}

// A modelCache stores the upstream's list of models for modelsTime.
type modelCache struct {
	// mu guards the fields below. It is held while the list is requested.
	mu sync.Mutex

	// list are the models; nil before the first request.
	list []turn.Model

	// at is the time at which the list was requested.
	at time.Time
}

// modelsTime is how long the list of models is cached.
const modelsTime = 5 * time.Minute

// Models returns the upstream's models. The list is cached for five minutes; if requesting it again
// fails, the older list is returned.
func (c *Core) Models(ctx context.Context) ([]turn.Model, error) {
	c.models.mu.Lock()
	defer c.models.mu.Unlock()
	if c.models.list != nil && time.Since(c.models.at) < modelsTime {
		return c.models.list, nil
	}
	list, err := c.upstream.Models(ctx)
	if err != nil {
		if c.models.list != nil {
			return c.models.list, nil
		}
		return nil, err
	}
	c.models.list, c.models.at = list, time.Now()
	return list, nil
}

// Model returns the model with this id or alias (ignoring case), or the one to which Options.Models
// maps the name.
//
// Errors: a *turn.Error of kind NotFound.
func (c *Core) Model(ctx context.Context, name string) (turn.Model, error) {
	list, err := c.Models(ctx)
	if err != nil {
		return turn.Model{}, err
	}
	if m, ok := modelNamed(list, name); ok {
		return m, nil
	}
	for _, alias := range c.o.Models {
		// A pattern was checked by whoever read it; one that is wrong matches nothing.
		if ok, _ := path.Match(strings.ToLower(alias.Pattern), strings.ToLower(name)); !ok {
			continue
		}
		if alias.Model == "" && len(list) > 0 {
			return list[0], nil
		}
		if m, ok := modelNamed(list, alias.Model); ok {
			return m, nil
		}
	}
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.ID
	}
	return turn.Model{}, &turn.Error{Kind: turn.NotFound, Param: "model", Code: "model_not_found", Message: fmt.Sprintf("the upstream has no model %.80q; it has %s", name, strings.Join(ids, ", "))}
}

// modelNamed returns the model in list whose id is name or, ignoring case, whose id, name or alias it
// is.
func modelNamed(list []turn.Model, name string) (turn.Model, bool) {
	for _, m := range list {
		if m.ID == name {
			return m, true
		}
	}
	for _, m := range list {
		for _, alias := range append([]string{m.ID, m.Name}, m.Aliases...) {
			if strings.EqualFold(alias, name) {
				return m, true
			}
		}
	}
	return turn.Model{}, false
}
