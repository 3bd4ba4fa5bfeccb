package credential

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// LeastLife is the remaining lifetime below which a token is not sent.
const LeastLife = time.Minute

// A Token has the claims of a JWT. Its signature is not verified.
type Token struct {
	// Expires is the time at which the token expires; zero if it does not.
	Expires time.Time
	// Audience are the services for which the token is valid.
	Audience []string
	// Issuer is the service that issued the token.
	Issuer string
}

// maxToken limits the size of a token that is parsed, in bytes.
const maxToken = 64 << 10

// ParseToken returns the claims of a bearer token, with or without the scheme; ok is false if it is not
// a JWT.
func ParseToken(token string) (t Token, ok bool) {
	if _, bare, scheme := strings.Cut(token, " "); scheme {
		token = bare
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return t, false
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return t, false
	}
	var claims struct {
		Exp *float64        `json:"exp"`
		Iss string          `json:"iss"`
		Aud json.RawMessage `json:"aud"`
	}
	if json.Unmarshal(data, &claims) != nil {
		return t, false
	}
	t.Issuer = claims.Iss
	if claims.Exp != nil && *claims.Exp > 0 && *claims.Exp < 1<<40 {
		t.Expires = time.Unix(int64(*claims.Exp), 0).UTC()
	}

	// The audience is a string or a list of strings (RFC 7519).
	var one string
	if json.Unmarshal(claims.Aud, &t.Audience) != nil && json.Unmarshal(claims.Aud, &one) == nil {
		t.Audience = []string{one}
	}
	return t, true
}

// IsStale reports whether, at the time now, the token has expired or has less than LeastLife left.
func (t Token) IsStale(now time.Time) bool {
	return !t.Expires.IsZero() && t.Expires.Sub(now) < LeastLife
}
