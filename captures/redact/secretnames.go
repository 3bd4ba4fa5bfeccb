package redact

import "strings"

// nameKind says what a parameter's or a JSON member's name tells.
type nameKind uint8

const (
	otherName     nameKind = iota
	secretName             // its value is a secret
	perhapsName            // it is, if it looks like one
	parameterName          // it is in a URL; elsewhere the name means other things
)

// kindOf classifies a name as it is spelt, without allocating: bodies have
// many.
func (r *Redactor) kindOf(name []byte) nameKind {
	var buf [maxName + 1]byte
	return r.nameKind(string(appendNormal(buf[:0], name)))
}

// nameKind classifies a normalised name.
func (r *Redactor) nameKind(name string) nameKind {
	if len(r.names) > 0 && r.names[name] {
		return secretName
	}
	switch name {
	case "cookie", "setcookie", "credentials", "xamzsignature", "xamzsecuritytoken", "xgoogsignature":
		return secretName
	case "token", "jwt", "auth", "bearer", "csrf", "xsrf":
		return perhapsName
	case "key", "code", "sig", "signature", "pwd", "pass", "xamzcredential", "xgoogcredential", "sessionid", "sid", "ticket", "assertion", "codeverifier":
		return parameterName
	}
	for i := range secretFamilies {
		family := &secretFamilies[i]
		start, ok := strings.CutSuffix(name, family.end)
		for i := 0; ok && i < len(family.names); i++ {
			if strings.HasSuffix(start, family.names[i]) {
				return secretName
			}
		}
	}
	return otherName
}

// secretFamilies are the names of secrets that end alike, after one of several words.
var secretFamilies = [...]struct {
	end   string
	names []string
}{
	{"token", []string{"access", "refresh", "id", "session", "auth", "api", "bearer", "security"}},
	{"key", []string{"api", "secret", "access", "private", "encryption"}},
	{"secret", []string{""}},
	{"password", []string{""}},
	{"passwd", []string{""}},
	{"passphrase", []string{""}},
	{"authorization", []string{""}},
}

// looksRandom reports whether a value of a name that often means other things
// is a token after all: long, one word, with a digit.
func looksRandom(v []byte) bool {
	digit := false
	for _, c := range v {
		if !tokenChars.has(c) {
			return false
		}
		digit = digit || c >= '0' && c <= '9'
	}
	return digit && len(v) >= 16
}
