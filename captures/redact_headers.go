package captures

import (
	"encoding/base64"
	"strings"
)

// secretHeader reports whether the field's whole value is a secret. Name is
// in lower case.
func (r *Redactor) secretHeader(name string) bool {
	switch name {
	case "token", "api-key", "apikey", "x-auth", "x-client-key", "x-cursor-checksum", "x-goog-api-key",
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
func (r *Redactor) Headers(h Headers) Headers {
	if h == nil {
		return nil
	}
	// Learn from all of them first: a cookie may repeat the token.
	out := make(Headers, len(h))
	rest := make([]int, 0, len(h))
	for i, f := range h {
		name := strings.ToLower(f.Name)
		out[i] = f
		switch {
		case name == "authorization" || name == "proxy-authorization":
			out[i].Value = r.authorization(f.Value)
		case name == "cookie":
			out[i].Value = r.cookies(f.Value)
		case name == "set-cookie":
			pair, attributes, found := strings.Cut(f.Value, ";")
			out[i].Value = r.cookies(pair)
			if found {
				out[i].Value += ";" + attributes
			}
		case r.secretHeader(name):
			out[i].Value = r.secret(f.Value)
		default:
			rest = append(rest, i)
		}
	}
	for _, i := range rest {
		switch name := strings.ToLower(out[i].Name); {
		case name == "location" || name == "content-location" || name == "referer" || name == ":path":
			out[i].Value = r.URL(out[i].Value)
		default:
			out[i].Value = r.String(out[i].Value)
		}
	}
	return out
}

// secret learns v and returns its placeholder.
func (r *Redactor) secret(v string) string {
	if v == "" {
		return v
	}
	r.learn(v)
	return r.placeholder(v, bracketed)
}

// authorization keeps the scheme in front of the credentials.
func (r *Redactor) authorization(v string) string {
	scheme, credentials, found := strings.Cut(v, " ")
	if !found {
		return r.secret(v)
	}
	if strings.EqualFold(scheme, "basic") {
		if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credentials)); err == nil {
			if _, password, ok := strings.Cut(string(pair), ":"); ok {
				r.learn(password)
			}
		}
	}
	return scheme + " " + r.secret(credentials)
}

// cookies keeps the names.
func (r *Redactor) cookies(v string) string {
	parts := strings.Split(v, ";")
	for i, p := range parts {
		if name, value, ok := strings.Cut(p, "="); ok {
			parts[i] = name + "=" + r.secret(value)
		} else {
			parts[i] = r.String(p)
		}
	}
	return strings.Join(parts, ";")
}
