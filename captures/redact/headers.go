package redact

import (
	"encoding/base64"
	"strings"

	"unwire/captures"
)

// secretHeader reports whether the field's whole value is a secret. Name is
// in lower case.
func (r *Redactor) secretHeader(name string) bool {
	switch name {
	case "token", "api-key", "apikey", "x-auth", "x-goog-api-key",
		"x-amz-security-token", "x-amz-credential", "x-amz-signature", "authentication", "x-authentication", "x-authorization":
		return true
	}
	for _, suffix := range []string{
		"-token", "-secret", "-password", "-api-key", "-apikey", "-access-key", "-secret-key", "-encryption-key", "-private-key", "-auth-key",
		"-credential", "-credentials", "-jwt", "-authorization",
	} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return r.headers[name]
}

// Headers returns h with the secrets in it replaced, and learns them. The
// scheme of an authorization and the names and attributes of cookies stay.
func (r *Redactor) Headers(h captures.Headers) captures.Headers { return r.section(h, nil) }

// section is Headers, and reports what it replaces with the field's index.
func (r *Redactor) section(h captures.Headers, report func(field int, hit Hit)) captures.Headers {
	if h == nil {
		return nil
	}
	in := func(field int) reporter {
		if report == nil {
			return nil
		}
		return func(hit Hit) { report(field, hit) }
	}
	// Learn from all of them first: a cookie may repeat the token.
	out := make(captures.Headers, len(h))
	rest := make([]int, 0, len(h))
	for i, f := range h {
		name := strings.ToLower(f.Name)
		out[i] = f
		switch {
		case name == "authorization" || name == "proxy-authorization":
			out[i].Value = r.authorization(f.Value, in(i))
		case name == "cookie":
			out[i].Value = r.cookies(f.Value, in(i))
		case name == "set-cookie":
			pair, attributes, found := strings.Cut(f.Value, ";")
			out[i].Value = r.cookies(pair, in(i))
			if found {
				out[i].Value += ";" + attributes
			}
		case r.secretHeader(name):
			out[i].Value = r.secret(f.Value, 0, in(i))
		default:
			rest = append(rest, i)
		}
	}
	for _, i := range rest {
		switch name := strings.ToLower(out[i].Name); {
		case name == "location" || name == "content-location" || name == "referer" || name == "origin" || name == ":path":
			out[i].Value = r.url(out[i].Value, in(i))
		default:
			out[i].Value = r.prose(out[i].Value, bracketed, in(i))
		}
	}
	return out
}

// secret learns v, which stands at offset at of its header, and returns its
// placeholder.
func (r *Redactor) secret(v string, at int, report reporter) string {
	if v == "" {
		return v
	}
	report.value(Hit{Rule: ruleHeader, Off: at}, v)
	r.Learn(v)
	return r.placeholder(v, bracketed)
}

// authorization keeps the scheme in front of the credentials.
func (r *Redactor) authorization(v string, report reporter) string {
	scheme, credentials, found := strings.Cut(v, " ")
	if !found {
		return r.secret(v, 0, report)
	}
	if strings.EqualFold(scheme, "basic") {
		if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credentials)); err == nil {
			if _, password, ok := strings.Cut(string(pair), ":"); ok {
				r.Learn(password)
			}
		}
	}
	return scheme + " " + r.secret(credentials, len(scheme)+1, report)
}

// cookies keeps the names.
func (r *Redactor) cookies(v string, report reporter) string {
	parts := strings.Split(v, ";")
	at := 0
	for i, p := range parts {
		if name, value, ok := strings.Cut(p, "="); ok {
			parts[i] = name + "=" + r.secret(value, at+len(name)+1, report)
		} else {
			parts[i] = r.text(p, at, bracketed, report)
		}
		at += len(p) + 1
	}
	return strings.Join(parts, ";")
}

// Exchange returns ex with the secrets in it replaced, and learns them. The
// headers come first: they tell what to look for in the rest.
func (r *Redactor) Exchange(ex captures.Exchange) captures.Exchange {
	for _, h := range []*captures.Headers{&ex.RequestHeaders, &ex.ResponseHeaders, &ex.RequestTrailers, &ex.ResponseTrailers} {
		*h = r.Headers(*h)
	}
	for _, text := range []*string{&ex.Error, &ex.Source, &ex.Server, &ex.Process.Name, &ex.Process.Client, &ex.Process.Version} {
		*text = r.String(*text)
	}
	ex.URL = r.redactURL(ex.URL)
	return ex
}
