// Package profile defines what the toolkit may know about one service and its clients, in addition to message
// definitions: how the service splits streams into calls, which headers and keys are secret, where clients store
// their tokens, and which hosts those tokens are for.
//
// A Profile is plain data with a few lookup methods. The program creates one and hands it to redact, store,
// decode and replay; those packages contain no knowledge about any service.
//
//	p := &profile.Profile{Name: "example", Hosts: []string{"*.example.com"}}
//	p.CoversHost("api.example.com") // true
//
// A nil *Profile describes a service about which nothing is known.
package profile

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Profile describes one recorded service and its clients: what unwire needs to know besides message
// definitions.
type Profile struct {
	// Name is the name by which users select the profile, as in --credentials NAME.
	Name string

	// Packages are the protobuf packages of the service. The profile applies only to calls of their services. If
	// empty, it applies to all calls.
	Packages []string

	// Split describes how the service carries one bidirectional stream in several calls.
	Split Split

	// Secrets are rules for secrets, in addition to the built-in ones.
	Secrets Secrets

	// Hosts are the hosts to which clients' tokens may be sent, in lower case; *.domain matches all
	// subdomains.
	Hosts []string

	// Endpoints are the URLs of the service's servers.
	Endpoints Endpoints

	// Tokens describes where clients of the service store their credentials.
	Tokens Tokens

	// Exchange describes how to exchange an API key for an access token.
	Exchange TokenExchange

	// VersionHeader is the name, in lower case, of the request header with the client's version.
	VersionHeader string

	// Checksum describes a header that must be recomputed for each request.
	Checksum Checksum

	// Executes name the server messages that ask a client to run something, such as a command.
	Executes []Execution
}

// A Split describes how a service carries one bidirectional stream in several calls when HTTP/2 is unavailable.
// The client sends each of its messages as a call of its own (an Append). The server's messages are the
// responses of one or more other calls (Heads). A request id correlates the calls.
type Split struct {
	// Service is the full name of the RPC service with the bidirectional method.
	Service string
	// RPC is the name of the bidirectional method whose stream is split over several calls.
	RPC string

	// Append describes the calls that carry the client's messages.
	Append Append
	// Heads describe the calls that return the server's messages.
	Heads []Head
}

// An Append describes the unary call that carries one client message of a split stream (see Split).
type Append struct {
	// RPC is the method's name; "" if the service has no such call.
	RPC string

	// Text is the number of the request field that contains the client's message in hex; 0 if there is no
	// such field.
	Text uint64
	// Binary is the number of the request field that contains the client's message as bytes; 0 if there is no
	// such field.
	Binary uint64

	// ID is the path of field numbers in the request message to the request id.
	ID []uint64

	// Seq is the number of the field with the message's position in the stream, from 0.
	Seq uint64
}

// A Head describes a call whose response contains the server's messages of a split stream (see Split).
type Head struct {
	// Suffix is appended to the name of the bidirectional method to form the name of this one.
	Suffix string

	// ID is the path of field numbers to the request id.
	ID []uint64

	// Seq is the number of the field, in the response messages, with the message's position in the stream; 0
	// if the response messages are the server's messages themselves.
	Seq uint64
	// Data is the number of the field, in the response messages, with a server message in base64; 0 if the
	// response messages are the server's messages themselves.
	Data uint64
	// EOF is the number of the field, in the response messages, with the end-of-stream flag; 0 if the
	// response messages are the server's messages themselves.
	EOF uint64
}

// Secrets describe which values in a service's traffic are secret.
type Secrets struct {
	// Headers are the lower-case names of headers whose whole value is a secret.
	Headers []string

	// Names are the case-sensitive names of query parameters and JSON members whose value is a secret.
	Names []string

	// Keys describe the format of the service's API keys.
	Keys []KeyShape

	// Fields are the full names of message fields whose value is secret. If such a field is a message, all of
	// its text is secret. Recorders do not decode messages and therefore ignore Fields; package decode/secret
	// applies them.
	Fields []string
}

// A KeyShape is the format of one kind of API key: a prefix of at least three bytes, then at least MinLength
// letters and digits, of which at least one is a digit.
type KeyShape struct {
	// Prefix is the text with which each key begins, of at least three bytes.
	Prefix string
	// MinLength is the smallest number of letters and digits after the prefix.
	MinLength int
}

// Endpoints are the URLs of a service's servers. Some depend on the user's privacy mode, i.e. on whether the service may
// keep the data.
type Endpoints struct {
	// Backend is the URL for all calls except those of the service's AI agent, which has URLs of its own.
	Backend *url.URL

	// Private is the URL for the agent's calls with privacy mode turned on.
	Private *url.URL
	// Shared is the URL for the agent's calls with privacy mode turned off.
	Shared *url.URL

	// PrivacyHeader is the name, in lower case, of the request header that turns privacy mode on.
	PrivacyHeader string
	// PrivacyOff are the values of the privacy header, compared without case, that turn privacy mode off.
	PrivacyOff []string
}

// Tokens describes where clients store their credentials: in the Keychain on macOS, in a file on other
// systems.
type Tokens struct {
	// Account is the account name of the Keychain items.
	Account string

	// Folder is the folder of the credentials file below the user's configuration folder.
	Folder string
	// WindowsFolder is the folder of the credentials file below %APPDATA% on Windows.
	WindowsFolder string
	// File is the name of the credentials file in its folder.
	File string

	// AccessToken locates the token that authenticates requests.
	AccessToken TokenPlace
	// RefreshToken locates the token that renews the access token.
	RefreshToken TokenPlace
	// APIKey locates the user's API key.
	APIKey TokenPlace
}

// A TokenPlace locates one credential in the Keychain and in the file.
type TokenPlace struct {
	// Service is the service name of the Keychain item.
	Service string

	// Member is the member's name in the JSON object in the file.
	Member string
}

// A TokenExchange describes how to get an access token: the API key is sent as a bearer token in a POST request.
type TokenExchange struct {
	// Path is the path of the request, relative to Endpoints.Backend.
	Path string

	// Member is the name of the access token in the JSON response.
	Member string
}

// A Checksum describes a header whose value depends on the time and the machine.
type Checksum struct {
	// Header is the name of the checksum header in lower case; "" if the service needs none.
	Header string

	// Make returns a valid value for the time now. It updates the captured value, or, if captured is "",
	// computes one from the machine's id. It returns values that it cannot update unchanged.
	Make func(captured, machine string, now time.Time) string
}

// Serves reports whether the profile applies to the service with a full name: its package, or a parent
// package, must be listed in Packages.
func (p *Profile) Serves(service string) bool {
	if p == nil || service == "" {
		return false
	}
	return len(p.Packages) == 0 || slices.ContainsFunc(p.Packages, func(name string) bool {
		below, ok := strings.CutPrefix(service, name)
		return ok && strings.HasPrefix(below, ".")
	})
}

// ForAnyPackage returns a copy of p that applies to calls of all packages. It is for users who select the
// profile explicitly.
func (p *Profile) ForAnyPackage() *Profile {
	c := *p
	c.Packages = nil
	return &c
}

// Head returns the Head that describes a call, or nil if the call does not return messages of a split stream.
func (p *Profile) Head(service, rpc string) *Head {
	if !p.Serves(service) {
		return nil
	}
	// The name must be longer than the suffix: the suffix follows the name of the bidirectional method.
	for i := range p.Split.Heads {
		if h := &p.Split.Heads[i]; len(rpc) > len(h.Suffix) && strings.HasSuffix(rpc, h.Suffix) {
			return h
		}
	}
	return nil
}

// IsAppend reports whether a call carries one client message of a split stream.
func (p *Profile) IsAppend(service, rpc string) bool {
	return rpc != "" && p.Serves(service) && rpc == p.Split.Append.RPC
}

// CoversHost reports whether the clients' tokens may be sent to a host, according to Hosts.
func (p *Profile) CoversHost(host string) bool {
	if p == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, h := range p.Hosts {
		// "*.example.com" without the star is the suffix ".example.com".
		if domain, ok := strings.CutPrefix(h, "*"); ok && strings.HasSuffix(host, domain) || h == host {
			return true
		}
	}
	return false
}

// AgentEndpoint returns the URL for the agent's calls, if backend is one of the service's own servers. Other
// servers, such as a local or a staging one, are returned unchanged. privacy is the value of PrivacyHeader;
// unknown values select the private endpoint.
func (p *Profile) AgentEndpoint(backend *url.URL, privacy string) *url.URL {
	e, host := &p.Endpoints, backend.Hostname()
	if host != e.Backend.Hostname() && host != e.Private.Hostname() && host != e.Shared.Hostname() {
		return backend
	}
	if slices.ContainsFunc(e.PrivacyOff, func(off string) bool { return strings.EqualFold(privacy, off) }) {
		return e.Shared
	}
	return e.Private
}

// An Execution names messages in a method's responses that ask the client to run something, such as a command,
// a tool or a change of a file.
type Execution struct {
	// Service is the full name of the RPC service.
	Service string
	// RPC is the name of the method, without the service.
	RPC string

	// Paths lead to message fields; a message that has one of them asks the client to run something. If there
	// are no paths, every message of the method counts, because its contents cannot be decoded.
	Paths [][]Step
}

// A Step is one field of a path in Execution.Paths.
type Step struct {
	// Number is the field's number.
	Number uint64

	// Names are the field's possible names in JSON.
	Names []string
}

// Executing returns the paths of fields by which a method's responses ask the client to run something. all
// means that every response message may do so.
func (p *Profile) Executing(service, rpc string) (paths [][]Step, all bool) {
	if p == nil {
		return nil, false
	}
	for _, e := range p.Executes {
		if e.Service == service && e.RPC == rpc {
			paths, all = append(paths, e.Paths...), all || len(e.Paths) == 0
		}
	}
	return paths, all
}

// Title returns the name of the service as it is written in a sentence, with a capital letter.
func (p *Profile) Title() string { return strings.ToUpper(p.Name[:1]) + p.Name[1:] }
