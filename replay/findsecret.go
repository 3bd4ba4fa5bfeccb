package replay

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode/wire"
	"unwire/replay/credential"
)

// rememberSecret records the secret of a header, so that it can also be inserted where its placeholder
// occurs elsewhere.
func (p *planner) rememberSecret(captured, secret string) {
	if before, _, ok := strings.Cut(captured, " "); ok {
		// without its scheme
		secret = strings.TrimPrefix(secret, before+" ")
	}
	p.secrets = append(p.secrets, secret)
	if m := credential.InHeader.FindAllStringSubmatch(captured, -1); len(m) == 1 {
		p.tags[m[0][1]] = secret
	}
}

// A givenSecret is the value from the credentials for a redacted header.
type givenSecret struct {
	value string
	// part is the secret that completes a computed value; value is "" then.
	part string
	// from describes where the value comes from, such as a file.
	from string
	// names are the environment variables that were looked up.
	names []string
	ok    bool
}

// findHeaderSecret looks up a redacted header in the credentials: by the header's name, by the
// secret part of a computed value, or by the placeholder's tag.
func (p *planner) findHeaderSecret(h captures.Header, name string) givenSecret {
	var g givenSecret
	g.value, g.from, g.names, g.ok = p.o.Credentials.Header(name, h.Value)
	if part := p.partOf(name); !g.ok && part != "" {
		g.names = append(g.names, part)
		if g.part, g.from, g.ok = p.o.Credentials.Find(part); g.ok {
			p.secrets = append(p.secrets, g.part)
		}
	}
	if tag := credential.InHeader.FindStringSubmatch(h.Value); !g.ok && tag != nil {
		variable := secretVariable(tag[1])
		g.names = append(g.names, variable)
		if g.value, g.from, g.ok = p.o.Credentials.Find(variable); g.ok {
			g.value = strings.Replace(h.Value, tag[0], g.value, 1)
			// one value cannot replace several placeholders
			g.ok = !credential.IsRedacted(g.value)
		}
	}
	return g
}

// isChecksum reports whether a header, in lower case, is the one that the profile computes for each
// request.
func (p *planner) isChecksum(name string) bool {
	service := p.service()
	return service != nil && service.Checksum.Header != "" && name == service.Checksum.Header
}

// headerSecret finds the value of a redacted header; shown replaces it in the plan.
func (p *planner) headerSecret(h captures.Header, r *refresher) (value, shown string, ok bool) {
	name := strings.ToLower(h.Name)
	given := p.findHeaderSecret(h, name)
	secret, from, ok := given.value, given.from, given.ok
	if !ok && volatilityOf(name) == volatileID {
		// Clients make these ids up, so the server accepts a new one.
		fresh := r.id(h.Value)
		if tag := credential.InHeader.FindStringSubmatch(h.Value); tag != nil {
			p.tags[tag[1]] = fresh
		}
		p.refreshed(name)
		return fresh, fresh, true
	}

	// A computed value, such as a checksum, may need a secret part.
	if made, is := r.make(HeaderCall{Name: name, Value: secret, Part: given.part}); is {
		if from == "" {
			from = fromMaker
		}
		if ok = made != ""; ok && made != secret {
			p.refreshed(name)
		}
		secret = made
	}

	s := Secret{Where: "header " + name, From: from, Wants: variables(given.names), Omitted: !ok && p.o.OmitSecrets}
	if p.isLocal() && p.isChecksum(name) {
		// it identifies a machine, not a person, and local servers do not check it
		s.Omitted = !ok
	}
	if !ok {
		s.From = ""
	}
	if t, isToken := credential.ParseToken(secret); ok && isToken && !t.Expires.IsZero() {
		s.Expires, s.stale, s.past = t.Expires.Format(time.RFC3339), t.IsStale(r.now), !r.now.Before(t.Expires)
	}

	// The pieces of a conversation repeat the same headers.
	if !slices.ContainsFunc(p.shown.Secrets, func(t Secret) bool { return t.Where == s.Where }) {
		p.shown.Secrets = append(p.shown.Secrets, s)
	}

	if ok {
		p.rememberSecret(h.Value, secret)
		return secret, "<" + from + ">", true
	}
	return "", h.Value, !s.Omitted
}

// secretOf finds the secret for a placeholder outside of headers.
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

// fillURL replaces the placeholders in a URL by secrets.
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

// checkBodies finds the secrets that the frames need.
func (p *planner) checkBodies() {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		for _, m := range credential.InBody.FindAllSubmatch(f.Data, -1) {
			p.secretOf(string(m[1]), p.placeOf(f, m[0]))
		}
	}
}

// placeOf describes where in a frame a placeholder occurs.
func (p *planner) placeOf(f *PlanFrame, placeholder []byte) string {
	where := "up/" + strconv.Itoa(f.Seq)
	if t := wire.Parse(f.Data, wire.Options{}); !p.isJSON(f) && t.Err() == nil {
		if at := innermost(t, placeholder); at > 0 {
			where += " " + t.PathOf(at).String()
		}
	}
	return where
}
