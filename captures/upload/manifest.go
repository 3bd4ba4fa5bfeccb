package upload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
)

// Limits of a Manifest, the description of an uploaded capture file.
const (
	// maxListed is the largest number of hosts, methods and clients that a manifest lists, each.
	maxListed = 1000
	// maxText is the largest length of a text in a manifest, in bytes.
	maxText = 300
	// maxManifest is the largest size of a manifest, in bytes.
	maxManifest = 4 << 20
)

// A Manifest describes an uploaded capture file, called a segment. It is stored as JSON next to the segment in
// the object store.
type Manifest struct {
	// V is the version of the manifest's format, always 1.
	V int `json:"v"`
	// SHA256 is the hash of the segment file's content in hex. It is also the name of the object.
	SHA256 string `json:"sha256"`
	// Size is the size of the segment file in bytes.
	Size int64 `json:"size"`

	// First is the time at which the first exchange of the capture file began; zero if it has no exchanges.
	First time.Time `json:"first,omitzero"`
	// Last is the time at which the last exchange of the capture file began; zero if it has no exchanges.
	Last time.Time `json:"last,omitzero"`
	// Exchanges is the number of exchanges in the segment.
	Exchanges int `json:"exchanges"`

	// Hosts are the names of the servers, sorted; at most 1,000 are listed.
	Hosts []string `json:"hosts"`
	// Methods are the called RPC methods as "pkg.Service/Method", sorted; at most 1,000 are listed.
	Methods []string `json:"methods"`
	// Clients are the client programs with their versions, sorted; at most 1,000 are listed.
	Clients []string `json:"clients"`
	// Truncated is set if there are more than 1,000 hosts, methods or clients, so that some are not listed.
	Truncated bool `json:"truncated,omitempty"`

	// Redacted is set if secrets were redacted while the segment was recorded, and an audit found none.
	Redacted bool `json:"redacted"`
	// Unwire is the version of the program that recorded the segment.
	Unwire string `json:"unwire"`
}

// ParseManifest decodes a manifest, which may come from an untrusted party.
//
// Errors: if data is not a manifest of a supported version.
func ParseManifest(data []byte) (*Manifest, error) {
	if len(data) > maxManifest {
		return nil, fmt.Errorf("the manifest has more than %d bytes", maxManifest)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("the file is not a manifest: %w", err)
	}
	if m.V != 1 || !hash().MatchString(m.SHA256) || m.Size < 0 {
		return nil, errors.New("the file is not a manifest of version 1")
	}
	return m, nil
}

// hash matches a SHA-256 hash in lower-case hex.
var hash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// ClientOf returns the client program of an exchange with its version, such as "app/1.2". It uses the
// header that the profile names, or else the process that the recorder identified, or else the
// User-Agent. Without any of these it returns "unknown".
func ClientOf(ex *captures.Exchange, p *profile.Profile) string {
	if p != nil && p.VersionHeader != "" {
		if v := ex.RequestHeaders.Get(p.VersionHeader); v != "" {
			return clean(cmp.Or(p.Name, ex.Process.Client, "client") + "/" + v)
		}
	}
	if ex.Process.Client != "" {
		return clean(strings.TrimSuffix(ex.Process.Client+"/"+ex.Process.Version, "/"))
	}
	agent, _, _ := strings.Cut(ex.RequestHeaders.Get("user-agent"), " ")
	return clean(cmp.Or(agent, ex.Process.Name, "unknown"))
}

// clean returns a text for a manifest: without unsafe characters, and limited in length.
func clean(s string) string {
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s), "_")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// Describe returns the manifest of a capture, without the members that describe the file: SHA256, Size,
// Redacted and Unwire.
//
// Errors: the capture cannot be read.
func Describe(ctx context.Context, src captures.Capture, p *profile.Profile) (*Manifest, error) {
	m := &Manifest{V: 1}

	// Use sets, because most exchanges share hosts, methods and clients.
	hosts, methods, clients := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		m.Exchanges++
		if m.First.IsZero() || ex.Started.Before(m.First) {
			m.First = ex.Started.UTC()
		}
		if ex.Started.After(m.Last) {
			m.Last = ex.Started.UTC()
		}
		clients[ClientOf(ex, p)] = true
		u, err := url.Parse(ex.URL)
		if err != nil {
			continue
		}
		hosts[clean(u.Host)] = true
		// The path of an RPC is /pkg.Service/Method; other paths may have identifiers of people.
		if rpc().MatchString(u.Path) {
			methods[clean(u.Path[1:])] = true
		}
	}

	// Sort the lists, so that equal captures get equal manifests, and cut them to a readable length.
	for set, list := range map[*[]string]map[string]bool{&m.Hosts: hosts, &m.Methods: methods, &m.Clients: clients} {
		*set = slices.AppendSeq([]string{}, maps.Keys(list))
		slices.Sort(*set)
		if len(*set) > maxListed {
			*set, m.Truncated = (*set)[:maxListed], true
		}
	}
	return m, nil
}

// rpc matches the URL path of an RPC, "/package.Service/Method".
var rpc = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+/[A-Za-z_][A-Za-z0-9_]*$`)
})
