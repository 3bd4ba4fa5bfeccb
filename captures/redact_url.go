package captures

import (
	"net/url"
	"strings"
)

// URL returns u with the secrets in it replaced, and learns them: the password
// before the host, the values of telling parameters in query and fragment, and
// whatever else is known anywhere. It need not be a valid URL.
func (r *Redactor) URL(u string) string { return r.url(u, nil) }

// url is URL, and reports what it replaces.
func (r *Redactor) url(u string, report reporter) string {
	authority, rest := r.userinfo(u, report)
	at := len(u) - len(rest)
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		return authority + r.text(rest, at, plain, report)
	}
	var out strings.Builder
	out.WriteString(authority)
	out.WriteString(r.text(rest[:end], at, plain, report))
	rest = rest[end:]
	for rest != "" {
		out.WriteByte(rest[0]) // ? # & or ;
		rest = rest[1:]
		param := rest
		if i := strings.IndexAny(rest, "&;#?"); i >= 0 {
			param = rest[:i]
		}
		rest = rest[len(param):]
		out.WriteString(r.parameter(param, len(u)-len(rest)-len(param), report))
	}
	return out.String()
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
		report.value(Hit{Rule: RuleURLPassword, Off: from + len(user) + 1}, password)
		user = r.text(user, from, plain, report) + ":" + r.value(password)
	} else {
		report.value(Hit{Rule: RuleURLPassword, Off: from}, user)
		user = r.value(user) // a token alone
	}
	return scheme + "://" + user, rest[at:]
}

// parameter replaces the value of name=value if the name tells of a secret.
func (r *Redactor) parameter(p string, at int, report reporter) string {
	name, value, found := strings.Cut(p, "=")
	if !found {
		return r.text(p, at, plain, report)
	}
	if n, err := url.QueryUnescape(name); err == nil {
		if k := r.kindOf([]byte(n)); k == secretName || k == perhapsName || k == parameterName {
			report.value(Hit{Rule: RuleParameter, Name: n, Off: at + len(name) + 1}, value)
			return name + "=" + r.value(value)
		}
	}
	return r.text(p, at, plain, report)
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
	r.learn(meant)
	return r.placeholder(meant, plain)
}
