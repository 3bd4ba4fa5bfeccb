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

// EnvAPIKey is the environment variable of an API key that Refresh exchanges.
const EnvAPIKey = "UNWIRE_API_KEY"

// keyringWait is how long a key store may take: it may ask its user.
const keyringWait = 30 * time.Second

// readKeyring reads an item of the system's key store: the Keychain on macOS, the
// Secret Service on Linux, the Credential Manager on Windows.
//
// Limits: 30 seconds.
// Errors: where there is no such item; what the store says.
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
			return "", fmt.Errorf("the key store has no %s/%s: %w", service, account, errMissing)
		case a.err != nil:
			return "", fmt.Errorf("the key store: %w", a.err)
		}
		return a.secret, nil
	case <-time.After(keyringWait):
		return "", fmt.Errorf("the key store did not answer within %s", keyringWait)
	}
}

// A held secret came by a reference.
type held struct{ secret, from string }

// A Resolver turns references into credentials. Its zero value knows nothing of
// an environment, and asks the system's key store.
type Resolver struct {
	OS     string // "": this one
	Getenv func(string) string
	// nil: that of the system
	Keyring func(service, account string) (string, error)

	// Profile is a client whose stored secrets its name refers to; it may be nil.
	Profile *profile.Profile
}

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

// Load returns the secrets that a reference names, beside those of the
// environment, which come after them.
//
// Shape: "" is the environment alone; env:NAME the variable that holds the
// token; keyring:SERVICE/ACCOUNT an item of the system's key store that is the
// token; a profile's name what that client has stored, which goes to its own
// hosts and loopback only; file:PATH, or just PATH, a file with a
// secret on each line, `NAME: value` or `NAME=value`, NAME a header's or one of the
// environment variables, which its owner alone can read.
// Errors: ErrCredentials where there is no such secret.
func (r Resolver) Load(ref string) (*Credentials, error) {
	at := r.system()
	kind, rest, _ := strings.Cut(ref, ":")
	c := &Credentials{lookup: at.getenv, held: map[string]held{}}
	switch {
	case kind == "env" && rest != "":
		secret := at.getenv(rest)
		if secret == "" {
			return nil, fmt.Errorf("replay: %w: $%s is not set", ErrCredentials, rest)
		}
		c.held[EnvToken] = held{secret, "$" + rest}
	case kind == "keyring":
		service, account, ok := strings.Cut(rest, "/")
		if !ok || service == "" || account == "" {
			return nil, fmt.Errorf("replay: %w: a key store's item is keyring:SERVICE/ACCOUNT", ErrCredentials)
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

// loadProfile takes what a client has stored; an API key alone will do, too:
// it can be exchanged.
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

// ForHost are the credentials that may go to a host: what a client has stored
// goes to its own hosts, and to this machine.
func (c *Credentials) ForHost(host string) *Credentials {
	if c == nil || c.hosts == nil || outbound.IsLoopback(strings.ToLower(host)) || c.hosts.For(host) {
		return c
	}
	return &Credentials{lookup: c.lookup, file: c.file, path: c.path}
}

// Token says what the bearer token says of itself, and where it comes from;
// ok is false where there is none.
func (c *Credentials) Token() (t Token, from string, ok bool) {
	secret, from, ok := c.Find(EnvToken, headerVariable("authorization"), "authorization")
	if !ok {
		return t, "", false
	}
	t, _ = ParseToken(secret)
	return t, from, true
}
