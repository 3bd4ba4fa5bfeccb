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

// errLeft cancels an exchange that the captured client cancelled too.
var errLeft = errors.New("left as the captured client did")

// Send sends a plan and compares the answer with the captured one.
//
// Shape: the frames are sent in order. A frame that responded to a server frame in the capture waits
// for the corresponding live frame, and uses the identifiers of the live server. The exchange is
// recorded in out, which may be nil. Limits: Options.MaxBytes, Timing.Timeout and Timing.Wait. Each
// call sends the plan once. Errors: ErrCredentials; errors of writing out; that of ctx, with the result
// so far. Failures between this machine and the server are in the Result.
func (p *Plan) Send(ctx context.Context, out *store.Store) (*Result, error) {
	for _, u := range p.targets() {
		if err := outbound.CheckTarget(u, p.o.Live, p.o.AllowHosts); err != nil {
			return p.refused(err), nil
		}
	}

	// Targets and secrets are checked again, because the plan may have been built earlier.
	if p.shown.Refusal != "" {
		return p.refused(errors.New(p.shown.Refusal)), nil
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

	// The journal has the request before anything is sent.
	number, err := p.noteRequest()
	if err != nil {
		return nil, err
	}
	rec, err := newRecord(p, out)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, entry: number, rec: rec, out: out, dialogue: live.NewDialogue()}
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
	if err := p.noteAnswer(number, res, outbound.RetryAfter(answer.ResponseHeaders.Get("retry-after"), time.Now())); err != nil {
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

// A session is the execution of one plan.
type session struct {
	p *Plan
	// entry is the number of the request in the journal.
	entry int64
	rec   *record
	// out is the capture that records the exchange; nil if nothing is recorded.
	out *store.Store
	mu  sync.Mutex
	// calls are the recordings of further calls of a split stream.
	calls []*record
	// turned is the append that the server rejected; nil if it accepted all.
	turned   *declined
	dialogue *live.Dialogue
	server   string // connected means that a connection without HTTP was opened.

	// connected says that a connection without HTTP was opened
	connected bool

	at      outbound.Progress
	fail    error // why it did not end as HTTP wants it; nil if it did
	sent    int   // frames
	beats   int   // of them, heartbeats
	unsent  int   // frames that the server left no time for, heartbeats left out
	notes   []string
	stale   []live.StaleValue
	unblock func() // ends a write that nobody reads; nil where none can block
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

// cause returns the reason why ctx ended, if it has, and err otherwise.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// readAnswer reads the response of one call. last means that the server's half of the stream is
// complete.
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

// outcome returns how the exchange ended, as stored in a capture.
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

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// body builds the request, and returns the function that sends its frames.
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

// writeFrames sends the frames, each once the server's frame that it waits for has arrived. It returns
// when the request may be closed.
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

// keep stores the results of a schedule. gone means that the server had closed before it read the last
// frame.
func (s *session) keep(c *live.Schedule, gone bool) {
	s.unsent, s.beats, s.notes, s.stale = c.Unsent(gone), c.Beats, c.Notes, c.Stale
}

// schedule is in which order, and when, the frames are written.
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

// cancelIfClientDid cancels the exchange if the captured client did.
func (s *session) cancelIfClientDid(ctx context.Context, cancel context.CancelCauseFunc) {
	if s.p.captured.Outcome == captures.Complete || s.p.captured.Outcome == captures.Reset {
		return
	}
	if _, over := s.dialogue.Wait(ctx, s.p.timing.Wait, s.p.timing.Quiet, s.p.links.Messages()); !over {
		cancel(errLeft)
	}
}

// noteRequest records in the journal that a plan is about to be sent.
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

// noteAnswer records the outcome of a request in the journal.
func (p *Plan) noteAnswer(n int64, r *Result, until time.Time) error {
	_, err := p.o.Pace.Note(outbound.Entry{
		N: n, Event: "answer", Host: p.url.Hostname(), Comparison: string(r.Comparison), Origin: string(r.Origin), Status: r.Status, Code: r.Code, Message: r.Message, Until: until,
	})
	return err
}

// answered reports whether a response has arrived.
func (s *session) answered(answer *decode.Exchange) bool {
	return answer.Status != 0 || s.connected
}
