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

// refreshBelow is the remaining lifetime below which a token is exchanged for a new one. Clients are
// reported to do so at the same time.
const refreshBelow = 5 * time.Minute

// A Source provides a valid bearer token for a server during a long-running program. If the current
// token is missing or expires in less than five minutes, it exchanges the API key, if there is one, for
// a new token. Its methods may be called concurrently.
type Source struct {
	// credentials have the token and the API key; new tokens are stored there.
	credentials *Credentials

	// profile describes how API keys are exchanged.
	profile *profile.Profile

	// base is the base URL of the server.
	base *url.URL

	// policy determines which hosts may be contacted.
	policy outbound.Policy

	// mu is held during an exchange, so that concurrent callers share its token.
	mu sync.Mutex
	// failed is the time of the last exchange that failed; zero if none did.
	failed time.Time
}

// retryExchange is the time after a failed exchange before the next attempt, as long as the current
// token is valid.
const retryExchange = 30 * time.Second

// NewSource returns a source of tokens for the server at base. It contacts no server.
func NewSource(c *Credentials, p *profile.Profile, base *url.URL, policy outbound.Policy) *Source {
	return &Source{credentials: c, profile: p, base: base, policy: policy}
}

// Token returns a valid bearer token without its scheme, exchanging the API key first if necessary.
//
// Errors: ErrCredentials if there is neither a token nor an API key; ErrExpired; those of the exchange,
// unless the current token is still valid.
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
	return "", fmt.Errorf("%w: a token for %s is missing: set %s or %s", ErrCredentials, s.base.Hostname(), EnvToken, EnvAPIKey)
}

// current returns the current token without its scheme, and its remaining lifetime at the time now; ok
// is false if there is none.
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

// noExpiry is the remaining lifetime assumed for a token that does not say when it expires.
const noExpiry = 100 * 365 * 24 * time.Hour
