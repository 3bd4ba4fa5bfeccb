// Package profile is the type of what is known of one service and its clients
// beyond the messages: how streams are split into calls, which headers and keys
// are secrets, where clients keep their tokens, which hosts those are for. A
// value is handed to whoever needs it; the packages that are handed one know no
// service by name.
//
//	p := &profile.Profile{Name: "example", Hosts: []string{"*.example.com"}}
//	p.For("api.example.com") // true
//
// A nil *Profile is a service of which nothing is known.
package profile

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Profile is one service and its clients.
type Profile struct {
	// Name is how users refer to the profile, as in --credentials NAME.
	Name string

	// Packages are the protobuf packages of the service. Traffic in which none of them
	// occurs is not the service's. None are those of any traffic.
	Packages []string

	// Split is how the service carries a bidirectional stream in several calls.
	Split Split

	// Secrets are what redaction looks for in addition to its own rules.
	Secrets Secrets

	// Hosts are those that the clients' tokens are for, in lower case; *.domain
	// stands for all below domain.
	Hosts []string

	// Endpoints are the servers that calls go to.
	Endpoints Endpoints

	// Tokens is where clients keep their secrets.
	Tokens Tokens

	// Exchange is how an API key becomes a token.
	Exchange Exchange

	// VersionHeader is the header, in lower case, with the client's version.
	VersionHeader string

	// Checksum is the header that has to be computed anew for each request.
	Checksum Checksum
}

// A Split is how a service carries one bidirectional stream in several calls
// where HTTP/2 is missing: the server's half is the answer to one call or several
// (heads), each message of the client is a call of its own (an append), and a
// request id says what belongs together.
type Split struct {
	// Service and RPC are the bidirectional method whose messages are carried inside
	// fields of others.
	Service, RPC string

	Append Append
	Heads  []Head
}

// An Append is a call that carries one message of the client's half.
type Append struct {
	// RPC is the method's name; "" where there is no such call.
	RPC string

	// Text and Binary are the fields of the client's message, as hex or as it is;
	// 0 for none.
	Text, Binary uint64

	// ID are the field numbers that lead to the request id.
	ID []uint64

	// Number is the field of the message's place in the stream, from 0.
	Number uint64
}

// A Head is how the server's half is asked for, and how it comes.
type Head struct {
	// Suffix ends the method's name, behind that of the bidirectional method.
	Suffix string

	// ID are the field numbers that lead to the request id.
	ID []uint64

	// Number, Data and EOF are fields of each message of the answer that carries
	// one of the server's as base64; 0 where the answer's messages are the
	// server's own.
	Number, Data, EOF uint64
}

// Secrets are what is secret in a service's traffic.
type Secrets struct {
	// Headers are names, in lower case, of headers whose whole value is a secret.
	Headers []string

	// Names are query parameters and JSON members whose value is a secret, as
	// they are spelt.
	Names []string

	// Keys are what the service's keys look like.
	Keys []Key

	// Fields are the full names of message fields whose value is a secret; of a
	// field that is a message, every text in it is one. A recorder never decodes, so
	// it cannot use them: whoever reads what was recorded can.
	Fields []string
}

// A Key is what keys of one kind look like: a prefix of three bytes or more, and
// at least MinLength letters and digits, one of them a digit.
type Key struct {
	Prefix    string
	MinLength int
}

// Endpoints are the servers that calls go to.
type Endpoints struct {
	// Backend is the one of all calls but the agent's.
	Backend *url.URL

	// Private and Shared are the agent's, in privacy mode and without.
	Private, Shared *url.URL

	// PrivacyHeader is the header, in lower case, that asks for privacy, unless
	// its value is one of PrivacyOff, in any case.
	PrivacyHeader string
	PrivacyOff    []string
}

// Tokens is where clients keep their secrets: in the Keychain on macOS, elsewhere
// in a file.
type Tokens struct {
	// Account is the account of the items in the key store.
	Account string

	// Folder holds File below the folder for configurations, WindowsFolder on
	// Windows below that for applications' data.
	Folder, WindowsFolder, File string

	// AccessToken, RefreshToken and APIKey are the places of the three.
	AccessToken, RefreshToken, APIKey Place
}

// A Place is where one secret is.
type Place struct {
	// Service is that of the key store's item.
	Service string

	// Member is the name in the JSON object that the file holds.
	Member string
}

// An Exchange is how an API key becomes a token: it is posted as a bearer token.
type Exchange struct {
	// Path is that of the URL, below the backend's.
	Path string

	// Member is the name of the token in the answer's JSON object.
	Member string
}

// A Checksum is a header whose value depends on the time and on the machine.
type Checksum struct {
	// Header is its name in lower case; "" where the service wants none.
	Header string

	// Make returns the value at a time: the captured one brought up to date, or,
	// where captured is "", one of the machine's part. It returns what cannot be
	// brought up to date as it was.
	Make func(captured, machine string, now time.Time) string
}

// Serves reports whether a service, by its full name, is of one of the packages, or of a
// package below one.
func (p *Profile) Serves(service string) bool {
	if p == nil || service == "" {
		return false
	}
	return len(p.Packages) == 0 || slices.ContainsFunc(p.Packages, func(name string) bool {
		below, ok := strings.CutPrefix(service, name)
		return ok && strings.HasPrefix(below, ".")
	})
}

// Everywhere returns a profile like p for traffic of any package, as a user wants it who
// names the profile.
func (p *Profile) Everywhere() *Profile {
	c := *p
	c.Packages = nil
	return &c
}

// Head returns how a call carries the server's half, or nil.
func (p *Profile) Head(service, rpc string) *Head {
	if !p.Serves(service) {
		return nil
	}
	for i := range p.Split.Heads {
		if h := &p.Split.Heads[i]; len(rpc) > len(h.Suffix) && strings.HasSuffix(rpc, h.Suffix) {
			return h
		}
	}
	return nil
}

// IsAppend reports whether a call carries one message of a client's half.
func (p *Profile) IsAppend(service, rpc string) bool {
	return rpc != "" && p.Serves(service) && rpc == p.Split.Append.RPC
}

// For reports whether the clients' tokens are for a host.
func (p *Profile) For(host string) bool {
	if p == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, h := range p.Hosts {
		if domain, ok := strings.CutPrefix(h, "*"); ok && strings.HasSuffix(host, domain) || h == host {
			return true
		}
	}
	return false
}

// Agent returns where the agent's calls go that else would go to backend: a
// server of one's own, and a staging one, stay. privacy is the value of PrivacyHeader:
// what is not known asks for privacy.
func (p *Profile) Agent(backend *url.URL, privacy string) *url.URL {
	e, host := &p.Endpoints, backend.Hostname()
	if host != e.Backend.Hostname() && host != e.Private.Hostname() && host != e.Shared.Hostname() {
		return backend
	}
	if slices.ContainsFunc(e.PrivacyOff, func(off string) bool { return strings.EqualFold(privacy, off) }) {
		return e.Shared
	}
	return e.Private
}
