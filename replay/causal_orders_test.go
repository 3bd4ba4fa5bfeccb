package replay

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"unwire/replay/testdata/toolloop"
)

// orderedForms are forms in which the client sorts the identifiers of a list, or repeats a token that
// recording has redacted.
func orderedForms() []form {
	ascending := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	descending := func(list []string) []string {
		out := ascending(list)
		slices.Reverse(out)
		return out
	}
	// listed is a form of a list; the answer has it changed by of, in a list or joined to a text.
	listed := func(name string, inText bool, of func(list []string) []string) form {
		return form{
			name: name, is: func(i issue) string { return strings.Join(of(i.others), ",") },
			put: func(m *toolloop.Message, i issue) { m.List = i.others },
			carry: func(a, q *toolloop.Message) {
				if a.List = of(q.List); inText {
					a.Text, a.List = strings.Join(a.List, ","), nil
				}
			},
			get: func(m *toolloop.Message) string { return strings.Join(m.List, ",") + m.Text },
		}
	}
	return []form{
		listed("sorted list", false, ascending),
		listed("list in descending order", false, descending),
		listed("sorted list in a text", true, ascending),
		listed("smallest of a list", false, func(list []string) []string { return ascending(list)[:1] }),
		listed("largest of a list in a text", true, func(list []string) []string { return descending(list)[:1] }),
		spelling("token that is redacted", signedToken, func(s string) string { return s }),
	}
}

// signedToken is a token whose payload has the identifier.
func signedToken(i issue) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sid":%q,"iat":1764000000}`, i.uuid)
	return part([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + part([]byte(claims)) + "." + part(append(i.raw, i.raw...))
}

// unknownForms are forms that a replay cannot follow: nothing shows which of the client's words belong to
// which of the server's, or that a word belongs to the server at all.
func unknownForms() []form {
	word := func(b []byte) string { return strings.ToLower(letters(b)) }
	return []form{
		{
			name: "several words as map keys", is: func(i issue) string { return word(i.raw[:9]) + " " + word(i.raw[9:16]) },
			put: func(m *toolloop.Message, i issue) {
				m.ByName = map[string]string{word(i.raw[:9]): "open", word(i.raw[9:16]): "shut"}
			},
			carry: func(a, q *toolloop.Message) {
				a.ByName = map[string]string{}
				for k, v := range q.ByName {
					a.ByName[k] = "was " + v
				}
			},
			get: func(m *toolloop.Message) string {
				keys := map[string]string{}
				for k, v := range m.ByName {
					keys[v] = k
				}
				return keys["was open"] + " " + keys["was shut"]
			},
		},
		spelling("word as a key of JSON", func(i issue) string { return `{"calls":{"` + word(i.raw[:9]) + `":{"tries":1}}}` }, func(s string) string {
			return `{"results":{"` + strings.Split(s, `"`)[3] + `":{"ok":true}}}`
		}),
		spelling("claim of a token that is redacted", signedToken, func(s string) string {
			claims, _ := base64.RawURLEncoding.DecodeString(strings.Split(s, ".")[1])
			return strings.Split(string(claims), `"`)[3]
		}),
	}
}

// A word that cannot be followed is not sent: the replay ends, and says why.
func TestUnknownWordsAreNotSent(t *testing.T) {
	for _, transport := range causalTransports() {
		if strings.HasPrefix(transport.name, "gRPC") {
			continue // as Connect
		}
		for _, f := range unknownForms() {
			if strings.HasSuffix(transport.name, "JSON") && strings.HasSuffix(f.name, "map keys") {
				continue // such keys are names of fields, so that the replay waits for the question
			}
			t.Run(transport.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				l := recordLoop(t, transport, f, func(*toolloop.Message, *toolloop.Message) {})
				for range 4 {
					// The entries of a map may have the captured order by chance.
					if r := l.replay(t, nil, nil); r.Code != "ok" && (r.Origin != FromLocal || len(r.Stale) == 0) {
						t.Errorf("%s %s %s: %q, %+v", r.Comparison, r.Origin, r.Code, r.Message, r.Stale)
					}
				}
				if l.stale+l.wrong > 0 {
					t.Errorf("%d stale, %d wrong: %q", l.stale, l.wrong, l.why)
				}
			})
		}
	}
}

// A number that the server issues once, and the client repeats in a text, is not sent; an answer by hand replaces
// only the number.
func TestNumberInATextIsNotSent(t *testing.T) {
	number := func(i issue) uint64 { return 1_000_000 + i.fixed%9_000_000 }
	inText := regexp.MustCompile(`\d{7}`)
	forms := []form{
		numberForm("counter", number, func(n uint64) string { return fmt.Sprintf("job/%d", n) }),
		spelling("digits", func(i issue) string { return strconv.FormatUint(number(i), 10) }, func(s string) string { return "job/" + s }),
	}
	for _, c := range [...]string{"job/%s", "out-%s.log", "/v1/jobs/%s?x=1", "tool/job-%s/run", "v1.%s", "the job %s has ended"} {
		for _, named := range [...]string{"%s", "job-%s", "jobs/%s", "job %s was started"} {
			forms = append(forms, spelling(fmt.Sprintf(named+" as "+c, "N", "N"),
				func(i issue) string { return fmt.Sprintf(named, strconv.FormatUint(number(i), 10)) },
				func(s string) string { return fmt.Sprintf(c, inText.FindString(s)) }))
		}
	}
	for _, transport := range causalTransports() {
		if strings.HasPrefix(transport.name, "gRPC") {
			continue // as Connect
		}
		for _, f := range forms {
			t.Run(transport.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				s := newToolLoop(t, f)
				s.calls = [][2]string{{"", ""}} // nothing but the number shows that an answer belongs to a question
				l := s.recordOver(t, transport)
				if wholeIssued := f.name == "counter" || f.name == "digits" || strings.HasPrefix(f.name, "N as "); wholeIssued {
					to, from := "4", "4"
					if strings.HasSuffix(transport.name, "JSON") {
						to, from = "text", "text"
					}
					if f.name == "counter" {
						from = map[string]string{"4": "7", "text": "fixed"}[to]
					}
					if r := l.replay(t, nil, []string{to + "=@down/" + from}); r.Code != "ok" || l.ended != 2 {
						t.Errorf("by hand: %s %s %q, %+v; %q", r.Origin, r.Code, r.Message, r.Stale, l.why)
					}
				}
				if r := l.replay(t, nil, nil); r.Code != "ok" && (r.Origin != FromLocal || len(r.Stale) == 0) {
					t.Errorf("%s %s %s: %q, %+v", r.Comparison, r.Origin, r.Code, r.Message, r.Stale)
				}
				if l.stale+l.wrong > 0 {
					t.Errorf("%d stale, %d wrong: %q", l.stale, l.wrong, l.why)
				}
			})
		}
	}
}
