// Package profile holds what is known of one subject's clients beyond its
// messages: where they keep their tokens, which hosts those are for, and which
// headers say what. Nothing else in the program knows a subject by name.
//
// Source: RESEARCH.md#credentials
package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Profile is one subject.
type Profile struct {
	Name  string
	Hosts []string // that its tokens are for; *.domain stands for all below domain

	Account      string // of its items in a key store
	AccessToken  string // the item's service
	RefreshToken string
	APIKey       string

	Exchange string // path where an API key is exchanged for tokens
	Backend  *url.URL
	Private  *url.URL // agent host in privacy mode
	Shared   *url.URL // and without

	VersionHeader string
	// its value is made of the time and of ids of the machine
	ChecksumHeader string
	PrivacyHeader  string
}

// Cursor is Cursor's CLI.
func Cursor() *Profile {
	host := func(name string) *url.URL { return &url.URL{Scheme: "https", Host: name} }
	return &Profile{
		Name: "cursor", Hosts: []string{"*.cursor.sh"}, Account: "cursor-user",
		AccessToken: "cursor-access-token", RefreshToken: "cursor-refresh-token", APIKey: "cursor-api-key",
		Exchange: "/auth/exchange_user_api_key",
		Backend:  host("api2.cursor.sh"), Private: host("agent.api5.cursor.sh"), Shared: host("agentn.api5.cursor.sh"),
		VersionHeader: "x-cursor-client-version", ChecksumHeader: "x-cursor-checksum", PrivacyHeader: "x-ghost-mode",
	}
}

// Agent is where the agent's calls go that else would go to backend: a server
// of one's own, and a staging one, stay.
func (p *Profile) Agent(backend *url.URL, private bool) *url.URL {
	host := backend.Hostname()
	if host != p.Backend.Hostname() && host != p.Private.Hostname() && host != p.Shared.Hostname() {
		return backend
	}
	if private {
		return p.Private
	}
	return p.Shared
}

// IsPrivate reports whether a value of PrivacyHeader asks for privacy; what is
// not known does.
func (p *Profile) IsPrivate(header string) bool {
	return !strings.EqualFold(header, "false") && !strings.EqualFold(header, "implicit-false")
}

// For reports whether the profile's tokens are for a host.
func (p *Profile) For(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, h := range p.Hosts {
		if domain, ok := strings.CutPrefix(h, "*"); ok && strings.HasSuffix(host, domain) || h == host {
			return true
		}
	}
	return false
}

var dated = regexp.MustCompile(`\b(20[0-9]{2})\.([0-9]{2})\.([0-9]{2})\b`)

// Released is the date in a client's version, such as cli-2025.11.25-d5b3271.
func Released(version string) (time.Time, bool) {
	m := dated.FindString(version)
	t, err := time.Parse("2006.01.02", m)
	return t, m != "" && err == nil
}

// A Kind is one of a client's secrets.
type Kind string

const (
	Access  Kind = "access token"
	refresh Kind = "refresh token"
	Key     Kind = "API key"
)

// A Place is where a client may keep its secrets.
type Place struct {
	OS      string // as runtime.GOOS has it
	Getenv  func(string) string
	Keyring func(service, account string) (string, error)
}

// ErrMissing is wrapped where a place has no such secret.
var ErrMissing = errors.New("not there")

// maxAuthFile bounds the client's file.
const maxAuthFile = 1 << 20

// Find reads one of the client's own secrets: from the Keychain on macOS, and
// elsewhere from the file that the client writes. from says where, without the secret.
//
// Errors: ErrMissing; what the key store or the file system says.
func (p *Profile) Find(kind Kind, at Place) (secret, from string, err error) {
	if at.OS == "darwin" {
		service := map[Kind]string{Access: p.AccessToken, refresh: p.RefreshToken, Key: p.APIKey}[kind]
		from = "keyring:" + service + "/" + p.Account
		if secret, err = at.Keyring(service, p.Account); err != nil {
			return "", from, err
		}
		return secret, from, nil
	}
	from = p.AuthFile(at)
	f, err := os.Open(from)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", from, fmt.Errorf("%s: %w", from, ErrMissing)
		}
		return "", from, err
	}
	defer f.Close()
	var auth struct{ AccessToken, RefreshToken, APIKey string }
	data, err := io.ReadAll(io.LimitReader(f, maxAuthFile))
	if err == nil {
		err = json.Unmarshal(data, &auth)
	}
	if err != nil { // it may quote the file
		return "", from, fmt.Errorf("%s is no JSON object of strings", from)
	}
	secret = map[Kind]string{Access: auth.AccessToken, refresh: auth.RefreshToken, Key: auth.APIKey}[kind]
	if secret == "" {
		return "", from, fmt.Errorf("%s has no %s: %w", from, kind, ErrMissing)
	}
	return secret, from, nil
}

// AuthFile is the file with the client's tokens.
func (p *Profile) AuthFile(at Place) string {
	const folder, name = "Cursor", "auth.json"
	if at.OS == "windows" {
		return filepath.Join(at.Getenv("APPDATA"), folder, name)
	}
	config := at.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(at.Getenv("HOME"), ".config")
	}
	return filepath.Join(config, strings.ToLower(folder), name)
}
