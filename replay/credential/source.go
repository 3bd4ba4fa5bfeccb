package credential

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"unwire/captures/profile"
	"unwire/replay/outbound"
)

// refreshBelow is the remaining lifetime below which a token is exchanged for a new one. Clients
// are reported to do the same.
const refreshBelow = 5 * time.Minute

// A Source provides the token for a server while a program runs. If there is an API key, it
// exchanges it for a token if there is none, or if the current one expires in less than five
// minutes. Its methods may be called concurrently.
type Source struct {
	credentials *Credentials
	profile     *profile.Profile
	base        *url.URL
	policy      outbound.Policy

	mu sync.Mutex
	// failed is the time of the last failed attempt to get a token.
	failed time.Time
}

// retryExchange is how long a failed exchange is not retried while the current token is valid.
const retryExchange = 30 * time.Second

// NewSource returns a source of tokens for the server at base. It sends nothing.
func NewSource(c *Credentials, p *profile.Profile, base *url.URL, policy outbound.Policy) *Source {
	return &Source{credentials: c, profile: p, base: base, policy: policy}
}

// Token returns the bearer token without its scheme.
//
// Errors: ErrCredentials if there is neither a token nor an API key; ErrExpired; those of the
// exchange, unless the current token is still valid.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	token, left, ok := s.current(now)
	if ok && left > refreshBelow {
		return token, nil
	}
	usable := ok && left > LeastLife

	// A failed exchange is not fatal while the old token is valid.
	if _, _, hasKey := s.credentials.ForHost(s.base.Hostname()).Find(EnvAPIKey); hasKey && (!usable || now.Sub(s.failed) > retryExchange) {
		if err := s.credentials.Refresh(ctx, s.profile, s.base, s.policy, 0); err != nil {
			s.failed = now
			if usable {
				return token, nil
			}
			return "", err
		}
		token, left, ok = s.current(now)
		usable = ok && left > LeastLife
	}
	switch {
	case usable:
		return token, nil
	case ok:
		return "", fmt.Errorf("%w: sign in again, or set %s", ErrExpired, EnvAPIKey)
	}
	return "", fmt.Errorf("%w: no token for %s: set %s or %s", ErrCredentials, s.base.Hostname(), EnvToken, EnvAPIKey)
}

// current returns the cached access token and its remaining lifetime; ok is false if there is none.
func (s *Source) current(now time.Time) (token string, left time.Duration, ok bool) {
	token, _, ok = s.credentials.ForHost(s.base.Hostname()).Find(headerNames("authorization")...)
	if !ok {
		return "", 0, false
	}
	if scheme, bare, found := strings.Cut(token, " "); found && strings.EqualFold(scheme, "bearer") {
		token = bare
	}
	left = noExpiry
	if t, isJWT := ParseToken(token); isJWT && !t.Expires.IsZero() {
		left = t.Expires.Sub(now)
	}
	return token, left, true
}

// noExpiry is the assumed lifetime of a token without an expiry.
const noExpiry = 100 * 365 * 24 * time.Hour
