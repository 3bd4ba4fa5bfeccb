package replay

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/replay/credential"
)

// A Secret is a value that the capture holds a placeholder of.
type Secret struct {
	// "header authorization", "url", "up/0 1.8"
	Where string `json:"where"`
	// where its value comes from: "$UNWIRE_TOKEN", a file; "" if it is missing
	From string `json:"from"`
	// environment variables that could give it
	Wants []string `json:"wants"`
	// it is missing, and is done without
	Omitted bool `json:"omitted,omitempty"`
	// RFC 3339; of a token that says so
	Expires string `json:"expires,omitempty"`
	stale   bool
	past    bool // it has expired already
}

// secretVariable is the environment variable of the secret whose placeholder
// has a tag, wherever it stands: UNWIRE_SECRET_3F2A9C1B.
func secretVariable(tag string) string { return "UNWIRE_SECRET_" + strings.ToUpper(tag) }

// variables keeps the names of environment variables.
func variables(names []string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, "UNWIRE_") {
			out = append(out, n)
		}
	}
	return out
}

// learn remembers a header's secret, so that the same one is known where its
// placeholder occurs again.
func (p *planner) learn(captured, secret string) {
	if before, _, ok := strings.Cut(captured, " "); ok {
		secret = strings.TrimPrefix(secret, before+" ") // the scheme is none
	}
	p.secrets = append(p.secrets, secret)
	if m := credential.InHeader.FindAllStringSubmatch(captured, -1); len(m) == 1 {
		p.tags[m[0][1]] = secret
	}
}

// headerSecret finds the value of a header that was redacted; shown stands for
// it in the plan.
func (p *planner) headerSecret(h captures.Header, r *refresher) (value, shown string, ok bool) {
	name, part := strings.ToLower(h.Name), ""
	names := credential.HeaderNames(name)
	secret, from, ok := p.o.Credentials.Find(names...)
	switch {
	case ok && name == "authorization":
		secret = credential.WithScheme(secret, h.Value)
	case ok || p.partOf(name) == "":
	default:
		names = append(names, p.partOf(name))
		if part, from, ok = p.o.Credentials.Find(p.partOf(name)); ok {
			p.secrets = append(p.secrets, part)
		}
	}
	if tag := credential.InHeader.FindStringSubmatch(h.Value); !ok && tag != nil {
		names = append(names, secretVariable(tag[1]))
		if secret, from, ok = p.o.Credentials.Find(secretVariable(tag[1])); ok {
			secret = strings.Replace(h.Value, tag[0], secret, 1)
			ok = !credential.IsRedacted(secret) // one value cannot stand for several
		}
	}
	if made, is := r.make(HeaderCall{Name: name, Value: secret, Part: part}); is {
		if from == "" {
			from = fromMaker
		}
		if ok = made != ""; ok && made != secret {
			p.refreshed(name)
		}
		secret = made
	}
	s := Secret{Where: "header " + name, From: from, Wants: variables(names), Omitted: !ok && p.o.OmitSecrets}
	if p.captured.Profile.IsChecksum(name) && p.isLocal() {
		s.Omitted = !ok // it tells a machine, not a person: no local server wants it
	}
	if !ok {
		s.From = ""
	}
	if t, isToken := credential.ParseToken(secret); ok && isToken && !t.Expires.IsZero() {
		s.Expires, s.stale, s.past = t.Expires.Format(time.RFC3339), t.IsStale(r.now), !r.now.Before(t.Expires)
	}
	// pieces repeat them
	if !slices.ContainsFunc(p.shown.Secrets, func(t Secret) bool { return t.Where == s.Where }) {
		p.shown.Secrets = append(p.shown.Secrets, s)
	}
	if ok {
		p.learn(h.Value, secret)
		return secret, "<" + from + ">", true
	}
	return "", h.Value, !s.Omitted
}

// secretOf finds the secret of a placeholder outside of headers.
func (p *planner) secretOf(tag, where string, names ...string) (string, bool) {
	if secret, ok := p.known(tag); ok {
		return secret, true
	}
	names = append(names, secretVariable(tag))
	secret, from, ok := p.o.Credentials.Find(names...)
	p.shown.Secrets = append(p.shown.Secrets, Secret{Where: where, From: from, Wants: variables(names), Omitted: !ok && p.o.OmitSecrets})
	if ok {
		p.secrets = append(p.secrets, secret)
		p.tags[tag] = secret
	}
	return secret, ok
}

// fillURL puts the secrets into a URL.
func (p *planner) fillURL(u *url.URL) (*url.URL, error) {
	if !credential.InBody.MatchString(u.RawQuery) && !credential.InBody.MatchString(u.Path) {
		return u, nil
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if m := credential.InBody.FindStringSubmatch(value); m != nil {
			if secret, ok := p.secretOf(m[1], "query "+name, credential.QueryVariable(name)); ok {
				parts[i] = name + "=" + strings.Replace(value, m[0], url.QueryEscape(secret), 1)
			}
		}
	}
	filled := *u
	filled.RawQuery = strings.Join(parts, "&")
	text := credential.InBody.ReplaceAllStringFunc(filled.String(), func(s string) string {
		m := credential.InBody.FindStringSubmatch(s)
		if secret, ok := p.secretOf(m[1], "url"); ok {
			return url.PathEscape(secret)
		}
		return s
	})
	return url.Parse(text)
}

// checkBodies finds out which secrets the frames want.
func (p *planner) checkBodies() {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		for _, m := range credential.InBody.FindAllSubmatch(f.Data, -1) {
			p.secretOf(string(m[1]), p.placeOf(f, m[0]))
		}
	}
}

// unredact puts the secrets into a message.
func (p *Plan) unredact(data []byte) (out []byte, changed bool, err error) {
	for _, m := range credential.InBody.FindAllSubmatch(data, -1) {
		secret, ok := p.known(string(m[1]))
		if !ok {
			continue // left as it is where Options.OmitSecrets says so
		}
		if data, err = p.fill(data, m[0], secret); err != nil {
			return data, changed, err
		}
		changed = true
	}
	return data, changed, nil
}

// known returns the secret of a tag that may be cut.
func (p *Plan) known(tag string) (string, bool) {
	for t, secret := range p.tags {
		if strings.HasPrefix(t, tag) {
			return secret, true
		}
	}
	return "", false
}

// placeOf names where in a frame a placeholder stands.
func (p *planner) placeOf(f *PlanFrame, placeholder []byte) string {
	where := "up/" + strconv.Itoa(f.Seq)
	if t := wire.Parse(f.Data, wire.Options{}); !p.isJSON() && t.Err() == nil {
		if at := innermost(t, placeholder); at > 0 {
			where += " " + t.PathOf(at).String()
		}
	}
	return where
}

// innermost is the smallest field whose payload holds b; 0 if none does.
func innermost(t *wire.Tree, b []byte) int32 {
	at := int32(0)
	for c := int32(1); int(c) < len(t.Nodes); c++ {
		if t.Node(c).Type == wire.Len && bytes.Contains(t.Payload(c), b) {
			at = c
		}
	}
	return at
}

// fill puts one secret in place of its placeholder.
func (p *Plan) fill(data, placeholder []byte, secret string) ([]byte, error) {
	if len(placeholder) == len(secret) || p.isJSON() {
		if p.isJSON() {
			quoted := jsontree.Quote(secret)
			secret = string(quoted[1 : len(quoted)-1])
		}
		return bytes.Replace(data, placeholder, []byte(secret), 1), nil
	}
	t := wire.Parse(data, wire.Options{})
	at := innermost(t, placeholder)
	value := bytes.Replace(t.Payload(at), placeholder, []byte(secret), 1)
	return wire.Splice(t, []wire.Edit{{Op: wire.Set, Node: at, Data: value}})
}

// An expiredError says which token, and when.
type expiredError struct {
	secret Secret
	past   bool
}

func (e *expiredError) Error() string {
	if e.past {
		return fmt.Sprintf("the token of %s, from %s, expired at %s", e.secret.Where, e.secret.From, e.secret.Expires)
	}
	return fmt.Sprintf("the token of %s, from %s, expires at %s, which leaves less than %s", e.secret.Where, e.secret.From, e.secret.Expires, credential.LeastLife)
}

func (e *expiredError) Is(target error) bool {
	return target == credential.ErrExpired || target == credential.ErrCredentials
}
