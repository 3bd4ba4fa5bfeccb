package follow

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// answer is what a server says, word by word.
const answer = "The lighthouse stands on the northern cape. It was built two hundred years ago, and its lamp still turns every night, so that ships find the harbour."

func textFrame(s string) []byte {
	return envelope.Append(nil, 0, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s))
}

// events are those of a streamed call whose answer comes word by word.
func events(id int64) []captures.Event {
	headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	ex := &captures.Exchange{
		ID: id, Method: "POST", URL: "https://api.test/demo.v1.ChatService/Chat", HTTP: "2", Status: 200, Started: time.Unix(1000, 0),
		RequestHeaders: headers, ResponseHeaders: headers,
	}
	list := []captures.Event{{Kind: captures.Began, Exchange: ex}}
	seq := int64(0)
	chunk := func(dir captures.Direction, data []byte) {
		list = append(list, captures.Event{Kind: captures.Received, Chunk: captures.Chunk{Exchange: id, Dir: dir, Seq: seq, Data: data}})
		seq++
	}
	chunk(captures.Up, textFrame("Tell me about the lighthouse on the cape, please."))
	list = append(list, captures.Event{Kind: captures.Responded, Exchange: ex})
	for word := range strings.SplitAfterSeq(answer, " ") {
		chunk(captures.Down, textFrame(word))
	}
	chunk(captures.Down, envelope.Append(nil, envelope.EndStream, []byte("{}")))
	ended := *ex
	ended.Outcome = captures.Complete
	return append(list, captures.Event{Kind: captures.Ended, Exchange: &ended})
}

// TestFollow: what is told piece by piece is the answer in the end.
func TestFollow(t *testing.T) {
	f := New(Options{})
	var told strings.Builder
	tell := func(u *Update) error {
		if u.Reset {
			told.Reset()
		}
		if u.Changed {
			told.WriteString(u.More)
		}
		return nil
	}
	updates := 0
	for _, ev := range events(1) {
		ended, done := f.Event(ev)
		if done {
			t.Error("done, though all are wanted")
		}
		if ended != nil {
			updates++
			_ = tell(ended)
			continue
		}
		if err := f.Flush(true, tell); err != nil {
			t.Fatal(err)
		}
	}
	if told.String() != answer || updates != 1 {
		t.Errorf("%d ended, told %q", updates, told.String())
	}
	if len(f.running) != 0 {
		t.Errorf("%d exchanges are still followed", len(f.running))
	}
}

// TestFollowOnly: of several exchanges one is wanted, and the follower is done with it.
func TestFollowOnly(t *testing.T) {
	f := New(Options{Only: 2})
	for _, ev := range events(1) {
		if u, done := f.Event(ev); u != nil || done {
			t.Fatalf("%+v, %v", u, done)
		}
	}
	var last *Update
	done := false
	for _, ev := range events(2) {
		last, done = f.Event(ev)
	}
	if !done || last == nil || last.Transcript.Answer != answer || last.Exchange.ID != 2 {
		t.Errorf("%+v, %v", last, done)
	}
}

// TestPiecesAreBounded: the oldest pieces are let go of.
func TestPiecesAreBounded(t *testing.T) {
	p := pieces{heads: map[int64]*running{}}
	for i := range maxPieces + 10 {
		p.addExchange(&decode.Exchange{Exchange: captures.Exchange{ID: int64(i)}})
	}
	if len(p.list) != maxPieces || p.list[0].ID != 10 {
		t.Errorf("%d pieces from %d on", len(p.list), p.list[0].ID)
	}
	p.addExchange(&decode.Exchange{Exchange: captures.Exchange{ID: 1 << 20, BytesUp: maxPieceBytes + 1}})
	if len(p.list) != 1 {
		t.Errorf("%d pieces beside one that fills all", len(p.list))
	}
}
