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
	var few [32]fieldName
	names := r.appendNames(few[:0], h)
	out := make(captures.Headers, len(h))
	for _, first := range []bool{true, false} {
		for i, f := range h {
			if names[i].secret == first {
				out[i] = captures.Header{Name: f.Name, Value: r.field(names[i].lower, f.Value, in(i))}
			}
		}
	}
	return out
}

// carriesSecret reports whether what a field has is a secret, whatever it looks like. Name
// is in lower case.
func (r *Redactor) carriesSecret(name string) bool {
	switch name {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	return r.secretHeader(name)
}

// field returns a field's value with the secrets in it replaced. Name is in lower case.
func (r *Redactor) field(name, value string, report reporter) string {
	if report == nil {
		return r.clean(name, value, func() string { return r.searchField(name, value, nil) })
	}
	return r.searchField(name, value, report)
}

func (r *Redactor) searchField(name, value string, report reporter) string {
	switch name {
	case "authorization", "proxy-authorization":
		return r.authorization(value, report)
	case "cookie":
		return r.cookies(value, report)
	case "set-cookie":
		pair, attributes, found := strings.Cut(value, ";")
		pair = r.cookies(pair, report)
		if found {
			pair += ";" + attributes
		}
		return pair
	case "location", "content-location", "referer", "origin", ":path":
		return r.url(value, report)
	}
	if r.secretHeader(name) {
		return r.secret(value, 0, report)
	}
	return r.prose(value, bracketed, report)
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
