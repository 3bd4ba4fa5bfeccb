package captures

import "strings"

// nameKind says what a parameter's or a JSON member's name tells.
type nameKind uint8

const (
	otherName     nameKind = iota
	secretName             // its value is a secret
	perhapsName            // it is, if it looks like one
	parameterName          // it is in a URL; elsewhere the name means other things
)

// normalName folds the ways a name is spelt: accessToken, access_token,
// Access-Token.
func normalName(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '_' || c == '-' || c == '.':
			return -1
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// nameKind classifies a normalised name.
func (r *Redactor) nameKind(name string) nameKind {
	if r.names[name] {
		return secretName
	}
	switch name {
	case "cookie", "setcookie", "credentials", "xcursorchecksum", "xclientkey", "xamzsignature", "xamzsecuritytoken", "xgoogsignature":
		return secretName
	case "token", "jwt", "auth", "bearer", "csrf", "xsrf":
		return perhapsName
	case "key", "code", "sig", "signature", "pwd", "pass", "xamzcredential", "xgoogcredential", "sessionid", "sid", "ticket", "assertion", "codeverifier":
		return parameterName
	}
	for _, suffix := range []string{
		"accesstoken", "refreshtoken", "idtoken", "sessiontoken", "authtoken", "apitoken", "bearertoken", "securitytoken",
		"apikey", "secretkey", "secretaccesskey", "accesskey", "privatekey", "encryptionkey", "secret", "password", "passwd", "passphrase", "authorization",
	} {
		if strings.HasSuffix(name, suffix) {
			return secretName
		}
	}
	return otherName
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
