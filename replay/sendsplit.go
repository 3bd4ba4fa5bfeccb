package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/replay/live"
	"unwire/replay/outbound"
)

// pieces builds the request of a split stream that asks for the server's half, and returns it with a
// function that sends the client's frames in append calls while the response is read.
func (s *session) pieces(tr http.RoundTripper) (*http.Request, func(context.Context, context.CancelCauseFunc), error) {
	head := &s.p.split.head
	data, err := conversation.RebuildHead(s.p.captured.Profile, head.call, head.frame.Data, s.p.split.id)
	if err != nil {
		return nil, nil, err
	}
	body, err := s.p.encode(&head.frame, data, true)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.rec.chunk(captures.Up, body); err != nil {
		return nil, nil, err
	}
	return s.p.request(bytes.NewReader(body), int64(len(body))), func(ctx context.Context, cancel context.CancelCauseFunc) {
		if err := s.appendAll(ctx, tr); err != nil {
			cancel(err)
			return
		}
		s.cancelIfClientDid(ctx, cancel)
		s.cancelIfServerStays(ctx, cancel)
	}, nil
}

// cancelIfServerStays cancels a split stream after the server has sent as much as in the capture and
// then been silent: the server cannot know that no append call follows, and would keep the stream open.
func (s *session) cancelIfServerStays(ctx context.Context, cancel context.CancelCauseFunc) {
	if ready, _ := s.dialogue.Wait(ctx, s.p.timing.Timeout, s.p.timing.Wait, s.p.links.Messages()); ready {
		cancel(fmt.Errorf("%w %s: the server neither sends more nor ends the stream", live.ErrSilent, s.p.timing.Wait))
	}
}

// appendAll sends each frame in an append call of its own, once the server's frame that it waits for
// has arrived and the previous call was accepted.
func (s *session) appendAll(ctx context.Context, tr http.RoundTripper) error {
	gone := false
	c := s.schedule(func(f *PlanFrame, data []byte, _ bool) error {
		number := int64(s.sent)
		s.sent++
		err := s.append(ctx, tr, f, number, data)
		if err != nil {
			// Otherwise the server ended first, and its answer has the reason.
			if gone = s.dialogue.IsOver(); !gone {
				// false: it got no answer
				_ = errors.As(err, &s.turned)
			}
		}
		return err
	})
	err := c.Run(ctx, true)
	s.keep(c, gone)
	if gone {
		return nil
	}
	return err
}

// A declined error reports that the server answered an append call of a split stream with an RPC error.
type declined struct {
	// number is the sequence number of the append, from 0.
	number int64

	// code is the name of the RPC error code, and message its text.
	code, message string
}

// Error names the append and the server's message.
func (d *declined) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("append %d: %s", d.number, d.message), ": ")
}

// append sends one message of a split stream in an append call. number is its sequence number, from 0.
//
// Errors: a *declined if the server rejected it; errors of the connection.
func (s *session) append(ctx context.Context, tr http.RoundTripper, f *PlanFrame, number int64, data []byte) error {
	a := f.Append
	data, _, err := s.p.unredact(data)
	if err != nil {
		return err
	}

	// The append wraps the edited message again, in the envelope of the captured call.
	if data, err = conversation.RebuildAppend(&s.p.captured.Profile.Split.Append, a.frame.Data, s.p.split.id, number, data); err != nil {
		return err
	}

	// The call is recorded whether it succeeds or not.
	what := fmt.Sprintf("append %d", number)
	rec, resp, entry, err := s.call(ctx, tr, a, data)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, s.p.o.MaxBytes+1))
	if len(answer) > 0 {
		if _, cerr := rec.chunk(captures.Down, answer); cerr != nil {
			err = cerr
		}
	}
	if err != nil {
		err = cause(ctx, err)
		rec.end(nil, captures.Reset, err.Error())
		return fmt.Errorf("%s: %w", what, errors.Join(err, s.noteAnswer(ctx, a, rec, entry)))
	}
	rec.end(captures.SortedHeaders(resp.Trailer), captures.Complete, "")
	if err := s.noteAnswer(ctx, a, rec, entry); err != nil {
		return err
	}

	// An append can succeed in HTTP and fail in its message, so read its code.
	ex, err := decode.Decode(context.WithoutCancel(ctx), rec, rec.ex.ID, decode.Options{})
	if err != nil {
		return err
	}
	if ex.Code != "" && ex.Code != "ok" {
		return &declined{number, ex.Code, ex.Message}
	}
	return nil
}

// call sends the message data in a separate HTTP call, and records the call in the capture and the
// journal. It returns the record, the response, and the number of the journal entry.
func (s *session) call(ctx context.Context, tr http.RoundTripper, a *Append, data []byte) (*record, *http.Response, int64, error) {
	if err := s.p.o.Pace.Admit(ctx, a.url.Hostname()); err != nil {
		return nil, nil, 0, err
	}
	body, err := s.p.encode(&a.frame, data, true)
	if err != nil {
		return nil, nil, 0, err
	}

	// The journal has the request before anything is sent.
	request := outbound.Entry{Event: "request", Of: s.entry, Capture: a.Exchange, Host: a.url.Hostname(), Method: a.Method, URL: s.p.cleaner()(a.URL), Effects: s.p.shown.Effects}
	entry, err := s.p.o.Pace.Note(request, data)
	if err != nil {
		return nil, nil, 0, err
	}
	rec, err := s.p.record(captures.Exchange{
		Method: a.Method, URL: a.URL, HTTP: a.http, RequestHeaders: a.kept, RequestTrailers: a.shown,
	}, s.out)
	if err != nil {
		return nil, nil, 0, err
	}

	// The call is listed before it is sent, so that a failure is listed too.
	s.addCall(rec)
	if _, err := rec.chunk(captures.Up, body); err != nil {
		return nil, nil, 0, err
	}
	req := newRequest(a.Method, a.url, a.headers, a.trailers, bytes.NewReader(body), int64(len(body)))
	server, at := "", outbound.Progress{}
	resp, err := tr.RoundTrip(req.WithContext(at.Trace(ctx, &server)))
	s.at.Merge(&at)
	if err != nil {
		err = cause(ctx, err)
		rec.end(nil, captures.Failed, explain(&at, err, s.p.timing.Timeout).Error())
		return nil, nil, 0, errors.Join(err, s.noteAnswer(ctx, a, rec, entry))
	}
	rec.response(resp.StatusCode, version(resp), captures.SortedHeaders(resp.Header), s.p.o.connection(resp), server)
	return rec, resp, entry, nil
}

// noteAnswer writes the outcome of a call to the journal, together with a Retry-After of the server.
func (s *session) noteAnswer(ctx context.Context, a *Append, rec *record, entry int64) error {
	ex, err := decode.Decode(context.WithoutCancel(ctx), rec, rec.ex.ID, decode.Options{})
	if err != nil {
		return err
	}
	host := a.url.Hostname()
	s.p.o.Pace.Observe(host, ex.Status, ex.Code, ex.ResponseHeaders.Get("retry-after"))
	answer := outbound.Entry{
		N: entry, Event: "answer", Host: host, Status: ex.Status, Code: ex.Code, Origin: string(FromServer), Message: s.p.cleaner()(ex.Message),
		Until: outbound.RetryAfter(ex.ResponseHeaders.Get("retry-after"), time.Now()),
	}
	if ex.Status == 0 {
		answer.Origin, answer.Message = string(FromLocal), s.p.cleaner()(ex.Error)
	}
	_, err = s.p.o.Pace.Note(answer)
	return err
}

// addCall adds the record of a further call of the split stream.
func (s *session) addCall(rec *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec.ex.ID = int64(len(s.calls)) + 2
	s.calls = append(s.calls, rec)
}

// pollPause is the pause after a poll whose response was empty.
const pollPause = 50 * time.Millisecond

// poll repeats the captured poll calls of a split stream, each of which returns more of the server's
// half, until the server ends the stream. last means that it has ended already.
func (s *session) poll(ctx context.Context, tr http.RoundTripper, last bool) {
	list := s.p.split.polls
	for i := 0; !last && s.fail == nil && len(list) > 0 && ctx.Err() == nil; i++ {
		a := list[min(i, len(list)-1)]
		data, err := conversation.RebuildHead(s.p.captured.Profile, a.call, a.frame.Data, s.p.split.id)
		if err == nil {
			var rec *record
			var resp *http.Response
			var entry int64
			if rec, resp, entry, err = s.call(ctx, tr, a, data); err == nil {
				before := rec.down
				last = s.readAnswer(ctx, rec, resp)
				// reading has reported its error
				_ = resp.Body.Close()
				if err = s.noteAnswer(ctx, a, rec, entry); err == nil && rec.down == before {
					err = outbound.Pause(ctx, pollPause)
				}
			}
		}
		if err != nil && s.fail == nil {
			s.fail = cause(ctx, err)
		}
	}
}

// version returns the HTTP version of a response, "2" or "1.1".
func version(resp *http.Response) string {
	if resp.ProtoMajor == 2 {
		return "2"
	}
	return "1.1"
}

// joined returns the response of a split stream, joined from all of its calls; answer is that of the
// first. Other responses are returned unchanged.
func (s *session) joined(answer *decode.Exchange) (*decode.Exchange, error) {
	if s.p.split == nil {
		return answer, nil
	}
	parts := []*decode.Exchange{answer}
	for _, rec := range s.calls {
		ex, err := decode.Decode(context.Background(), rec, rec.ex.ID, decode.Options{})
		if err != nil {
			return nil, err
		}
		parts = append(parts, ex)
	}
	if joined := conversation.Join(parts, decode.Options{Profile: answer.Profile}); len(joined) == 1 {
		return joined[0].Exchange, nil
	}
	return answer, nil
}
