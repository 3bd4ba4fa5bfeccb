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

// rememberSecret stores the secret that replaces a redacted header value. captured is that value with
// its placeholder. If the same placeholder occurs elsewhere in the request, it is replaced by the same
// secret.
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

// A givenSecret is the result of looking up the secret for a redacted header in the credentials.
type givenSecret struct {
	// value is the header's complete value.
	value string
	// part is the secret that a HeaderMaker needs to compute the header; value is "" then.
	part string
	// from describes the source of the secret, such as "$UNWIRE_TOKEN" or a file name.
	from string
	// names are the environment variables that can supply the secret.
	names []string

	// ok means that a secret was found.
	ok bool
}

// findHeaderSecret looks up the secret for a redacted header in the credentials: by the header's name
// (in lower case), by the environment variable that the header's HeaderMaker names, or by the tag in
// the placeholder.
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

// isChecksum reports whether a header, given in lower case, is the checksum header that the service's
// profile computes for each request.
func (p *planner) isChecksum(name string) bool {
	service := p.service()
	return service != nil && service.Checksum.Header != "" && name == service.Checksum.Header
}

// headerSecret determines the value of a header that is redacted in the capture: from the credentials,
// computed by a HeaderMaker, or newly generated if it is a client's random id. shown is the value for
// display, such as "<$UNWIRE_TOKEN>". ok is false if the header is left out, because its secret is
// missing and may be omitted.
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

// secretOf finds the secret for a placeholder in a URL or message, and lists it in the plan. tag is the
// placeholder's tag, where its position for display, and names are environment variables to look up in
// addition to the one derived from the tag.
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

// fillURL returns u with the placeholders in its path and query replaced by secrets. A placeholder
// whose secret is missing stays.
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

// checkBodies looks up the secret of every placeholder in the planned messages, so that the plan lists
// them. The messages themselves are filled in when they are sent.
func (p *planner) checkBodies() {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		for _, m := range placeholdersIn(f.Data, p.isJSON(f)) {
			if !f.isIssued(m[0]) {
				p.secretOf(string(m[1]), p.placeOf(f, m[0]))
			}
		}
	}
}

// placeOf returns the position of a placeholder in a frame for display: "up/0 1.8" is field 1.8 of the
// client's frame 0.
func (p *planner) placeOf(f *PlanFrame, placeholder []byte) string {
	where := "up/" + strconv.Itoa(f.Seq)
	if t := wire.Parse(f.Data, wire.Options{}); !p.isJSON(f) && t.Err() == nil {
		if at := innermost(t, placeholder); at > 0 {
			where += " " + t.PathOf(at).String()
		}
	}
	return where
}
