package redact

import (
	"net/url"
	"strings"

	"unwire/captures/redact/internal/match"
)

// redactURL returns u with the secrets in it replaced, and learns them: the password
// before the host, the values of telling parameters in query and fragment, what
// percent-encoding, base64 and compression hide in the values of others, such as
// the message of a Connect GET, and what is known anywhere. It need not be a
// valid URL.
func (r *Redactor) redactURL(u string) string {
	return r.clean(nameOfURL, u, func() string { return r.url(u, nil) })
}

// url is URL, and reports what it replaces.
func (r *Redactor) url(u string, report reporter) string {
	authority, rest := r.userinfo(u, report)
	at := len(u) - len(rest)
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		return authority + r.text(rest, at, plain, report)
	}
	return authority + r.text(rest[:end], at, plain, report) + r.parameters(rest[end:], at+end, 0, false, report)
}

// userinfo replaces what stands between the scheme and the host. It returns
// everything up to the @, replaced, and the rest as it is.
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

// value learns a part of a URL, as it is written and as it is meant.
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
		r.Learn(plus) // a plus sign may be meant as it is
	}
	return r.placeholder(meant, plain)
}
