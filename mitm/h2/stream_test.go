package h2

import (
	"strings"
	"testing"

	"unwire/captures"
)

// TestAnswerIsWholeBeforeItsEnd: a client that has all of an answer may break the
// stream off, or the connection, before END_STREAM comes. What it has lost
// nothing of is complete; what has its end in trailers or in a last message is not.
func TestAnswerIsWholeBeforeItsEnd(t *testing.T) {
	t.Parallel()
	plain := []string{"content-length", "5", "content-type", "text/plain"}
	stream := []string{"content-type", "application/connect+proto"}
	message, last := "\x00\x00\x00\x00\x02hi", "\x02\x00\x00\x00\x02{}"
	web, trailer := []string{"content-type", "application/grpc-web+proto"}, "\x80\x00\x00\x00\x10grpc-status: 0\r\n"
	for name, c := range map[string]struct {
		method, status string
		fields         []string
		body           []string // in DATA frames of its own each
		whole          bool
	}{
		"content-length":               {"GET", "200", plain, []string{"he", "llo"}, true},
		"content-length 0":             {"POST", "200", []string{"content-length", "0"}, nil, true},
		"a byte is missing":            {"GET", "200", plain, []string{"hell"}, false},
		"more than declared":           {"GET", "200", plain, []string{"hello!"}, false},
		"no content-length":            {"GET", "200", []string{"content-type", "text/plain"}, []string{"hello"}, false},
		"announced trailers":           {"GET", "200", append([]string{"trailer", "x-sum"}, plain...), []string{"hello"}, false},
		"HEAD":                         {"HEAD", "200", plain, nil, true},
		"204":                          {"GET", "204", nil, nil, true},
		"304":                          {"GET", "304", []string{"content-length", "5"}, nil, true},
		"103":                          {"GET", "103", nil, nil, false},
		"an error":                     {"POST", "404", plain, []string{"hello"}, true},
		"unary Connect":                {"POST", "200", []string{"content-type", "application/proto", "content-length", "2"}, []string{"\x08\x01"}, true},
		"gRPC":                         {"POST", "200", []string{"content-type", "application/grpc", "content-length", "7"}, []string{message}, false},
		"gRPC with a codec":            {"POST", "200", []string{"content-type", "application/grpc+proto", "content-length", "7"}, []string{message}, false},
		"gRPC-Web":                     {"POST", "200", web, []string{message, trailer}, true},
		"gRPC-Web without trailers":    {"POST", "200", append([]string{"content-length", "7"}, web...), []string{message}, false},
		"gRPC-Web as text":             {"POST", "200", []string{"content-type", "application/grpc-web-text", "content-length", "7"}, []string{message}, false},
		"Connect stream":               {"POST", "200", stream, []string{message, last[:3], last[3:]}, true},
		"Connect stream with a length": {"POST", "200", append([]string{"content-length", "14"}, stream...), []string{message + last}, true},
		"Connect stream without end":   {"POST", "200", append([]string{"content-length", "7"}, stream...), []string{message}, false},
		"Connect stream, cut end":      {"POST", "200", stream, []string{message, last[:6]}, false},
		"Connect stream, packed":       {"POST", "200", append([]string{"content-encoding", "gzip"}, stream...), []string{message, last}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endings := map[string]func(k *relayed){
				"CANCEL":        func(k *relayed) { k.send(k.client, appendFrame(nil, frameRSTStream, 0, 1, []byte{0, 0, 0, 8})) },
				"NO_ERROR":      func(k *relayed) { k.send(k.client, appendFrame(nil, frameRSTStream, 0, 1, make([]byte, 4))) },
				"close":         func(k *relayed) { k.client.Close() },
				"server closes": func(k *relayed) { k.server.Close() },
				"server aborts": func(k *relayed) { k.send(k.server, appendFrame(nil, frameRSTStream, 0, 1, make([]byte, 4))) },
			}
			for ending, end := range endings {
				k := newRelayed(t)
				k.answer(c.method, c.status, c.fields, c.body)
				end(k)
				want := captures.Canceled
				switch {
				case c.whole:
					want = captures.Complete
				case strings.HasPrefix(ending, "server"):
					want = captures.Reset
				}
				if ex := k.capture.one(); ex.Outcome != want || (ex.Error == "") != (want == captures.Complete) {
					t.Errorf("%s: recorded %q, %q; want %q", ending, ex.Outcome, ex.Error, want)
				}
			}
		})
	}
}

// answer has the client ask, without the end of its request, and the server
// answer, without the end of the answer.
func (k *relayed) answer(method, status string, fields, body []string) {
	k.t.Helper()
	k.send(k.client, appendFrame(nil, frameHeaders, flagEndHeaders, 1, newBlocks()(":method", method, ":path", "/", ":scheme", "https", ":authority", "x", "content-length", "2")))
	k.send(k.client, appendFrame(nil, frameData, 0, 1, []byte("up"))) // all that was declared
	k.send(k.server, appendFrame(nil, frameHeaders, flagEndHeaders, 1, newBlocks()(append([]string{":status", status}, fields...)...)))
	for _, b := range body {
		k.send(k.server, appendFrame(nil, frameData, 0, 1, []byte(b)))
	}
}

// TestEndAfterWholeAnswer: an empty DATA frame that ends the answer later, a
// server that says that something went wrong, and trailers that come.
func TestEndAfterWholeAnswer(t *testing.T) {
	t.Parallel()
	plain := []string{"content-length", "5"}
	end := func(k *relayed) { k.send(k.client, appendFrame(nil, frameData, flagEndStream, 1, nil)) }
	for name, c := range map[string]struct {
		then    func(k *relayed)
		outcome captures.Outcome
	}{
		"empty DATA": {func(k *relayed) {
			k.send(k.server, appendFrame(nil, frameData, flagEndStream, 1, nil))
			end(k)
		}, captures.Complete},
		"empty DATA after the client's RST_STREAM": {func(k *relayed) {
			k.send(k.client, appendFrame(nil, frameRSTStream, 0, 1, []byte{0, 0, 0, 8}))
			k.send(k.server, appendFrame(nil, frameData, flagEndStream, 1, nil))
		}, captures.Complete},
		"trailers": {func(k *relayed) {
			k.send(k.server, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, newBlocks()("x-sum", "1")))
			end(k)
		}, captures.Complete},
		"INTERNAL_ERROR": {func(k *relayed) {
			k.send(k.server, appendFrame(nil, frameRSTStream, 0, 1, []byte{0, 0, 0, 2}))
		}, captures.Reset},
		"GOAWAY with an error": {func(k *relayed) {
			k.send(k.server, appendFrame(nil, frameGoAway, 0, 0, []byte{0, 0, 0, 0, 0, 0, 0, 2}))
			k.server.Close()
		}, captures.Reset},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRelayed(t)
			k.answer("POST", "200", plain, []string{"hello"})
			c.then(k)
			if ex := k.capture.one(); ex.Outcome != c.outcome || string(k.capture.body(ex.ID, captures.Down)) != "hello" {
				t.Errorf("recorded %q, %q", ex.Outcome, ex.Error)
			}
		})
	}
}
