package credential

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"unwire/captures/profile"
	"unwire/replay/outbound"
)

// EnvAPIKey is the environment variable with the API key that Credentials.Refresh exchanges for a
// token.
const EnvAPIKey = "UNWIRE_API_KEY"

// keyringWait is the time limit for reading a key store, which may ask the user for permission.
const keyringWait = 30 * time.Second

// readKeyring reads an item of the system's key store: the Keychain on macOS, the Secret Service on
// Linux, the Credential Manager on Windows.
//
// Limits: 30 seconds.
// Errors: a missing item; errors of the key store.
func readKeyring(service, account string) (string, error) {
	type answer struct {
		secret string
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		secret, err := keyring.Get(service, account)
		got <- answer{secret, err}
	}()
	select {
	case a := <-got:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			return "", fmt.Errorf("the key store has no entry %s/%s: %w", service, account, errMissing)
		case a.err != nil:
			return "", fmt.Errorf("the key store cannot be used: %w", a.err)
		}
		return a.secret, nil
	case <-time.After(keyringWait):
		return "", fmt.Errorf("the key store did not answer within %s", keyringWait)
	}
}

// A held secret was found through a reference such as keyring:…; from describes its origin.
type held struct {
	// secret is the secret, and from its origin, such as "keyring:my-service/me".
	secret, from string
}

// A Resolver loads the secrets that the user names by references such as env:NAME or
// keyring:SERVICE/ACCOUNT. The zero value has no environment, and uses the system's key store.
type Resolver struct {
	// OS is the operating system as in runtime.GOOS; "" means the current one.
	OS string
	// Getenv returns the value of an environment variable; nil means that no variable is set.
	Getenv func(string) string
	// Keyring reads an item from a key store; nil means the system's key store.
	Keyring func(service, account string) (string, error)

	// Profile describes a client. Its name is a reference to the secrets that this client has stored on
	// this machine; nil for none.
	Profile *profile.Profile
}

// system returns the resolver's settings with defaults filled in.
func (r Resolver) system() system {
	at := system{os: r.OS, getenv: r.Getenv, keyring: r.Keyring}
	if at.os == "" {
		at.os = runtime.GOOS
	}
	if at.getenv == nil {
		at.getenv = func(string) string { return "" }
	}
	if at.keyring == nil {
		at.keyring = readKeyring
	}
	return at
}

// Load returns the secrets that a reference names, together with those of the environment, which have
// lower precedence.
//
// Shape: ref is "" for only the environment; env:NAME for a token in that variable;
// keyring:SERVICE/ACCOUNT for a token in the system's key store; a profile's name for the secrets that
// this client has stored, which are only sent to its own hosts and to loopback; file:PATH, or just
// PATH, for a file with a secret on each line, `NAME: value` or `NAME=value`, where NAME is a header or
// one of the environment variables. Only its owner may be able to read the file.
// Errors: ErrCredentials if there is no such secret.
func (r Resolver) Load(ref string) (*Credentials, error) {
	at := r.system()
	kind, rest, _ := strings.Cut(ref, ":")
	c := &Credentials{lookup: at.getenv, held: map[string]held{}}

	// A reference has the form KIND:REST, or is the name of a profile or a file.
	switch {
	case kind == "env" && rest != "":
		secret := at.getenv(rest)
		if secret == "" {
			return nil, fmt.Errorf("replay: %w: the environment variable $%s is not set", ErrCredentials, rest)
		}
		c.held[EnvToken] = held{secret, "$" + rest}
	case kind == "keyring":
		service, account, ok := strings.Cut(rest, "/")
		if !ok || service == "" || account == "" {
			return nil, fmt.Errorf("replay: %w: an entry of the key store must be written as keyring:SERVICE/ACCOUNT", ErrCredentials)
		}
		secret, err := at.keyring(service, account)
		if err != nil {
			return nil, fmt.Errorf("replay: %w: %w", ErrCredentials, err)
		}
		c.held[EnvToken] = held{secret, ref}
	case r.Profile != nil && ref == r.Profile.Name:
		return c, c.loadProfile(r.Profile, at)
	default:
		return loadFile(strings.TrimPrefix(ref, "file:"), at.getenv)
	}
	return c, nil
}

// loadProfile loads the access token and the API key that the profile's client has stored. One of the
// two is enough, because an API key can be exchanged for a token.
func (c *Credentials) loadProfile(p *profile.Profile, at system) error {
	c.hosts = p
	secret, from, err := findStored(&p.Tokens, p.Tokens.AccessToken, "access token", at)
	if err == nil {
		c.held[EnvToken] = held{secret, from}
	}
	key, from, keyErr := findStored(&p.Tokens, p.Tokens.APIKey, "API key", at)
	if keyErr == nil {
		c.held[EnvAPIKey] = held{key, from}
	}
	if err != nil && keyErr != nil {
		return fmt.Errorf("replay: %w: %w", ErrCredentials, err)
	}
	return nil
}

// ForHost returns the credentials that may be sent to a host. Secrets that a client has stored are left
// out unless the host is one of its own or a loopback address.
func (c *Credentials) ForHost(host string) *Credentials {
	if c == nil || c.hosts == nil || outbound.IsLoopback(strings.ToLower(host)) || c.hosts.CoversHost(host) {
		return c
	}
	return &Credentials{lookup: c.lookup, file: c.file, path: c.path}
}

// Token returns claims and origin of the bearer token; ok is false if there is none. The claims are
// zero if it is not a JWT.
func (c *Credentials) Token() (t Token, from string, ok bool) {
	secret, from, ok := c.Find(EnvToken, headerVariable("authorization"), "authorization")
	if !ok {
		return t, "", false
	}
	t, _ = ParseToken(secret)
	return t, from, true
}
