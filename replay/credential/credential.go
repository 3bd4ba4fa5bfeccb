// Package credential holds the secrets that a capture does not: they come from
// the environment, a file, the system's key store or what a client has stored,
// and are looked up by the name of a header or a variable. Tokens are read for
// when they expire, and an API key can be exchanged for one.
//
//	c, err := credential.Resolver{Getenv: os.Getenv}.Load("keyring:my-service/me")
//	secret, from, ok := c.Find(credential.HeaderNames("authorization")...)
//
// A reference such as keyring:… or the name of a file says where secrets are; stored
// secrets are those of a client on this machine. ParseToken reads a JWT. A token
// exchange posts an API key and returns tokens. A placeholder is recognised here, and
// filled by package replay. Secrets are found before there is a request, so the
// package knows none.
//
// Source: replay/README.md#credentials
package credential

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"unwire/captures/profile"
)

// ErrCredentials is wrapped where a secret of the captured request, which the
// capture does not hold, was not given either.
var ErrCredentials = errors.New("credentials are missing")

// ErrExpired is wrapped where a token was given that expires too soon, or has.
// It is an ErrCredentials, too.
var ErrExpired = errors.New("the token is of no more use")

// Environment variables that hold secrets for a replay. Any other header's
// value comes from headerVariable.
const (
	// of `authorization`; "Bearer " is put before it unless it has a scheme
	EnvToken  = "UNWIRE_TOKEN"
	envCookie = "UNWIRE_COOKIE" // of `cookie`
)

// maxCredentialFile bounds the file that loadFile reads.
const maxCredentialFile = 1 << 20

// headerVariable is the environment variable of a header's secret:
// UNWIRE_HEADER_X_API_KEY for x-api-key.
func headerVariable(header string) string {
	return "UNWIRE_HEADER_" + variable(header)
}

// QueryVariable is the environment variable of the secret in a query parameter.
func QueryVariable(name string) string { return "UNWIRE_QUERY_" + variable(name) }

func variable(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(s))
}

// Credentials are the secrets of a replay. They go into the request that is
// sent and nowhere else. The zero value has none.
type Credentials struct {
	lookup func(name string) string // an environment
	// by variable's name, and by lower-case header name
	file  map[string]string
	path  string
	held  map[string]held  // by variable's name, what came by a reference
	hosts *profile.Profile // whose hosts held may go to; nil: any
}

// loadFile returns the secrets of an environment and, where path is not
// "", of a file, which comes first.
//
// Shape: a line a secret, `NAME: value` or `NAME=value`, NAME a header's or one
// of the environment variables; empty lines and lines that begin with # are skipped.
// Limits: 1 MiB.
// Errors: the file must be readable by its owner alone (mode 0600 or less).
// An error names the line and never its value.
func loadFile(path string, getenv func(string) string) (*Credentials, error) {
	c := &Credentials{lookup: getenv, path: path}
	if path == "" {
		return c, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("replay: %s holds secrets and others can read it (mode %04o): chmod 600 it", path, mode)
	}
	if c.file, err = readCredentials(f); err != nil {
		return nil, fmt.Errorf("replay: %s: %w", path, err)
	}
	return c, nil
}

func readCredentials(r io.Reader) (map[string]string, error) {
	secrets := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(r, maxCredentialFile))
	lines.Buffer(nil, maxCredentialFile)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.IndexAny(line, ":=")
		if i <= 0 {
			return nil, fmt.Errorf("line %d is no `NAME: value`", n)
		}
		value := strings.TrimSpace(line[i+1:])
		if strings.ContainsAny(value, "\r\x00") {
			return nil, fmt.Errorf("line %d: a value cannot hold control characters", n)
		}
		secrets[strings.ToLower(strings.TrimSpace(line[:i]))] = value
	}
	return secrets, lines.Err()
}

// Find returns the first secret that one of names has, and where it came from.
func (c *Credentials) Find(names ...string) (secret, from string, ok bool) {
	if c == nil {
		return "", "", false
	}
	for _, name := range names {
		if h, ok := c.held[name]; ok {
			return h.secret, h.from, true
		}
	}
	for _, name := range names {
		if v := c.file[strings.ToLower(name)]; v != "" {
			return v, c.path, true
		}
	}
	for _, name := range names {
		if c.lookup == nil {
			break
		}
		if v := c.lookup(name); v != "" {
			return v, "$" + name, true
		}
	}
	return "", "", false
}

// headerNames are the names under which a header's secret is looked for.
func headerNames(header string) []string {
	header = strings.ToLower(header)
	names := []string{headerVariable(header), header}
	switch header {
	case "authorization":
		return append([]string{EnvToken}, names...)
	case "cookie":
		return append([]string{envCookie}, names...)
	}
	return names
}

// withScheme puts the captured scheme, or Bearer, before a bare token.
func withScheme(token, captured string) string {
	if strings.Contains(token, " ") {
		return token
	}
	before, _, ok := strings.Cut(captured, " ")
	if !ok || !slices.Contains([]string{"basic", "bearer", "token"}, strings.ToLower(before)) {
		before = "Bearer"
	}
	return before + " " + token
}

// Header finds the value of a header, whose captured value has the scheme of a bare
// token. names are those that were looked for.
func (c *Credentials) Header(header, captured string) (value, from string, names []string, ok bool) {
	names = headerNames(header)
	value, from, ok = c.Find(names...)
	if ok && strings.EqualFold(header, "authorization") {
		value = withScheme(value, captured)
	}
	return value, from, names, ok
}
