package filter

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

var now = time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC)

// parse reads a filter that has to be right.
func parse(t testing.TB, text string) *Filter {
	t.Helper()
	f, err := Parse(text, now)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// sample is a failed call of two frames up and one down.
func sample() *Exchange {
	return &Exchange{
		Exchange: &captures.Exchange{
			ID: 7, Method: "POST", URL: "https://api.example.com/shop.v1.Cart/AddItem", HTTP: "2", Status: 200,
			Started: now.Add(-5 * time.Minute), Duration: 2500 * time.Millisecond, Client: "127.0.0.1:5555",
			Process: captures.Process{PID: 9, Name: "node", Client: "connect-es"}, Outcome: captures.Complete,
			BytesUp: 300, BytesDown: 800, Source: "proxy",
			RequestHeaders:   captures.Headers{{Name: "Content-Type", Value: "application/proto"}},
			ResponseTrailers: captures.Headers{{Name: "x-region", Value: "EU west"}},
		},
		Call: decode.Call{Protocol: decode.ConnectUnary, Codec: "proto", Service: "shop.v1.Cart", RPC: "AddItem"},
		Code: "resource_exhausted", FramesUp: 2, FramesDown: 1, Now: now,
		Notes: []captures.Note{{Kind: captures.TextNote, Value: "look at this"}, {Kind: captures.MarkNote, Value: "star"}},
	}
}

// itemType is a definition for the messages of frames.
func itemType(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	field := func(name string, n int32, typ descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &n, Type: &typ}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	text := func(s string) *string { return &s }
	number := int32(2)
	zero := int32(0)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: text("shop.proto"), Package: text("shop.v1"), Syntax: text("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: text("Item"), Field: []*descriptorpb.FieldDescriptorProto{
				field("title", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING, ""),
				field("count", 2, descriptorpb.FieldDescriptorProto_TYPE_SINT32, ""),
				field("colour", 3, descriptorpb.FieldDescriptorProto_TYPE_ENUM, ".shop.v1.Colour"),
				field("maker", 4, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, ".shop.v1.Item"),
			}},
		},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: text("Colour"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: text("NONE"), Number: &zero}, {Name: text("RED"), Number: &number},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("Item")
}

// frameOf is a frame with a message.
func frameOf(dir captures.Direction, seq int, data []byte) *decode.Frame {
	return &decode.Frame{Dir: dir, Seq: seq, Tree: wire.Parse(data, wire.Options{}), Frame: envelope.Frame{Raw: data, Data: data}}
}

// item is {1: title, 2: zigzag(count), 3: colour, 4: {1: maker}}.
func item(title string, count int64, colour uint64, maker string) []byte {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, title)
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	b = protowire.AppendVarint(b, protowire.EncodeZigZag(count))
	b = protowire.AppendTag(b, 3, protowire.VarintType)
	b = protowire.AppendVarint(b, colour)
	b = protowire.AppendTag(b, 4, protowire.BytesType)
	inner := protowire.AppendTag(nil, 1, protowire.BytesType)
	return protowire.AppendBytes(b, protowire.AppendString(inner, maker))
}

// sampleFrames are the frames of sample.
func sampleFrames() []*decode.Frame {
	answer := frameOf(captures.Down, 0, nil)
	answer.Tree, answer.Data = nil, []byte(`{"error":{"message":"rate limit","tries":[3,4]},"ok":false}`)
	return []*decode.Frame{
		frameOf(captures.Up, 0, item("red rose", -3, 2, "Müller & Co")),
		frameOf(captures.Up, 1, item("tulip", 12, 0, "x*y")),
		answer,
	}
}

// scan evaluates a filter for an exchange with all its frames.
func scan(f *Filter, x *Exchange, frames []*decode.Frame, md protoreflect.MessageDescriptor) Truth {
	s := f.Scan(x)
	for _, fr := range frames {
		s.Add(Frame{fr, md})
	}
	return s.Result(true)
}

func TestExchanges(t *testing.T) {
	t.Parallel()
	md := itemType(t)
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"host:api.* method:AddItem", true},
		{"host:API.EXAMPLE.COM", true},
		{"host:example.com", false},
		{"host:api.example.com:443", true},
		{"host:api.example.com:8443", false},
		{"host:?pi.example.com,localhost", true},
		{"host:!api.*", false},
		{"url:*/shop.v1.Cart/*", true},
		{"verb:post", true},
		{"method:Cart/AddItem", true},
		{"method:shop.v1.Cart/add*", true},
		{"method:v1.Cart/AddItem", false},
		{"protocol:connect", true},
		{"protocol:connect-unary codec:proto http:2", true},
		{"protocol:grpc", false},
		{"status:200,201", true},
		{"status>=400", false},
		{"status!=404", true},
		{"code:!ok", true},
		{"code:!ok,resource_exhausted", false},
		{"code:resource_*", true},
		{"outcome:complete source:proxy", true},
		{"client:node", true},
		{"client:connect-es", true},
		{"client:127.0.0.1", true},
		{"client:127.0.0.1:5555", true},
		{"size>1KB", true},
		{"size>1KiB", true},
		{"size>1.1KB", false},
		{"size:1100 up:300 down=800", true},
		{"frames:3", true},
		{"duration>2s", true},
		{"duration>2500ms", false},
		{"duration<=2.5s", true},
		{"started>-10m", true},
		{"started>-4m", false},
		{"started>=2026-11-22", true},
		{"started>=2026-11-22T10:25", true},
		{"started>2026-11-22T10:25:00", false},
		{"started<2026-11-22T11:26+01:00", true},
		{"header:content-type", true},
		{"header:X-Region=\"EU*\"", true},
		{"header:x-region=\"eu*\"", false},
		{"header:x-region!=US", true},
		{"note:\"at th\"", true},
		{"note:NOTHING", false},
		{"mark:star", true},
		{"is:failed", true},
		{"is:open,replay", false},
		{"not is:edited not is:shortened", true},
		{"id:7", true},
		{"(id:1 or id:7) code:!ok", true},
		{"id:1 or id:7 not code:ok", true},
		{"id:1 or (id:7 code:ok)", false},
		{"not not id:7", true},

		{"text:\"rate limit\"", true},
		{"\"rate limit\"", true},
		{"limit", true},
		{"Limit", false},
		{"text:r?te*mit", true},
		{"text:roses", false},
		{"dir:down text:limit", true},
		{"dir:up text:limit", false},
		{"(dir:up) text:limit", true},
		{"dir:up (text:limit)", true},
		{"dir:down not text:limit", false},
		{"dir:down not text:rose", false},
		{"not (dir:up text:limit)", true},
		{"frame:1 text:tulip", true},
		{"len>1KB", false},
		{"path:1", true},
		{"path:5", false},
		{"path:1=\"red*\"", true},
		{"path:1:tulip,rose", true},
		{"path:1!=tulip", false},
		{"path:4.1=\"x\\*y\"", true},
		{"path:4.1=\"Müller*\"", true},
		{"path:*.1=\"Müller & Co\"", true},
		{"path:3=2", true},
		{"path:3>2", false},
		{"path:title=tulip", true},
		{"path:count=\"-3\"", true},
		{"path:count<0", true},
		{"path:count>12", false},
		{"path:colour:RED", true},
		{"path:maker.title=\"x*\"", true},
		{"path:**.title:tulip", true},
		{"path:error.message=\"rate limit\"", true},
		{"path:error.tries.1>3", true},
		{"path:error.tries", true},
		{"path:ok=false", true},
		{"type:shop.v1.item", true},
		{"type:shop.v1.Order", false},
		{"is:malformed,compressed,end", false},
	} {
		f := parse(t, c.text)
		if got := scan(f, sample(), sampleFrames(), md); got != truthOf(c.want) {
			t.Errorf("%s: %d, want %v", c.text, got, c.want)
		}
	}
}

// Without definitions, a value matches if one of the types that its bytes allow does.
func TestUndefined(t *testing.T) {
	t.Parallel()
	b := protowire.AppendTag(nil, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, 1)
	b = protowire.AppendTag(b, 2, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 0x4004000000000000) // 2.5
	b = protowire.AppendTag(b, 3, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte{0xff, 0x00, 0xab})
	b = protowire.AppendTag(b, 4, protowire.VarintType)
	b = protowire.AppendVarint(b, 1<<64-1)
	for text, want := range map[string]bool{
		"path:1=1": true, "path:1=true": true, "path:1=false": false, "path:2=2.5": true, "path:2>2": true,
		"path:3=ff00ab": true, "path:4=\"-1\"": true, "path:4=18446744073709551615": true, "path:title": false,
	} {
		if got := scan(parse(t, text), sample(), []*decode.Frame{frameOf(captures.Up, 0, b)}, nil); got != truthOf(want) {
			t.Errorf("%s: %d, want %v", text, got, want)
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "up0 up1 down0",
		"dir:up":                      "up0 up1",
		"dir:!up":                     "down0",
		"code:ok":                     "",
		"frame>0 method:AddItem":      "up1",
		"not text:rose dir:up":        "up1",
		"text:rose or text:\"limit\"": "up0 down0",
	} {
		var got []string
		for _, fr := range sampleFrames() {
			if parse(t, text).Frame(sample(), Frame{fr, nil}) == Yes {
				got = append(got, fr.Dir.String()+string(rune('0'+fr.Seq)))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// What is not known yet decides nothing, unless the rest does.
func TestUnknown(t *testing.T) {
	t.Parallel()
	open := sample()
	open.Outcome, open.Code, open.Duration = captures.InFlight, "", 0
	for text, want := range map[string]Truth{
		"code:ok": Unknown, "code:!ok": Unknown, "is:open": Yes, "is:failed": Unknown,
		"code:ok or id:7": Yes, "code:ok id:8": No, "size>1KB": Yes, "size<1KB": Unknown, "size>1MB": Unknown,
		"duration>4m": Yes, "duration>6m": No, "text:x": Unknown, "text:x id:8": No, "outcome:!failed": Unknown,
	} {
		if got := parse(t, text).Exchange(open); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	listed := sample()
	listed.Missing = Head | Notes
	for text, want := range map[string]Truth{"header:x-region": Unknown, "mark:star": Unknown, "client:node": Unknown, "host:*": Yes} {
		if got := parse(t, text).Exchange(listed); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	s := parse(t, "text:rose dir:up").Scan(sample())
	if s.Result(false) != Unknown {
		t.Error("a scan is decided before its first frame")
	}
	s.Add(Frame{sampleFrames()[0], nil})
	if s.Result(false) != Yes {
		t.Error("a scan is not decided by the frame that matches")
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Facts{
		"host:x code:!ok size>1 duration>1s method:Run is:failed": 0,
		"header:x":        Head,
		"note:x mark:y":   Notes,
		"dir:up":          Frames,
		"path:1.*":        Frames,
		"path:title":      Frames | Types,
		"not (type:x)":    Frames | Types,
		"is:end source:x": Frames | Head,
	} {
		if got := parse(t, text).Needs(); got != want {
			t.Errorf("%s: %b, want %b", text, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`hots:x`:                     `column 1: "hots" is not a key of filters; did you mean "host"?`,
		`size>big`:                   `column 6: size must be a number of bytes, such as 4096, 64KB or 64KiB, not "big"`,
		`duration>2`:                 `column 10: duration needs a unit, such as 2s or 2ms`,
		`id:1 text:x "a`:             `column 13: the closing double quote is missing`,
		`id:1)`:                      `column 5: the parenthesis ")" has no "(" before it`,
		`(id:1`:                      `column 1: the parenthesis "(" is not closed`,
		`id:1 or`:                    `column 8: the filter lacks a condition, such as host:api.example.com`,
		`or id:1`:                    `column 1: a condition is missing before "or"; to search for this word, put it in double quotes`,
		`()`:                         `column 2: a condition, such as host:api.example.com, is missing before ")"`,
		`host:`:                      `column 6: the value is missing; write "" for the empty text, or * for any value`,
		`url:https://x`:              `column 10: the character ":" must be in double quotes here`,
		`host>x`:                     `column 5: host must be followed by a colon, not by ">"`,
		`status:abc`:                 `column 8: status must be a number, such as 7, not "abc"`,
		`dir:sideways`:               `column 5: dir must be one of up, down, not "sideways"`,
		`is:fail*`:                   `column 4: is must be one of edited, failed, open, shortened, replay, compressed, end, malformed, not "fail*"`,
		`code:ok,bad`:                `column 9: code must be one of ok, canceled`,
		`path:1..2`:                  `column 6: path "1..2" at offset 2: a field is missing before the dot`,
		`path:3!gzip.1`:              `column 6: path "3!gzip.1": !gzip is not needed here, because the search looks inside every layer`,
		`started>yesterday`:          `column 9: started must be a time, such as 2026-11-22T10:00, or a time ago, such as -10m, not "yesterday"`,
		`größe:x`:                    `column 1: "größe" is not a key of filters`,
		`"ä" id:x`:                   `column 8: id must be a number`,
		`text:"\q"`:                  `column 7: a backslash must be followed by one of`,
		`text:"a"b`:                  `column 9: the character "b" must be in double quotes here`,
		strings.Repeat("a ", 101):    `column 201: the filter has more than 100 conditions`,
		strings.Repeat("(", 21):      `column 21: parentheses are nested more than 20 deep`,
		strings.Repeat("a", 5000):    `column 1: a filter has at most 4096 bytes, not 5000`,
		"text:\xff":                  `column 6: the filter is not UTF-8`,
		`size:99999999999999999999Z`: `column 6: size must be a number of bytes`,
	} {
		_, err := Parse(text, now)
		if e := (*Error)(nil); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

// The examples of the specification are filters.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"host:api.* method:Run", `dir:down text:"rate limit"`, "code:!ok size>1KB", "duration>2s or is:failed",
		`path:1.7="x*" not path:1.9`, "status>=400 (host:a.* or host:b.*)", "a b or not c d", "code:* code:!ok", "host:localhost:8080",
		`host:api.* method:Run dir:down code:!ok size>1KB duration>2s path:1.7 path:1.7="x*" text:"rate limit" is:edited is:failed`,
	} {
		parse(t, text)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"**", "ab", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"*ab", "aab", true},
		{"?", "é", true},
		{"?", "", false},
		{"a?*", "a", false},
		{"*?c", "abc", true},
		{"*?b*", "bab", true},
		{`\*\?\\`, `*?\`, true},
		{"*a*", strings.Repeat("b", 100_000), false},
	} {
		if got := newPattern(c.pattern).matches(c.text); got != c.want {
			t.Errorf("%q matches %.20q: %v", c.pattern, c.text, got)
		}
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	known := func(key string) []string {
		return map[string][]string{"host": {"api.example.com", "*.odd host"}, "path": {"1.7", "1.9"}}[key]
	}
	for text, want := range map[string]string{
		"":                    "0 host: method: code: status:",
		"ho":                  "0 host:",
		"id:1 du":             "5 duration:",
		"id:1 o":              "5 outcome: or",
		"(no":                 "1 note: not",
		"host:":               `5 api.example.com "\*.odd host"`,
		"host:API":            "5 api.example.com",
		"host:x,a":            "7 api.example.com",
		`host:"*`:             `5 "\*.odd host"`,
		"code:!un":            "6 unknown unimplemented unavailable unauthenticated",
		"is:f":                "3 failed",
		"size":                "0 size:",
		"size>":               "4 > >=",
		"size>10k":            "7 kB",
		"size>10K":            "7 K KB KiB",
		"duration>2m":         "10 ms m",
		"path:1":              "5 1.7 1.9",
		"not (id:1 or host:a": "18 api.example.com",
	} {
		c, err := Complete(text, len(text), known)
		got := string(rune('0' + c.From%10))
		if c.From >= 10 {
			got = "1" + got
		}
		for i, k := range c.Candidates {
			if text == "" && i == 4 {
				break
			}
			got += " " + k.Text
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) || err != nil {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := Complete("size>big ho", 11, nil); err == nil {
		t.Error("completed behind an error")
	}
}

// TestQuote: the pattern that quote returns matches the text alone.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "", "and", "a b", "a*b?", `\`, `"`, `\"`, "a:1", "tab\t\n", "ü(x)"} {
		f := parse(t, "text:"+quote(text))
		if got := f.frames.operandOrSelf().term.patterns[0]; !got.matches(text) || len(got.parts) != 1 || got.matches(text+"x") {
			t.Errorf("%q is quoted as %s", text, quote(text))
		}
	}
}

// operandOrSelf is the only operand of a node.
func (n *node) operandOrSelf() *node {
	if len(n.operands) == 1 {
		return n.operands[0]
	}
	return n
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"host:api.* method:Run dir:down code:!ok size>1KB duration>2s", `path:1.7="x*" or (not text:"rate \"limit\\" header:a="b")`,
		"started>-10m started<2026-11-22T10:00Z", `is:failed,end "\x41\u00e9\*" id:!1,2`, "((a) b) or not not c", "path:\"a b\".1!=x",
	} {
		f.Add(s, len(s)/2)
	}
	frames := sampleFrames()
	f.Fuzz(func(t *testing.T, s string, at int) {
		_, _ = Complete(s, at, func(string) []string { return []string{"a b", "*"} })
		p, err := Parse(s, now)
		if err != nil {
			if e := (*Error)(nil); !errors.As(err, &e) || e.Column < 1 || e.Column > utf8.RuneCountInString(s)+1 {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		x := sample()
		alone := p.Exchange(x)
		all := scan(p, x, frames, nil)
		if all == Unknown || alone != Unknown && alone != all {
			t.Fatalf("%q: %d without the frames, %d with them", s, alone, all)
		}
		if negated, err := Parse("not ("+s+"\n)", now); err == nil && strings.TrimSpace(s) != "" && scan(negated, x, frames, nil) != -all {
			t.Fatalf("%q: its negation is %d, too", s, all)
		}
	})
}

func BenchmarkExchange(b *testing.B) {
	f := parse(b, "host:api.* method:AddItem code:!ok size>1KB")
	x := sample()
	b.ReportAllocs()
	for b.Loop() {
		if f.Exchange(x) != Yes {
			b.Fatal("no match")
		}
	}
}
