package rules

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// indexFilters are conditions of which some match the messages of randomMessage.
var indexFilters = []string{
	"path:1=a", "path:1=6161", "path:1:(a|b)", "path:2=5", "path:2>3", "path:3", "path:3.1=a", "path:4=1.5", "path:1=a path:2=5", "path:name=a",
	"path:1=b is:end", "path:5[1]=a", "path:70=a", "path:2=-3", "path:1=aa", "path:1=*", "path:1=61",
	"text:secret", "text:secreted", "text:(hidden|secret)", "text:secret path:1", "text:h*dden", "text:x", "text:hidden is:end", "text:café",
	"path:count=5", "path:name=aa", "path:options.modelId", "path:sizes=5", "path:colour=RED path:name", "path:name=b text:secret",
}

// randomMessage returns a message of protobuf or, if JSON is set, an object, with fields that indexFilters examine.
func randomMessage(r *rand.Rand, json bool) []byte {
	texts := []string{
		"a", "aa", "b", "", "6161", "\xff", "\n\x01a", strings.Repeat("x", 100), "hidden", "a secret", "sécret",
		hex.EncodeToString([]byte(`{"a": "hidden"}`)), base64.StdEncoding.EncodeToString([]byte("\n\x06secret\x12\x06a text")),
		`{"a": "s\u0065cret", "hidden": 1}`, "\x0a\x08a secret", `["caf\u00e9 x"]`,
	}
	if json {
		var members []string
		for range r.IntN(4) {
			members = append(members, fmt.Sprintf("%q: %s", []string{"1", "2", "name", "x"}[r.IntN(4)], []string{`"a"`, "5", "4.5", `{"1":"a"}`, "null", `"\u0061"`, `"\u0073ecret"`, `"a hidden b"`}[r.IntN(8)]))
		}
		return []byte("{" + strings.Join(members, ",") + "}")
	}
	var m []byte
	for range r.IntN(5) {
		number := protowire.Number([]int{1, 2, 3, 4, 5, 6, 70}[r.IntN(7)])
		switch r.IntN(6) {
		case 0:
			m = protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), []uint64{5, 1, 1<<64 - 3}[r.IntN(3)])
		case 1:
			m = protowire.AppendFixed32(protowire.AppendTag(m, number, protowire.Fixed32Type), []uint32{5, 0x3fc00000}[r.IntN(2)])
		case 2:
			m = protowire.AppendTag(protowire.AppendString(protowire.AppendTag(m, number, protowire.StartGroupType), ""), number, protowire.EndGroupType)
		default:
			m = protowire.AppendString(protowire.AppendTag(m, number, protowire.BytesType), texts[r.IntN(len(texts))])
		}
	}
	if r.IntN(10) == 0 && len(m) > 0 {
		m = m[:len(m)-1]
	}
	return m
}

// isBoundary reports whether the first frames envelopes of a body have n bytes.
func isBoundary(body []byte, n, frames int) bool {
	at := 0
	for range frames {
		at += envelope.PrefixLen + int(envelope.ParsePrefix(body[at:]).Length)
	}
	return at == n
}

// TestIndex: what the index excludes matches no rule, and it excludes most frames that match none.
func TestIndex(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	request := shop(t).Message("shop.GetRequest")
	var excluded, unmatched, together int
	for range 3000 {
		var text strings.Builder
		text.WriteString("rules:\n")
		for range 1 + r.IntN(4) {
			fmt.Fprintf(&text, "  - {match: '%s', drop: true}\n", strings.NewReplacer("(a|b)", "a,b", "(hidden|secret)", "hidden,secret").Replace(indexFilters[r.IntN(len(indexFilters))]))
		}
		s, err := parse("r", []byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		codec := []string{"proto", "json"}[r.IntN(2)]
		var options Options
		if r.IntN(2) == 0 {
			options.Type = func(string, captures.Direction) protoreflect.MessageDescriptor { return request }
		}
		x := New(s, options).Begin(&captures.Exchange{}, rewrite.Request{
			Method: "POST", URL: "https://a.example/p.S/Run", Header: captures.Headers{{Name: "content-type", Value: "application/connect+" + codec}},
		}).(*exchange)
		var body []byte
		var matches []bool
		for i := range 10 {
			f := &rewrite.Frame{Dir: captures.Up, Number: i, Framed: true, Data: randomMessage(r, codec == "json")}
			if r.IntN(8) == 0 {
				f.Flags = envelope.EndStream
			}
			// Without the index, all filters are evaluated.
			passes, fast := x.Passes(f), x.excludes(f)
			indexed, plain := x.plan, &plan{partial: [2]bool{true, true}}
			for _, rule := range x.rules[f.Dir] {
				plain.rules[f.Dir] = append(plain.rules[f.Dir], frameRule{rule: rule.rule, when: rule.when})
			}
			x.plan = plain
			matched := !x.selected(f).none()
			x.plan = indexed
			body, matches = envelope.Append(body, f.Flags, f.Data), append(matches, matched)
			if passes == matched {
				t.Fatalf("%q: passes %v, excluded %v\n%s", f.Data, passes, fast, text.String())
			}
			if fast {
				excluded++
			}
			if !matched {
				unmatched++
			}
		}

		// All at once, with the last envelope cut off.
		n, frames := x.PassesEnvelopes(captures.Up, body[:len(body)-1])
		if slices.Contains(matches[:frames], true) || frames == len(matches) || !isBoundary(body, n, frames) {
			t.Fatalf("%d frames with %d bytes pass, matched: %v\n%q\n%s", frames, n, matches, body, text.String())
		}
		together += frames
	}
	if together == 0 {
		t.Error("no envelopes pass together")
	}
	if excluded < unmatched/3 {
		t.Errorf("only %d of %d frames are excluded", excluded, unmatched)
	}
}

// TestUnmatchedCosts: 100 rules that match the head of a call and no frame cost one allocation for the call, and none for
// its frames. Compressed envelopes are not examined together with others.
func TestUnmatchedCosts(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "  - {match: 'method:M path:1=v%d', set: 7.1=x}\n", i)
	}
	s, err := parse("r", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	p := New(s, Options{})
	connection := &captures.Exchange{HTTP: "2"}
	headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	body := envelope.Append(envelope.Append(nil, 0, []byte("\x0a\x05hello")), envelope.EndStream, []byte("{}"))
	compressed := envelope.Append(body, envelope.Compressed, []byte("x"))
	allocations := testing.AllocsPerRun(100, func() {
		x := p.Begin(connection, rewrite.Request{Method: "POST", URL: "https://a.example/a.S/M", Header: headers})
		x.Response(200, headers)
		for _, d := range directions {
			if n, frames := x.PassesEnvelopes(d, compressed); n != len(body) || frames != 2 || x.Framing(d).Kind != rewrite.Envelopes {
				t.Fatalf("%d frames with %d bytes pass", frames, n)
			}
		}
	})
	if allocations > 1 {
		t.Errorf("%v allocations", allocations)
	}
}
