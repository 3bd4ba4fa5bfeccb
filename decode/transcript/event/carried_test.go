package event_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/transcript/event"
)

// over returns an exchange of gRPC in which the server sends one message.
func over(message []byte) *decode.Exchange {
	ex := &captures.Exchange{ID: 1, Method: "POST", Status: 200, Outcome: captures.Complete, Transport: captures.HTTP, ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/grpc"}}}
	s := decode.NewStream(ex, decode.Options{})
	frames := s.Feed(captures.Chunk{Exchange: 1, Dir: captures.Down, Data: envelope.Append(nil, 0, message)})
	return &decode.Exchange{Exchange: *ex, Frames: append(frames, s.Close()...)}
}

// body is a google.api.HttpBody.
func body(mediaType, data string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), mediaType)
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), data)
}

func TestCarriedJSON(t *testing.T) {
	const data = `{"content":"a text that is long enough to be most of the message"}`
	nested := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), body("application/json", data))
	for _, c := range []struct {
		name    string
		message []byte
		want    string
	}{
		{"declared", body("application/json", data), "a text that is long enough to be most of the message"},
		{"nested", nested, "a text that is long enough to be most of the message"},
		{"with parameters", body("application/ld+json; charset=utf-8", data), "a text that is long enough to be most of the message"},
		{"not declared", body("text/plain", data), ""},
		{"not JSON", body("application/json", "{a text"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for _, e := range event.Read(over(c.message)) {
				got += e.Root.String("content")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzCarriedJSON tests that the JSON of an event that a protobuf message carries is a part of the message.
func FuzzCarriedJSON(f *testing.F) {
	f.Add(body("application/json", `{"a":1}`))
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), body("application/json", `[{"a":[]}]`)))
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, e := range event.Read(over(message)) {
			if len(message) > 0 && !bytes.Contains(message, bytes.TrimSpace(e.Root.Raw)) {
				t.Errorf("%q is not in %q", e.Root.Raw, message)
			}
		}
	})
}
