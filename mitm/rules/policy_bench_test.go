package rules

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// BenchmarkPolicy measures what 100 rules of which none matches cost for an exchange, and for a frame.
func BenchmarkPolicy(b *testing.B) {
	request := shop(b).Message("shop.GetRequest")
	const message = "\x0a\x05hello"
	for _, set := range []struct{ name, match string }{
		{"other fields", "method:M dir:up path:9%[2]d.1"},
		{"other values", "method:M dir:up path:1=v%[2]d"},
		{"other text", "method:M dir:up text:v%[2]dx"},
		{"names", "method:M dir:up path:name%[2]d=x"},
	} {
		var text strings.Builder
		text.WriteString("rules:\n")
		for i := range 100 {
			fmt.Fprintf(&text, "  - match: "+set.match+"\n    set: 7.%[2]d=x\n", i, i+1)
		}
		s, err := parse("r", []byte(text.String()))
		if err != nil {
			b.Fatal(err)
		}
		p := New(s, Options{Type: func(string, captures.Direction) protoreflect.MessageDescriptor { return request }})
		ex := &captures.Exchange{
			Transport: captures.HTTP, Method: "POST", URL: "https://a.example/a.S/M", HTTP: "2",
			RequestHeaders: captures.Headers{{Name: "accept-encoding", Value: "gzip"}, {Name: "content-type", Value: "application/connect+proto"}},
		}
		headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "date", Value: "x"}}
		b.Run(set.name+"/exchange", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x := p.Begin(ex, rewrite.RequestOf(ex))
				x.Framing(captures.Up)
				x.Response(200, headers)
			}
		})
		b.Run(set.name+"/frame", func(b *testing.B) {
			x := p.Begin(ex, rewrite.RequestOf(ex))
			f := &rewrite.Frame{Dir: captures.Up, Framed: true, Received: []byte("\x00\x00\x00\x00\x07" + message), Data: []byte(message)}
			b.ReportAllocs()
			for b.Loop() {
				if !x.Passes(f) {
					b.Fatal("a rule matches")
				}
			}
		})
	}
}
