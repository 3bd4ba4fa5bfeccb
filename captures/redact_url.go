package captures

import (
	"net/url"
	"strings"
)

// URL returns u with the secrets in it replaced, and learns them: the password
// before the host, the values of telling parameters in query and fragment, and
// whatever else is known anywhere. It need not be a valid URL.
func (r *Redactor) URL(u string) string {
	u = r.userinfo(u)
	end := strings.IndexAny(u, "?#")
	if end < 0 {
		return r.text(u, plain)
	}
	var out strings.Builder
	out.WriteString(r.text(u[:end], plain))
	rest := u[end:]
	for rest != "" {
		out.WriteByte(rest[0]) // ? # & or ;
		rest = rest[1:]
		param := rest
		if i := strings.IndexAny(rest, "&;#?"); i >= 0 {
			param = rest[:i]
		}
		rest = rest[len(param):]
		out.WriteString(r.parameter(param))
	}
	return out.String()
}

// userinfo replaces what stands between the scheme and the host.
func (r *Redactor) userinfo(u string) string {
	scheme, rest, found := strings.Cut(u, "://")
	if !found {
		return u
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return u
	}
	user, password, both := strings.Cut(authority[:at], ":")
	if both {
		user += ":" + r.value(password)
	} else {
		user = r.value(user) // a token alone
	}
	return scheme + "://" + user + rest[at:]
}

// parameter replaces the value of name=value if the name tells of a secret.
func (r *Redactor) parameter(p string) string {
	name, value, found := strings.Cut(p, "=")
	if !found {
		return r.text(p, plain)
	}
	if n, err := url.QueryUnescape(name); err == nil {
		if k := r.kindOf([]byte(n)); k == secretName || k == perhapsName || k == parameterName {
			return name + "=" + r.value(value)
		}
	}
	return r.text(p, plain)
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
