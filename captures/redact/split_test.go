package redact

import (
	"fmt"
	"strings"
	"testing"

	"unwire/captures"
)

// A known secret is replaced where it stands in two messages, chunks or events, wherever it
// is parted.
func TestSplitSecret(t *testing.T) {
	const secret = "kx9-made-up-Q7f3bMadeUp9d41xKw2"
	connect := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	events := captures.Headers{{Name: "content-type", Value: "text/event-stream"}}
	for name, c := range map[string]struct {
		h    captures.Headers
		body func(first, second string) []byte
	}{
		"envelopes": {connect, func(a, b string) []byte {
			return append(enveloped(0, []byte("\x0a"+string(rune(len(a)))+a)), enveloped(0, []byte("\x0a"+string(rune(len(b)))+b))...)
		}},
		"events": {events, func(a, b string) []byte {
			return fmt.Appendf(nil, "data: {\"delta\":\"say %s\"}\n\ndata: {\"delta\":\"%s then\"}\n\n", a, b)
		}},
		"lines": {nil, func(a, b string) []byte { return []byte("first " + a + "\nsecond " + b + "\n") }},
	} {
		for at := 1; at < len(secret); at++ {
			r := New(Options{Secrets: []string{secret}})
			in := c.body(secret[:at], secret[at:])
			for _, cuts := range [][]int{nil, {len(in) / 2}, bytewise(in[:len(in)-1])} {
				got := string(join(redactBody(r, c.h, in, cuts...)))
				head, rest := secret[:at], secret[max(at, leastHead-1):]
				headLeft := at >= leastHead && strings.Contains(got, head)
				restLeft := len(rest) >= leastRest && strings.Contains(got, rest)
				if len(got) != len(in) || headLeft || restLeft {
					t.Errorf("%s, %d cuts, parted at %d: %q", name, len(cuts), at, got)
				}
			}
		}
	}
}

// A known secret is replaced where it stands in three and more messages or events.
func TestSecretInSeveralPieces(t *testing.T) {
	const secret = "kx9-made-up-Q7f3bMadeUp9d41xKw2-and-more-of-it-8Zt5Vq"
	connect := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	events := captures.Headers{{Name: "content-type", Value: "text/event-stream"}}
	for _, ends := range [][]int{{10, 20}, {7, 14}, {12}, {12, 30, 50}, {9, 18, 27, 36}, {20, 27}, {7, 50}} {
		var pieces []string
		at := 0
		for _, end := range append(ends, len(secret)) {
			pieces = append(pieces, secret[at:end])
			at = end
		}
		var envelopes, deltas, decoys []byte
		for i, p := range pieces {
			envelopes = append(envelopes, enveloped(0, append([]byte{0x0a, byte(len(p))}, p...))...)
			deltas = fmt.Appendf(deltas, "data: {\"delta\":\"%s\"}\n\n", p)
			decoys = fmt.Appendf(decoys, "%s\n", p)
			if i == 0 && len(ends) == 1 {
				// Something else that continues in the same way.
				decoys = fmt.Appendf(decoys, "%s?\n", secret[len(p):len(p)+8])
			}
		}
		for name, c := range map[string]struct {
			h    captures.Headers
			body []byte
		}{"envelopes": {connect, envelopes}, "events": {events, deltas}, "decoy": {nil, decoys}} {
			for _, cuts := range [][]int{nil, {len(c.body) / 3, len(c.body) / 2}, bytewise(c.body[:len(c.body)-1])} {
				r := New(Options{Secrets: []string{secret}})
				got := string(join(redactBody(r, c.h, c.body, cuts...)))
				for i, p := range pieces {
					if len(got) != len(c.body) || strings.Contains(got, p) {
						t.Errorf("%s, %d cuts, pieces end at %v: piece %d is left in %q", name, len(cuts), ends, i, got)
					}
				}
			}
		}
	}
}

// The beginning of a secret that many others have too is left where no rest follows.
func TestSplitWithoutRest(t *testing.T) {
	r := New(Options{Secrets: []string{"kx9-made-up-Q7f3bMadeUp9d41xKw2"}})
	for _, in := range []string{"kx9-made-up- and so on", "kx9-made-up-" + strings.Repeat(" far apart", maxApart/8) + "Q7f3bMadeUp9d41xKw2"} {
		got := string(join(redactBody(r, nil, []byte(in))))
		if !strings.HasPrefix(got, "kx9-made-up-") {
			t.Errorf("%.40q", got)
		}
	}
}

// A long secret is found by its pieces.
func TestLongSecret(t *testing.T) {
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "%x-", i*7919)
	}
	for _, n := range []int{9 << 10, 15 << 10} {
		r, secret := New(Options{}), long.String()[:n]
		r.Headers(captures.Headers{{Name: "authorization", Value: "Bearer " + secret}})
		got := string(join(redactBody(r, nil, []byte("<<"+secret+">>"), 5000, 10_000)))
		if isLeft(got, secret[:64]) || isLeft(got, secret[n/2:n/2+64]) || isLeft(got, secret[n-64:]) || len(got) != n+4 {
			t.Errorf("%d bytes: %.80q", n, got)
		}
	}
}
