package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/replay/live"
	"unwire/replay/outbound"
)

// readSize is the size of one read from a response, in bytes.
const readSize = 64 << 10

// errLeft is the cause of cancelling an exchange because the captured client cancelled it, too.
var errLeft = errors.New("unwire ended the stream where the captured client ended it")

// Send sends a plan and compares the response with the captured one. Each call sends the plan once.
//
// Shape: the frames are sent in order. A frame that responded to a server frame in the capture waits
// for the corresponding live frame, and uses the identifiers of the live server. The exchange is
// recorded in out, which may be nil.
// Limits: Options.MaxBytes, Timing.Timeout and Timing.Wait.
// Errors: ErrCredentials; errors of writing out; that of ctx, with the result so far. Failures between
// this machine and the server are in the Result.
func (p *Plan) Send(ctx context.Context, out *store.Store) (*Result, error) {
	for _, u := range p.targets() {
		if err := outbound.CheckTarget(u, p.o.Live, p.o.AllowHosts); err != nil {
			return p.refused(err), nil
		}
	}

	// Targets and secrets are checked again, because the plan may have been built earlier.
	if p.shown.Refusal != "" {
		return p.refused(fmt.Errorf("%w: %s", outbound.ErrRefused, p.shown.Refusal)), nil
	}
	if err := p.ready(); err != nil {
		return nil, err
	}
	if err := p.o.Pace.Admit(ctx, p.url.Hostname()); err != nil {
		if errors.Is(err, outbound.ErrRefused) {
			return p.refused(err), nil
		}
		return nil, fmt.Errorf("replay: %w", err)
	}

	// The server of --to may support another version of HTTP than the captured one.
	p, note, unsupported := p.inVersion(ctx)

	// The journal has the request before anything is sent.
	number, err := p.noteRequest()
	if err != nil {
		return nil, err
	}
	rec, err := newRecord(p, out)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, entry: number, rec: rec, out: out, dialogue: live.NewDialogue(), fail: unsupported, version: note}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("replay: %w", errors.Join(err, p.noteAnswer(number, &Result{Origin: FromLocal, Message: p.cleaner()(err.Error())}, time.Time{})))
	}
	res, err := p.judge(ctx, s)
	if err != nil {
		return nil, err
	}

	// A Retry-After delays further requests, also in later runs.
	answer := rec.snapshot()
	p.o.Pace.Observe(p.url.Hostname(), res.Status, res.Code, answer.ResponseHeaders.Get("retry-after"))
	if err := p.noteAnswer(number, res, res.RetryAfter); err != nil {
		return res, err
	}
	if out != nil {
		if err := out.Flush(context.WithoutCancel(ctx)); err != nil {
			return res, fmt.Errorf("replay: %w", err)
		}
	}
	if ctx.Err() != nil {
		return res, fmt.Errorf("replay: %w", context.Cause(ctx))
	}
	return res, nil
}

// A session is one execution of a plan: it sends the request and collects what is needed for the
// result.
type session struct {
	// p is the plan that is executed.
	p *Plan
	// entry is the number of the request in the journal, i.e. the log of all requests that unwire sent.
	entry int64

	// rec is the record of the exchange; of a split stream, that of the call for the server's half.
	rec *record
	// out is the capture that records the exchange; nil if nothing is recorded.
	out *store.Store

	// mu guards calls.
	mu sync.Mutex
	// calls are the records of further calls of a split stream: polls and appends.
	calls []*record
	// turned is the error of the append call that the server rejected; nil if it accepted all.
	turned *declined

	// dialogue has the frames and headers received so far; frames to send wait for them.
	dialogue *live.Dialogue

	// server is the address of the server that answered.
	server string

	// connected means that a WebSocket or raw connection was opened.
	connected bool

	// at records how far connecting has progressed.
	at outbound.Progress

	// version says that the HTTP version differs from the captured one; "" if it does not.
	version string

	// fail is the reason why the exchange did not end regularly; nil if it did.
	fail error

	// sent is the number of frames that were sent.
	sent int

	// beats is how many of the sent frames were heartbeats.
	beats int

	// unsent is the number of frames, without heartbeats, that were not sent because the server ended
	// first.
	unsent int

	// notes are remarks for Result.Concluded.
	notes []string

	// stale are values for Result.Stale.
	stale []live.StaleValue

	// unblock ends a blocked write of the request body after nobody reads it any more; nil if no write
	// can block.
	unblock func()
}

// run sends the request, and reads the response to its end.
//
// Errors: only if the request could not be built.
func (s *session) run(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, s.p.timing.Timeout, fmt.Errorf("the answer did not end within %s: %w", s.p.timing.Timeout, context.DeadlineExceeded))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.p.overConnection() {
		return s.runConnection(ctx, cancel)
	}
	if s.fail != nil {
		s.rec.end(nil, captures.Failed, explain(&s.at, s.fail, s.p.timing.Timeout).Error())
		return nil
	}
	tr := s.p.transport()
	defer tr.CloseIdleConnections()

	req, sendFrames, err := s.body(tr)
	if err != nil {
		s.rec.end(nil, captures.Failed, err.Error())
		return err
	}

	// Frames are sent while the answer is read, because each side may wait for the other.
	spoken := make(chan struct{})
	go func() {
		defer close(spoken)
		sendFrames(ctx, cancel)
	}()
	resp, err := tr.RoundTrip(req.WithContext(s.at.Trace(ctx, &s.server)))
	if err != nil {
		s.fail = cause(ctx, err)
		cancel(s.fail)
	} else {
		last := s.readAnswer(ctx, s.rec, resp)
		// reading has reported its error
		_ = resp.Body.Close()
		if s.p.split != nil {
			s.poll(ctx, tr, last)
		}
	}

	// The answer has ended, so the sender must not wait for frames any more.
	s.dialogue.End()
	if s.unblock != nil {
		s.unblock()
	}
	<-spoken
	if resp == nil {
		s.rec.end(nil, captures.Failed, explain(&s.at, s.fail, s.p.timing.Timeout).Error())
	}
	return nil
}

// cause returns the reason why ctx was cancelled, if it was, and err otherwise.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// readAnswer reads and records the response of one call. last means that no more of the server's half
// of the stream follows in further calls.
func (s *session) readAnswer(ctx context.Context, rec *record, resp *http.Response) (last bool) {
	if rec == s.rec {
		rec.response(resp.StatusCode, version(resp), captures.SortedHeaders(resp.Header), s.p.o.connection(resp), s.server)
		s.dialogue.AddHeaders(captures.SortedHeaders(resp.Header))
	}
	last = resp.StatusCode != http.StatusOK
	ex := rec.snapshot()
	stream := decode.NewStream(&ex, decode.Options{Profile: rec.profile})
	buf := make([]byte, readSize)
	for {
		n, err := resp.Body.Read(buf)
		// an answer to a cancelled request does not count
		if ctx.Err() != nil {
			s.fail = context.Cause(ctx)
			break
		}
		if n > 0 {
			chunk, cerr := rec.chunk(captures.Down, bytes.Clone(buf[:n]))
			if cerr != nil {
				s.fail = cerr
				break
			}

			// The sender waits for these frames.
			frames := stream.Feed(chunk)
			last = last || conversation.IsLast(rec.profile, stream.Call(), frames)
			s.dialogue.AddFrames(s.p.links, conversation.Carried(stream.Call(), frames, decode.Options{Profile: rec.profile}))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			s.fail = cause(ctx, err)
			break
		}
	}
	rec.end(captures.SortedHeaders(resp.Trailer), s.outcome(), reason(s.fail))
	return last
}

// outcome returns how the exchange ended, in the form that captures store. If the captured client
// cancelled its exchange, and this one was cancelled for that reason, that is the captured outcome.
func (s *session) outcome() captures.Outcome {
	switch {
	case s.fail == nil:
		return captures.Complete
	case errors.Is(s.fail, errLeft):
		s.fail = nil
		return s.p.captured.Outcome
	case errors.Is(s.fail, context.Canceled), errors.Is(s.fail, context.DeadlineExceeded), errors.Is(s.fail, errTooLarge), errors.Is(s.fail, live.ErrSilent):
		return captures.Canceled
	}
	return captures.Reset
}

// reason returns the text of an error; "" for nil.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// body builds the HTTP request, and returns it with a function that sends its frames while the response
// is read. For a body of known length, the request already contains them.
func (s *session) body(tr http.RoundTripper) (*http.Request, func(context.Context, context.CancelCauseFunc), error) {
	if s.p.split != nil {
		return s.pieces(tr)
	}

	// A streamed body is written while the answer is read.
	if !s.p.whole {
		r, w := io.Pipe()
		s.unblock = func() { _ = r.Close() } // never fails
		return s.p.request(r, -1), func(ctx context.Context, cancel context.CancelCauseFunc) {
			err := s.writeFrames(ctx, func(_ *PlanFrame, b []byte) error {
				// It is recorded before it can be answered, so that the answer comes after it.
				if _, err := s.rec.chunk(captures.Up, b); err != nil {
					return err
				}
				_, err := w.Write(b)
				return err
			})
			_ = w.CloseWithError(err) // never fails
			if err != nil {
				cancel(err)
				return
			}
			s.cancelIfClientDid(ctx, cancel)
		}, nil
	}
	if s.p.shown.Protocol == decode.ConnectGet || len(s.p.shown.Frames) == 0 {
		return s.p.request(nil, 0), s.cancelIfClientDid, nil
	}

	// All other bodies are sent at once, with a known length.
	var all []byte
	for i := range s.p.shown.Frames {
		f := &s.p.shown.Frames[i]
		b, err := s.p.encode(f, f.Data, f.changed())
		if err != nil {
			return nil, nil, err
		}
		all = append(all, b...)
	}
	s.sent = len(s.p.shown.Frames)
	if len(all) > 0 {
		if _, err := s.rec.chunk(captures.Up, all); err != nil {
			return nil, nil, err
		}
	}
	if len(all) == 0 {
		return s.p.request(http.NoBody, 0), s.cancelIfClientDid, nil
	}
	return s.p.request(bytes.NewReader(all), int64(len(all))), s.cancelIfClientDid, nil
}

// writeFrames sends the frames by calling write, each once the server's frame that it waits for has
// arrived. It returns when the request body may be closed.
func (s *session) writeFrames(ctx context.Context, write func(f *PlanFrame, b []byte) error) error {
	gone := false
	c := s.schedule(func(f *PlanFrame, data []byte, changed bool) error {
		b, err := s.p.encode(f, data, changed || f.changed())
		if err != nil {
			return err
		}
		if err := write(f, b); err != nil {
			gone = true // the server has closed its side; what it said tells why
			return err
		}
		s.sent++
		return nil
	})
	err := c.Run(ctx, s.p.shown.Hold)
	s.keep(c, gone)
	if gone {
		return nil
	}
	return err
}

// keep stores the results of a schedule that has ended. gone means that the server closed the stream
// before it read the last frame.
func (s *session) keep(c *live.Schedule, gone bool) {
	s.unsent, s.beats, s.notes, s.stale = c.Unsent(gone), c.Beats, c.Notes, c.Stale
}

// schedule returns a Schedule, which determines when each frame is sent. It calls write with a frame
// and its message, into which ids of the live server are already inserted; changed means that this
// changed the message.
func (s *session) schedule(write func(f *PlanFrame, data []byte, changed bool) error) *live.Schedule {
	uploads := make([]live.Upload, len(s.p.shown.Frames))
	for i := range uploads {
		f := &s.p.shown.Frames[i]
		uploads[i] = live.Upload{Turn: f.Turn, Index: i, Seq: f.Seq, Data: f.Data, Changed: f.changed()}
	}
	return live.NewSchedule(s.p.links, s.dialogue, uploads, s.p.timing.Wait, s.p.timing.Quiet, func(u *live.Upload, data []byte, changed bool) error {
		return write(&s.p.shown.Frames[u.Index], data, changed)
	})
}

// cancelIfClientDid cancels the exchange if the captured client did, once as many server messages as in
// the capture have arrived.
func (s *session) cancelIfClientDid(ctx context.Context, cancel context.CancelCauseFunc) {
	if s.p.captured.Outcome == captures.Complete || s.p.captured.Outcome == captures.Reset {
		return
	}
	if _, over := s.dialogue.Wait(ctx, s.p.timing.Wait, s.p.timing.Quiet, s.p.links.Messages()); !over {
		cancel(errLeft)
	}
}

// noteRequest writes to the journal, the log of sent requests, that the plan is about to be sent. It
// returns the number of the entry.
func (p *Plan) noteRequest() (int64, error) {
	clean := p.cleaner()
	e := outbound.Entry{
		Event: "request", Capture: p.shown.Exchange, Host: p.url.Hostname(), Method: p.shown.Method, URL: clean(p.shown.URL), Effects: p.shown.Effects, Edits: slices.Clone(p.shown.Edits),
	}
	for i := range e.Edits {
		e.Edits[i] = clean(e.Edits[i])
	}
	var bodies [][]byte
	for i := range p.shown.Frames {
		bodies = append(bodies, p.shown.Frames[i].Data)
	}
	return p.o.Pace.Note(e, bodies...)
}

// noteAnswer writes the outcome of request number n to the journal. until is the time before which the
// server wants no further request (Retry-After); the zero time means none.
func (p *Plan) noteAnswer(n int64, r *Result, until time.Time) error {
	_, err := p.o.Pace.Note(outbound.Entry{
		N: n, Event: "answer", Host: p.url.Hostname(), Comparison: string(r.Comparison), Origin: string(r.Origin), Status: r.Status, Code: r.Code, Message: r.Message, Until: until,
	})
	return err
}

// answered reports whether the server responded at all, with a status or by opening the connection.
func (s *session) answered(answer *decode.Exchange) bool {
	return answer.Status != 0 || s.connected
}
