package h1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// An endingRule is an exchange that a rule ends with an answer, or a reset if answer is nil, at the first frame of the
// request that is "stop".
type endingRule struct {
	rewrite.Exchange // the methods that a relay does not call
	answer           *rewrite.Response
	down             rewrite.Kind // how the response is split
}

func (e endingRule) Request() rewrite.Verdict                      { return rewrite.Verdict{} }
func (e endingRule) Response(int, captures.Headers)                {}
func (e endingRule) Recorded(int64)                                {}
func (e endingRule) Pace(context.Context, captures.Direction, int) {}
func (e endingRule) End()                                          {}
func (e endingRule) Framing(d captures.Direction) rewrite.Framing {
	if d == captures.Down {
		return rewrite.Framing{Kind: e.down}
	}
	return rewrite.Framing{Kind: rewrite.Envelopes}
}

func (endingRule) Diverts(captures.Direction) bool { return true }
func (endingRule) Paces() bool                     { return false }
func (e endingRule) Passes(f *rewrite.Frame) bool {
	return e.Frame(context.Background(), f).Action == rewrite.Pass
}

func (endingRule) ClientLeft()                                                     {}
func (endingRule) PassesEnvelopes(captures.Direction, []byte) (passed, frames int) { return 0, 0 }
func (endingRule) PassesMessage(captures.Direction, envelope.Flags, []byte) bool {
	return false
}

func (e endingRule) Frame(_ context.Context, f *rewrite.Frame) (v rewrite.Verdict) {
	if f.Dir == captures.Up && string(f.Data) == "stop" {
		v = rewrite.Verdict{Action: rewrite.Answer, Rule: "ends", Answer: e.answer}
	}
	return v
}

// stopChunk is the frame of a request at which an endingRule ends the exchange, as a chunk.
var stopChunk = "9\r\n\x00\x00\x00\x00\x04stop\r\n"

// ruleAnswer is what an endingRule answers.
var ruleAnswer = &rewrite.Response{Status: 200, Body: []byte("the rule's"), Tail: []byte("tail")}

// TestRuleEndsAfterResponse: if a rule ends an exchange at a frame of the request, the client gets the rule's answer
// only as far as it has not yet received the server's.
func TestRuleEndsAfterResponse(t *testing.T) {
	t.Parallel()
	const none = `up 0-9 ends ""`
	for _, c := range []struct {
		early  string
		rule   endingRule
		follow string
		reset  bool
		edits  []string
	}{
		// Complete responses.
		{"HTTP/1.1 204 No Content\r\nX-Early: yes\r\n\r\n", endingRule{answer: ruleAnswer}, "", false, []string{none}},
		{"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", endingRule{answer: ruleAnswer}, "", false, []string{none}},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n", endingRule{answer: ruleAnswer}, "", false, []string{none}},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", endingRule{answer: ruleAnswer, down: rewrite.Whole}, "", false, []string{none}},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x00\x00\x00\x00\x00", endingRule{answer: ruleAnswer, down: rewrite.Envelopes}, "", false, []string{none}},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", endingRule{answer: ruleAnswer}, "", false, []string{none}},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", endingRule{answer: ruleAnswer}, "", false, []string{none}},
		{"HTTP/1.1 204 No Content\r\n\r\n", endingRule{}, "", true, []string{none}},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", endingRule{}, "", true, []string{none}},

		// A part of the response: the rule's tail ends the body, unless its length is declared.
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", endingRule{answer: ruleAnswer}, "4\r\ntail\r\n0\r\n\r\n", false, []string{none, `down 5-5 ends "tail"`}},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", endingRule{answer: ruleAnswer}, "", true, []string{none}},

		// Nothing of it.
		{"HTTP/1.1 100 Continue\r\n\r\n", endingRule{answer: ruleAnswer}, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\nthe rule's", false, []string{none, "down head ends 200", `down 0-0 ends "the rule's"`}},
	} {
		server := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
			_, _ = io.WriteString(conn, c.early)
			return true
		})
		b := newTestRelay(t, server.addr, c.rule)
		b.write("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		got := make([]byte, len(c.early))
		if n, err := io.ReadFull(b.client, got); err != nil || string(got) != c.early {
			t.Fatalf("the client read %q, %v; want %q", got[:n], err, c.early)
		}

		b.write(stopChunk)
		if more, err := io.ReadAll(b.client); string(more) != c.follow || (err != nil) != c.reset {
			t.Errorf("%q, %v follow %q; want %q", more, err, c.early, c.follow)
		}
		_ = b.client.Close()
		x := b.end()[0]
		outcome := captures.Complete
		if c.reset {
			outcome = captures.Reset
		}
		if x.ex.Outcome != outcome || !slices.Equal(x.forwarded, c.edits) {
			t.Errorf("%q: %s %s, edits %q; want %q", c.early, x.ex.Outcome, x.ex.Error, x.forwarded, c.edits)
		}
		if strings.Contains(server.all(), "stop") {
			t.Errorf("%q: the server received the frame", c.early)
		}
	}
}

// TestRuleDropsTheRest: what was received behind the frame at which a rule ends an exchange, and what was received of
// the response and not forwarded, is recorded as dropped.
func TestRuleDropsTheRest(t *testing.T) {
	t.Parallel()
	const tail = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct {
		answer *rewrite.Response
		want   []string
	}{
		"reset":  {nil, []string{`up 0-9 ends ""`, `up 9-16 ends ""`, `down 6-9 ends ""`}},
		"answer": {ruleAnswer, []string{`up 0-9 ends ""`, `up 9-16 ends ""`, `down 6-9 ends "tail"`}},
	} {
		server := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
			_, _ = io.WriteString(conn, tail+"9\r\n\x00\x00\x00\x00\x01x\x00\x00\x00\r\n")
			return true
		})
		b := newTestRelay(t, server.addr, endingRule{answer: c.answer, down: rewrite.Envelopes})
		b.write("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		if _, err := io.ReadFull(b.client, make([]byte, len(tail+"6\r\n\x00\x00\x00\x00\x01x\r\n"))); err != nil {
			t.Fatal(err)
		}
		b.write("10\r\n\x00\x00\x00\x00\x04stop\x00\x00\x00\x00\x02be\r\n")
		_, _ = io.ReadAll(b.client) // a reset ends it
		_ = b.client.Close()
		if x := b.end()[0]; !slices.Equal(x.forwarded, c.want) || string(x.up) != "\x00\x00\x00\x00\x04stop\x00\x00\x00\x00\x02be" {
			t.Errorf("%s: %q is recorded with the edits %q, want %q", name, x.up, x.forwarded, c.want)
		}
	}
}

// TestRuleEndsDuringResponse: a rule ends an exchange at a frame of the request while the response is being forwarded.
// The recorded
// edit replaces what was received and not forwarded.
func TestRuleEndsDuringResponse(t *testing.T) {
	t.Parallel()
	for range 20 {
		server := newRawServer(t, func(_ *http.Request, conn *net.TCPConn) bool {
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			for err == nil {
				_, err = io.WriteString(conn, "6\r\n\x00\x00\x00\x00\x01x\r\n")
			}
			return false
		})
		b := newTestRelay(t, server.addr, endingRule{answer: ruleAnswer, down: rewrite.Envelopes})
		b.write("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(b.client), nil)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 6)
		if _, err := io.ReadFull(res.Body, body); err != nil {
			t.Fatal(err)
		}
		b.write(stopChunk)
		rest, err := io.ReadAll(res.Body)
		body = append(body, rest...)
		if err != nil || !strings.HasSuffix(string(body), "\x01xtail") {
			t.Fatalf("%d bytes, %v, at the end %q", len(body), err, body[max(0, len(body)-10):])
		}
		_ = b.client.Close()
		at := len(body) - len("tail")
		x := b.end()[0]
		if want := fmt.Sprintf(`down %d-%d ends "tail"`, at, len(x.down)); x.ex.Outcome != captures.Complete || x.forwarded[len(x.forwarded)-1] != want {
			t.Errorf("%s %s, edits %q; want %q", x.ex.Outcome, x.ex.Error, x.forwarded, want)
		}
	}
}
