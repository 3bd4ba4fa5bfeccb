package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// exchange makes an exchange whose frames come down: msg for protobuf, string
// for anything else, *envelope.End for the end.
func exchange(frames ...any) *decode.Exchange {
	ex := &decode.Exchange{Code: "ok"}
	ex.Status = 200
	for i, f := range frames {
		frame := decode.Frame{Dir: captures.Down, Seq: i}
		frame.Framed = true
		switch f := f.(type) {
		case msg:
			frame.Data = f.bytes()
			frame.Tree = wire.Parse(frame.Data, wire.Options{})
		case string:
			frame.Data = []byte(f)
		case *envelope.End:
			frame.End, frame.Flags = f, envelope.EndStream
		}
		ex.Frames = append(ex.Frames, frame)
	}
	return ex
}

func delta(s string) msg      { return msg{1, msg{1, msg{1, s}}} }
func thought(s string) msg    { return msg{1, msg{4, msg{1, s}}} }
func tokens(n int) msg        { return msg{1, msg{8, msg{1, n}}} }
func call(id, arg string) msg { return msg{1, msg{2, msg{1, id, 2, msg{8, msg{1, arg}}}}} }

var (
	beat = msg{1, msg{13, msg{}}}
	done = msg{1, msg{14, msg{}}}
)

func TestExchanges(t *testing.T) {
	end := &envelope.End{}
	for _, c := range []struct {
		name string
		a, b *decode.Exchange
		want []string
	}{
		{
			"split in another way, with heartbeats",
			exchange(thought("Let me "), thought("think."), delta("Hel"), tokens(1), delta("lo wor"), tokens(2), delta("ld"), tokens(1), done, end),
			exchange(thought("Let"), thought(" me think."), delta("Hello"), tokens(2), tokens(1), delta(" world"), tokens(1), beat, beat, done, end),
			[]string{`change @down 1.13 0 -> 2 (heartbeat)`},
		},
		{
			"one delta against many",
			exchange(delta("Hello, world")), exchange(delta("Hel"), delta("lo, w"), delta("orld")), nil,
		},
		{
			"snapshots against deltas",
			exchange(delta("He"), delta("Hello"), delta("Hello, w"), delta("Hello, world")), exchange(delta("Hel"), delta("lo, w"), delta("orld")), nil,
		},
		{
			"another answer",
			exchange(delta("The sky "), delta("is blue.")), exchange(delta("The "), delta("sky "), delta("is grey.")),
			[]string{`change @down 1.1.1 "The sky is blue." -> "The sky is grey."`},
		},
		{
			"the turn does not end",
			exchange(delta("The sky "), delta("is blue."), done), exchange(delta("The sky "), delta("is blue.")),
			[]string{`remove @down/2 [{"n":1,"wire":"len","fields":[{"n":14,"wire":"len","value":""}]}] -> null`},
		},
		{
			"a tool call with another argument",
			exchange(delta("I "), delta("look."), call(uuidA, "/src/main.go"), done), exchange(delta("I look."), call(uuidB, "/src/name.go"), done),
			[]string{
				`change @down/2 1.2.1 "` + uuidA + `" -> "` + uuidB + `" (volatile uuid)`,
				`change @down/2 1.2.2.8.1 "/src/main.go" -> "/src/name.go"`,
			},
		},
		{
			"argument deltas of two calls",
			exchange(msg{7, msg{1, uuidA, 3, "{\"pa"}}, msg{7, msg{1, uuidA, 3, "th\":1}"}}, msg{7, msg{1, uuidB, 3, "{\"x\""}}, msg{7, msg{1, uuidB, 3, ":2}"}}),
			exchange(msg{7, msg{1, uuidB, 3, "{\"path\""}}, msg{7, msg{1, uuidB, 3, ":1}"}}, msg{7, msg{1, uuidC, 3, "{\"x\":"}}, msg{7, msg{1, uuidC, 3, "3}"}}),
			[]string{
				`change @down 7.1 "` + uuidA + `" -> "` + uuidB + `" (volatile uuid)`,
				`change @down 7.1 "` + uuidB + `" -> "` + uuidC + `" (volatile uuid)`,
				`change @down 7.3 "{\"x\":2}" -> "{\"x\":3}"`,
			},
		},
		{
			"JSON",
			exchange(`{"models":[{"name":"a","ctx":1},{"name":"b","ctx":2}],"id":"` + uuidA + `"}`),
			exchange(`{"id":"` + uuidB + `","models":[{"name":"b","ctx":3},{"name":"a","ctx":1},{"name":"c","ctx":null}]}`),
			[]string{
				`change @down/0 id "` + uuidA + `" -> "` + uuidB + `" (volatile uuid)`,
				`move @down/0 models[1] 1 -> 0`,
				`change @down/0 models[1].ctx 2 -> 3`,
				`add @down/0 models[2] null -> {"ctx":null,"name":"c"}`,
			},
		},
		{
			"JSON deltas",
			exchange(`{"text":"Hel"}`, `{"text":"lo"}`, `{"done":true}`), exchange(`{"text":"H"}`, `{"text":"el"}`, `{"text":"lo"}`, `{"done":true}`), nil,
		},
		{"plain text", exchange("one", "two"), exchange("o", "netwo"), nil},
		{
			"trailers",
			exchange(&envelope.End{Metadata: map[string][]string{"x-cost": {"12"}, "date": {"a"}}}), exchange(&envelope.End{Metadata: map[string][]string{"X-Cost": {"13"}, "date": {"a"}}}),
			[]string{`change trailers.x-cost "12" -> "13"`},
		},
	} {
		got := lines(Exchanges(c.a, c.b, Options{}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestExchangesErrors(t *testing.T) {
	a := exchange(delta("text "), delta("of it"))
	b := exchange(&envelope.End{Error: &envelope.Error{Code: "unavailable", Message: "try later", Details: []envelope.Detail{{Type: "x.Y", Value: []byte("hi"), Debug: []byte(`{"error":3}`)}}}})
	b.Code, b.Message, b.Status = "unavailable", "try later", 503
	got := lines(Exchanges(a, b, Options{}))
	want := []string{
		`change status "200" -> "503"`,
		`remove @down [{"n":1,"wire":"len","fields":[{"n":1,"wire":"len","fields":[{"n":1,"wire":"len","value":"text of it"}]}]}] -> null`,
		`change code "ok" -> "unavailable"`,
		`change message "" -> "try later"`,
		`add details[0] null -> {"type":"x.Y","value":{"error":3}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestExchangesRequest(t *testing.T) {
	a, b := exchange(msg{1, "edited text"}), exchange(msg{1, "unlike text"})
	for _, ex := range []*decode.Exchange{a, b} {
		ex.Frames[0].Dir = captures.Up
	}
	if got := fmt.Sprint(lines(Exchanges(a, b, Options{}))); got != `[change @up/0 1 "edited text" -> "unlike text"]` {
		t.Errorf("request: %s", got)
	}
	if got := Exchanges(a, b, Options{Answer: true}); len(got) != 0 {
		t.Errorf("answer alone: %q", lines(got))
	}
}
