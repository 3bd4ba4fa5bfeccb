package redact

import (
	"net/url"
	"strings"

	"unwire/captures/redact/internal/match"
)

// redactURL returns u with its secrets replaced, and learns these secrets: the password before the
// host; the values of parameters whose names denote secrets, in query and fragment; secrets that
// percent-encoding, base64 or compression hides in other values, such as the message of a Connect GET
// request; and learned secrets anywhere. u need not be a valid URL.
func (r *Redactor) redactURL(u string) string {
	return r.clean(nameOfURL, u, func() string { return r.url(u, nil) })
}

// url implements redactURL without the cache, and calls report for each secret.
func (r *Redactor) url(u string, report reporter) string {
	authority, rest := r.userinfo(u, report)
	at := len(u) - len(rest)
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		return authority + r.text(rest, at, plain, report)
	}
	return authority + r.text(rest[:end], at, plain, report) + r.parameters(rest[end:], at+end, 0, false, report)
}

// userinfo replaces the password or token between the scheme and the host. It returns everything before the @
// with the replacement, and the rest unchanged.
func (r *Redactor) userinfo(u string, report reporter) (replaced, rest string) {
	scheme, rest, found := strings.Cut(u, "://")
	if !found {
		return "", u
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return "", u
	}
	from := len(scheme) + len("://")
	user, password, both := strings.Cut(authority[:at], ":")
	if both {
		report.value(Hit{Rule: match.URLPassword, Off: from + len(user) + 1}, password)
		user = r.text(user, from, plain, report) + ":" + r.value(password)
	} else {
		report.value(Hit{Rule: match.URLPassword, Off: from}, user)
		user = r.value(user) // a token alone
	}
	return scheme + "://" + user, rest[at:]
}

// value learns a part of a URL, in its decoded forms, and returns its placeholder.
func (r *Redactor) value(v string) string {
	if v == "" {
		return v
	}
	meant, err := url.QueryUnescape(v)
	if err != nil {
		meant = v
	}
	r.Learn(meant)
	if plus, err := url.PathUnescape(v); err == nil {
		// The plus sign may not stand for a space.
		r.Learn(plus)
	}
	return r.placeholder(meant, plain)
}
