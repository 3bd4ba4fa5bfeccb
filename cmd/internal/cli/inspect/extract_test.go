package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/envelope"
	"unwire/decode/transcript"
)

// framed is an envelope around a message of one text, inside others.
func framed(text string, path ...protowire.Number) []byte {
	b := []byte(text)
	for i := len(path) - 1; i >= 0; i-- {
		b = protowire.AppendBytes(protowire.AppendTag(nil, path[i], protowire.BytesType), b)
	}
	return envelope.Append(nil, 0, b)
}

// TestFollow records an exchange and reads the answer as it is printed: each part
// is there before the next is recorded, and it ends with the exchange.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	store, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rec, err := store.Begin(captures.Exchange{
		Method: "POST", URL: "https://h.example/x.v1.Service/Talk", Started: time.Now(),
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, framed("What is said in the middle of the night?", 1, 2))
	rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/connect+proto"}})
	if err := store.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	defer stop()
	out, in := io.Pipe()
	a := &app.App{Out: term.New(in, "never"), Err: term.New(io.Discard, "never")}
	done := make(chan error, 1)
	go func() {
		err := runExtract(ctx, a, []string{path, fmt.Sprint(rec.ID())}, extractFlags{json: true, follow: true, top: 8})
		in.Close()
		done <- err
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	answer := ""
	// Thinking comes first and looks like the answer until that begins.
	for _, step := range []struct {
		path  []protowire.Number
		texts []string
		want  string
	}{
		{[]protowire.Number{1, 4, 1}, []string{"The user wants ", "to know about ", "nights."}, ""},
		{[]protowire.Number{1, 1, 1}, []string{"Nothing much ", "is said,"}, "Nothing much is said,"},
		{[]protowire.Number{1, 1, 1}, []string{" as all of them ", "are asl"}, "Nothing much is said, as all of them are asl"},
		{[]protowire.Number{1, 1, 1}, []string{"eep."}, "Nothing much is said, as all of them are asleep."},
	} {
		for _, text := range step.texts {
			rec.Chunk(captures.Down, framed(text, step.path...))
		}
		for step.want != "" && answer != step.want && lines.Scan() {
			var l contract.AnswerDelta
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			if l.Event == "reset" {
				answer = ""
			}
			answer += l.Delta
		}
		if answer != step.want && step.want != "" {
			t.Fatalf("answer %q, want %q", answer, step.want)
		}
	}
	rec.Chunk(captures.Down, envelope.Append(nil, envelope.EndStream, []byte("{}")))
	rec.End(captures.Complete, "")
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(last, `"answer":"Nothing much is said, as all of them are asleep.","thinking":"The user wants to know about nights."`) {
		t.Errorf("last line %s", last)
	}
}

// TestFollowInterrupted: without an exchange it goes on until it is stopped.
func TestFollowInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	store, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, stop := context.WithCancel(context.Background())
	a := &app.App{Out: term.New(io.Discard, "never"), Err: term.New(io.Discard, "never")}
	done := make(chan error, 1)
	go func() { done <- runExtract(ctx, a, []string{path}, extractFlags{follow: true, top: 8}) }()
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestParseLabel(t *testing.T) {
	for in, want := range map[string]query.Label{
		"1.1.1=assistant":          {At: query.Address{File: "a.uwc", Exchange: 2, Frame: -1}, Path: "1.1.1", Role: transcript.Assistant},
		"up/2.1:user":              {At: query.Address{File: "a.uwc", Exchange: 2, Frame: -1}, Dir: "up", Path: "2.1", Role: transcript.User},
		"down/a.b=tool_result":     {At: query.Address{File: "a.uwc", Exchange: 2, Frame: -1}, Dir: "down", Path: "a.b", Role: "tool_result"},
		"choices.delta:x=metadata": {At: query.Address{File: "a.uwc", Exchange: 2, Frame: -1}, Path: "choices.delta:x", Role: transcript.Metadata},
	} {
		if got, err := parseLabel(in, []string{"a.uwc", "2"}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", in, got, err, want)
		}
	}
	got, err := parseLabel("d/b.uwc#7=1.2=thinking", nil)
	if want := (query.Label{At: query.Address{File: "d/b.uwc", Exchange: 7, Frame: -1}, Path: "1.2", Role: transcript.Thinking}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, in := range []string{"", "1.1", "1.1=boss", "=", "b.uwc=1.1=user"} {
		if got, err := parseLabel(in, nil); err == nil {
			t.Errorf("%q: %+v", in, got)
		}
	}
}
