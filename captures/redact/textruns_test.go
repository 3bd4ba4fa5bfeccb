package redact

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures/redact/internal/keyshape"
	"unwire/captures/redact/internal/spelling"
	"unwire/captures/redact/internal/textrun"
)

const knownToken = "made/up+token of=mine"

// knowing is a Redactor that knows a secret.
var knowing = sync.OnceValue(func() *Redactor { return New(Options{Secrets: []string{knownToken}}) })

// slowly returns a Redactor like r that passes no byte for what is around it, and remembers no
// string.
func slowly(r *Redactor) *Redactor {
	c := r.WithKey(r.key)
	c.shortKey = r.shortKey
	base, rules := *r.base, *r.rules.Load()
	base.anyByte, rules.anyByte = true, true
	base.base, rules.base = &base, &base
	c.base = &base
	c.rules.Store(&rules)
	return c
}

// sameAsSlow fails if p comes out otherwise where nothing is passed for what is around it.
func sameAsSlow(t fataler, p []byte, cuts ...int) {
	base := knowing()
	r := base.WithKey(base.key)
	slow := slowly(r)
	var hits, slowHits []Hit
	got, want := join(redactBody(r, nil, p, cuts...)), join(redactBody(slow, nil, p, cuts...))
	if !bytes.Equal(got, want) {
		i := 0
		for got[i] == want[i] {
			i++
		}
		from, to := max(0, i-60), min(len(p), i+60)
		t.Fatalf("cut at %v: at %d of %d bytes:\n%q\nslowly:\n%q\nof\n%q", cuts, i, len(p), got[from:to], want[from:to], p[from:to])
	}
	hits, slowHits = r.Find(p, false, ""), slow.Find(p, false, "")
	if !slices.Equal(hits, slowHits) {
		t.Fatalf("%v\nslowly:\n%v\nof\n%q", hits, slowHits, p)
	}
}

// formsInBodies are the forms of secrets that stand in bodies.
func formsInBodies() []string {
	forms := []string{
		madeUpJWT, " " + madeUpKey + " ", "AKIAIOSFODNN7EXAMPLE ", "https://u:p@h/", "://:p@", `["password","x"`, `"tokens":["ü","xü"]`, `"passwords":["x"`, "pwd=x\x00", "&otp=1\xff", "?pw=",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", `\"password\":\"x\"`, "<password\xff o\">x<", "<otp>1<", `"pwd"` + "\n:\t" + `"x"`,
		`"passwords":["` + strings.Repeat("ü", 60) + `","xü"]`, `<x name="password" y="` + strings.Repeat("ü", 50) + `ab">x<`,
		knownToken[:9] + "\x00\x01" + knownToken[9:], knownToken[:7], knownToken[6:],
	}
	for _, c := range secretForms {
		if c.place == "body" {
			for _, f := range c.forms {
				text, _ := spell(f)
				forms = append(forms, text)
			}
		}
	}
	for line := range strings.Lines(vendorForms) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3); len(parts) == 3 && parts[1] == "body" {
			text, _ := spell(parts[2])
			forms = append(forms, text)
		}
	}
	return append(forms, spelling.Of(knownToken)...)
}

// fillers are what may stand around a secret.
func fillers() []*rapid.Generator[[]byte] {
	pieces := func(of []string, most int) *rapid.Generator[[]byte] {
		return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(of), 0, most), func(s []string) []byte { return []byte(strings.Join(s, "")) })
	}
	return []*rapid.Generator[[]byte]{
		rapid.Map(rapid.Uint64(), func(seed uint64) []byte {
			p := make([]byte, seed%700)
			_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(p)
			return p
		}),
		rapid.Map(rapid.IntRange(0, 700), func(n int) []byte { return make([]byte, n) }),
		rapid.Map(rapid.IntRange(0, 80), func(n int) []byte { return bytes.Repeat([]byte("words "), n) }),
		rapid.SliceOfN(rapid.Byte(), 0, 20),
		pieces([]string{`{"name":"text",`, `"id":"a1b2",`, `"list":["a","b",["c"]],`, `"value":"x"},`, `"key":`, "\"a\"\n", `"\u0041":`, `[1,2]`, `""`, `"x":""`}, 30),
		pieces([]string{"\"", "&", "?", ":", "=", ">", ",", "[", "ab", "pwd", "token", "x", "\xfe", "\x00", "\n", "\\", "<"}, 40),
	}
}

// What is passed for what is around it hides no secret: a body comes out as it does where every
// byte is looked at, whatever stands around a secret and however it is cut.
func TestSameAsSlow(t *testing.T) {
	forms, filler := formsInBodies(), fillers()
	rapid.Check(t, func(t *rapid.T) {
		var p []byte
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			p = append(p, rapid.OneOf(filler...).Draw(t, "filler")...)
			p = append(p, rapid.SampledFrom(forms).Draw(t, "form")...)
		}
		p = append(p, rapid.OneOf(filler...).Draw(t, "end")...)
		cuts := rapid.SliceOfN(rapid.IntRange(1, max(1, len(p))), 0, 4).Draw(t, "cuts")
		slices.Sort(cuts)
		sameAsSlow(t, p, cuts...)
	})
}

// Each form is found in noise, wherever it stands in a window.
func TestEachFormInNoise(t *testing.T) {
	forms := formsInBodies()
	noise := make([]byte, 2048)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	for i, f := range forms {
		for _, around := range [][]byte{noise, make([]byte, 2048)} {
			at := 600 + i%textrun.Stride
			sameAsSlow(t, slices.Concat(around[:at], []byte(f), around[at:]))
			sameAsSlow(t, slices.Concat(around[:leastPairs-5+i%10], []byte(f), around))
			sameAsSlow(t, slices.Concat(around[:at+29], []byte(f), around[at:]), at+40)
		}
	}
}

// A string that was met where it is no secret is found where it is one.
func TestStringsMetBefore(t *testing.T) {
	for _, before := range []string{`"note":"correct-horse","value":"password","id":"made-up-1",`, `{"x":"correct-horse"},`} {
		for _, after := range []string{
			`"passwords":["correct-horse"]`, `"password":"correct-horse"`, `["password","correct-horse"]`, `{"name":"password","value":"correct-horse"}`,
			`{"password":{"value":"correct-horse"}}`,
		} {
			after += strings.Repeat(" ", 2*maxRemembered)
			p := append(bytes.Repeat([]byte(before), 2*manyStrings), after...)
			sameAsSlow(t, p)
			got := join(redactBody(New(Options{}), nil, p))
			if !bytes.HasPrefix(got, p[:len(p)-len(after)]) || bytes.Contains(got[len(p)-len(after):], []byte("correct-horse")) {
				t.Errorf("%s after %s: %s", after, before, got[len(p)-len(after):])
			}
		}
	}
}

func FuzzSameAsSlow(f *testing.F) {
	noise := make([]byte, 400)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(noise)
	for i, form := range formsInBodies() {
		if i%9 == 0 {
			f.Add(slices.Concat(noise[:i%60+200], []byte(form), noise), 300)
		}
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		// A name that does not begin with text is found only where the bytes around it are text (see nextRun).
		for i := range p {
			if !textrun.IsText(p[i]) && bytes.ContainsAny(p[max(0, i-3):i], `"&?`) {
				p[i] = 'x'
			}
		}
		sameAsSlow(t, p, max(cut, 0))
	})
}

// All that is looked for by its bytes begins with a run of text.
func TestRunsOfText(t *testing.T) {
	if f := New(Options{Secrets: []string{knownToken}}).rules.Load(); f.anyByte || !f.wide {
		t.Errorf("anyByte %v, wide %v", f.anyByte, f.wide)
	}
	if f := New(Options{Secrets: []string{"mäde-up-secret"}}).rules.Load(); !f.anyByte {
		t.Error("a secret that does not begin with ASCII is looked for in runs of text")
	}
	for _, s := range keyshape.All(nil) {
		if len(s.Prefix) >= textrun.Least {
			continue
		}
		for c := range 256 {
			if s.Follows(byte(c)) && !textrun.IsText(byte(c)) {
				t.Errorf("%s may have %q", s.Prefix, byte(c))
			}
		}
	}
}
