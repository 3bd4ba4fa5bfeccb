// Package reflected asks servers for the definitions that reflect:URL names, wherever a
// command takes definitions.
//
// A run of the program has one Asker. It asks this machine alone, unless a command allows
// more by its flags, and each server once.
package reflected

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/reflection"
)

// prefix marks a source of definitions as a server that offers gRPC server reflection: reflect:URL.
const prefix = "reflect:"

// Names reports whether a source of definitions is of the form reflect:URL.
func Names(name string) bool { return strings.HasPrefix(name, prefix) }

// Name returns the name of a server as a source of definitions: reflect:URL.
func Name(u *url.URL) string { return prefix + u.String() }

// An Asker fetches definitions from servers by gRPC server reflection. Its zero value only connects to
// this machine.
type Asker struct {
	// policy says which hosts it may connect to.
	policy outbound.Policy

	// credentials has the secrets to send; nil for none.
	credentials *credential.Credentials

	// host is the only HOST:PORT to which credentials are sent; "" for any.
	host string

	// answers caches the reports by source name.
	answers map[string]*reflection.Report
}

// Allow sets the hosts to which the Asker may connect, and the credentials, which may be nil. If to is
// not nil, credentials are sent to that server only.
func (a *Asker) Allow(p outbound.Policy, c *credential.Credentials, to *url.URL) {
	a.policy, a.credentials = p, c
	if to != nil {
		a.host = to.Host
	}
}

// A NameError reports a "reflect:" source without a valid URL.
type NameError struct {
	// name is the source as the user wrote it.
	name string
}

// Error returns the text.
func (e *NameError) Error() string {
	return fmt.Sprintf("reflect: wants a URL such as reflect:http://127.0.0.1:8080, not %q", e.name)
}

// Ask fetches the definitions from the server in name, reflect:URL. It asks each server once, and then
// returns the cached report.
//
// Errors: a NameError, or an error of reflection.Ask.
func (a *Asker) Ask(ctx context.Context, name string) (*reflection.Report, error) {
	if r := a.answers[name]; r != nil {
		return r, nil
	}
	to, err := url.Parse(strings.TrimPrefix(name, prefix))
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, &NameError{name}
	}
	o := reflection.Options{To: to, Reach: a.policy, Header: http.Header{}}
	if a.host == "" || a.host == to.Host {
		if value, _, _, ok := a.credentials.ForHost(to.Hostname()).Header("authorization", ""); ok {
			o.Header.Set("Authorization", value)
		}
	}
	r, err := reflection.Ask(ctx, o)
	if err != nil {
		return nil, err
	}
	if a.answers == nil {
		a.answers = map[string]*reflection.Report{}
	}
	a.answers[name] = r
	return r, nil
}
