package decode

import (
	"fmt"
	"testing"

	"unwire/captures"
)

// The events of a response are frames, also where its headers do not announce a stream.
func TestResponsesOfValues(t *testing.T) {
	for _, c := range []struct {
		contentType, url string
		chunks           []string
		protocol         Protocol
		frames           int
	}{
		{"application/x-ndjson", "http://h/api/chat", []string{"{\"a\":1}\n{\"a\":2}\n"}, ndjson, 2},
		{"application/jsonl; charset=utf-8", "http://h/api/chat", []string{"{\"a\":1}\n{\"a\"", ":2}\n"}, ndjson, 2},
		{"application/json", "http://h/api/chat", []string{"{\"a\":1}\n{\"a\":2}\n"}, HTTP, 2},
		{"application/json", "http://h/v1/m:stream", []string{"[{\"a\":1}", ",\r\n{\"a\":2}", ",\r\n{\"a\":2}", "]"}, HTTP, 3},
		{"application/json", "http://h/items", []string{"[{\"a\":1},{\"a\":2}]"}, HTTP, 1},
		{"application/octet-stream", "http://h/items", []string{"\x07{\"a\":1}\x07{\"a\":2}"}, HTTP, 2},
		{"text/plain", "http://h/items", []string{"{\"a\":1}\n{\"a\":2}\n"}, HTTP, 1},
	} {
		ex := &captures.Exchange{
			Method: "POST", URL: c.url, Status: 200, Outcome: captures.Complete, Transport: captures.HTTP,
			RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/json"}},
			ResponseHeaders: captures.Headers{{Name: "content-type", Value: c.contentType}},
		}
		s := NewStream(ex, Options{})
		frames := s.Feed(captures.Chunk{Dir: captures.Up, Data: []byte(`{"stream":true}`)})
		for i, data := range c.chunks {
			frames = append(frames, s.Feed(captures.Chunk{Dir: captures.Down, Seq: int64(i + 1), Data: []byte(data)})...)
		}
		frames = append(frames, s.Close()...)
		down, text := 0, ""
		for _, f := range frames {
			if f.Dir == captures.Down {
				down++
				text += string(f.Data)
			}
		}
		if code, _ := s.Status(); s.Call().Protocol != c.protocol || down != c.frames || code != "ok" {
			t.Errorf("%s %q: %s with %d frames (%s), status %q", c.contentType, c.chunks, s.Call().Protocol, down, fmt.Sprintf("%.80q", text), code)
		}
	}
}
