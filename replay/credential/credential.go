// Package credential finds the secrets that a capture does not contain: in the environment, in a
// file, in the system's key store, or where a client has stored them. They are looked up by the
// name of a header or a variable. The expiry of tokens is checked, and an API key can be exchanged
// for a token.
//
//	c, err := credential.Resolver{Getenv: os.Getenv}.Load("keyring:my-service/me")
//	secret, from, ok := c.Find(credential.HeaderNames("authorization")...)
//
// A reference such as keyring:… or the name of a file says where secrets are; stored secrets are
// those of a client on this machine. ParseToken parses a JWT. A token exchange posts an API key and
// returns tokens. Placeholders are recognised here, and replaced by package replay. Secrets are
// resolved before there is a request, so the package does not depend on requests.
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

// ErrCredentials reports that a secret is missing: it was redacted in the capture, and the user did not
// provide it, or the user refers to a secret that does not exist.
var ErrCredentials = errors.New("credentials are missing")

// ErrNotRecorded is the ErrCredentials of a captured request whose secrets the capture does not contain. The
// text of an error continues with where they were.
var ErrNotRecorded = fmt.Errorf("%w: the capture does not contain the secret in", ErrCredentials)

// ErrExpired reports that a token has expired or expires too soon. Such an error is also an
// ErrCredentials.
var ErrExpired = errors.New("the token is expired, or expires within a minute")

// Environment variables with secrets for a replay. For other headers, headerVariable gives the name.
const (
	// EnvToken is for the authorization header; "Bearer " is added if the value has no scheme.
	EnvToken = "UNWIRE_TOKEN"
	// envCookie is for the cookie header.
	envCookie = "UNWIRE_COOKIE"
)

// maxCredentialFile limits how many bytes of a credentials file are read.
const maxCredentialFile = 1 << 20

// headerVariable returns the name of the environment variable for a header's secret:
// UNWIRE_HEADER_X_API_KEY for x-api-key.
func headerVariable(header string) string {
	return "UNWIRE_HEADER_" + variable(header)
}

// QueryVariable returns the name of the environment variable for the secret in a query parameter:
// UNWIRE_QUERY_KEY for key.
func QueryVariable(name string) string { return "UNWIRE_QUERY_" + variable(name) }

// variable converts a name to the form of environment variables: upper case, with "_" for other
// characters.
func variable(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(s))
}

// Credentials are the secrets that may replace placeholders in a replayed request. The zero value is
// empty.
type Credentials struct {
	// lookup returns the value of an environment variable.
	lookup func(name string) string
	// file are the secrets from the file, by variable name or header name, in lower case.
	file map[string]string

	// path is the path of the file; "" if there is none.
	path string
	// held are the secrets that a reference such as keyring:… named, by variable name.
	held map[string]held
	// hosts is the profile whose hosts may receive the secrets in held; nil allows any host.
	hosts *profile.Profile
}

// loadFile returns the secrets of the environment and, if path is not "", of a file, which takes
// precedence.
//
// Shape: each line is `NAME: value` or `NAME=value`, where NAME is a header or one of the
// environment variables. Empty lines and lines that start with # are ignored.
// Limits: 1 MiB.
// Errors: a file that others can read (the mode must be 0600 or less). Errors contain the line
// number, never the value.
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
		return nil, fmt.Errorf("replay: %s contains secrets, but other users can read it (mode %04o): run 'chmod 600' on it", path, mode)
	}
	if c.file, err = readCredentials(f); err != nil {
		return nil, fmt.Errorf("replay: %s: %w", path, err)
	}
	return c, nil
}

// readCredentials parses a file in the format of loadFile. The names in the result are in lower case.
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
			return nil, fmt.Errorf("line %d is not `NAME: value`", n)
		}
		value := strings.TrimSpace(line[i+1:])
		if strings.ContainsAny(value, "\r\x00") {
			return nil, fmt.Errorf("line %d: a value cannot contain control characters", n)
		}
		secrets[strings.ToLower(strings.TrimSpace(line[:i]))] = value
	}
	return secrets, lines.Err()
}

// Find returns the first secret that exists under one of the names, which are variable or header names.
// Secrets from references precede those from the file, which precede the environment. from describes
// the origin, such as "$UNWIRE_TOKEN".
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

// headerNames returns the variable and header names under which a header's secret is looked up, in
// order.
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

// Variable returns the environment variable that is looked up first for a header's secret.
func Variable(header string) string { return headerNames(header)[0] }

// withScheme prepends a scheme to a token that has none: that of the captured value, or Bearer.
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

// Header finds the value of a header. If the secret is a token without a scheme, that of the captured
// value is used. names are the names that were looked up.
func (c *Credentials) Header(header, captured string) (value, from string, names []string, ok bool) {
	names = headerNames(header)
	value, from, ok = c.Find(names...)
	if ok && strings.EqualFold(header, "authorization") {
		value = withScheme(value, captured)
	}
	return value, from, names, ok
}
