package credential

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// LeastLife is how long a token must still be good for to be sent.
const LeastLife = time.Minute

// A Token is what a JWT says of itself. Its signature is not looked at.
type Token struct {
	Expires  time.Time // zero: it does not say
	Audience []string
	Issuer   string
}

// maxToken bounds a token that is looked into.
const maxToken = 64 << 10

// ParseToken reads what a bearer token says of itself; ok is false where it is
// no JWT.
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
	var one string
	if json.Unmarshal(claims.Aud, &t.Audience) != nil && json.Unmarshal(claims.Aud, &one) == nil {
		t.Audience = []string{one}
	}
	return t, true
}

// IsStale reports whether a token is of no more use.
func (t Token) IsStale(now time.Time) bool {
	return !t.Expires.IsZero() && t.Expires.Sub(now) < LeastLife
}
