package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/replaytext"
	"unwire/proto"
	"unwire/replay/credential"
)

// credentialsCommand returns the command 'unwire credentials', which checks where secrets would be read
// from.
func credentialsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "credentials [REFERENCE…]",
		Short: "Check where credentials come from and when they expire, without printing them",
		Long: `credentials looks up the secrets, such as tokens, that 'unwire replay
--credentials REFERENCE' would send. For each secret, credentials prints its source, and
the hosts to which unwire may send the secret. If the secret is a JWT, credentials also
prints the time when it expires, and its audience; credentials does not check the
signature. credentials never prints the secret itself, and sends nothing. REFERENCE is
one of:

  env:NAME                  the environment variable NAME, which contains a token
  keyring:SERVICE/ACCOUNT   an entry in the key store of the system: the Keychain on macOS,
                            the Secret Service on Linux, the Credential Manager on Windows
` + storedCredentials(proto.Profile()) + `
  FILE, file:FILE           a file with lines such as authorization: Bearer TOKEN (file mode 0600)

Without REFERENCE, credentials checks the environment variables UNWIRE_TOKEN and
UNWIRE_API_KEY. A profile describes one service, such as ` + proto.Profile().Name + `. With --profile
NAME, credentials also checks the secrets that the service's client stored on this
machine. If a token expires within a minute, credentials reports it as expiring, and
unwire does not send it. The exit status is 4 if a token is expired or expiring, or if
credentials finds no secret for REFERENCE.`,
		Example: `  # Check the environment variables UNWIRE_TOKEN and UNWIRE_API_KEY
  unwire credentials
  # Check a client's stored token, and an entry in the system's key store
  unwire credentials ` + proto.Profile().Name + ` keyring:my-service/me`,
		RunE: func(_ *cobra.Command, args []string) error {
			return credentials(a, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each secret")
	return cmd
}

// storedCredentials returns the line of the help about the token that the CLI of a profile's service has
// stored.
func storedCredentials(p *profile.Profile) string {
	return fmt.Sprintf("  %-24s  the token that the %s CLI stored on this machine; unwire sends it\n  %-24s  only to %s and to servers on this machine", p.Name, p.Title(), "", strings.Join(p.Hosts, ", "))
}

// credentials executes 'unwire credentials': it prints for each reference to a secret, such as env:NAME,
// whether the secret exists and when it expires. It never prints the secret.
func credentials(a *app.App, refs []string, asJSON bool) error {
	named := len(refs) > 0
	if !named {
		refs = []string{"env:" + credential.EnvToken}
		if a.NamesProfile() {
			refs = append(refs, proto.Profile().Name)
		}
	}
	missing, useless := false, false
	var lines []contract.Credential

	// A reference may resolve to several secrets, such as a token and an API key.
	for _, ref := range refs {
		found := credentialLines(ref, time.Now())
		missing = missing || slices.ContainsFunc(found, func(l contract.Credential) bool { return l.State == stateMissing })
		useless = useless || slices.ContainsFunc(found, func(l contract.Credential) bool { return l.State == stateExpired || l.State == stateExpiring })
		lines = append(lines, found...)
	}
	if asJSON {
		for _, l := range lines {
			if err := a.Print(&l); err != nil {
				return err
			}
		}
	} else {
		if err := replaytext.Credentials(a.Out, lines); err != nil {
			return err
		}
	}

	// Missing references matter only if the user named them.
	switch {
	case missing && named:
		return app.Fail(app.ExitCredentials, errors.New("some secrets could not be loaded"), "'unwire credentials --help' lists the forms of REFERENCE")
	case useless:
		return app.Fail(app.ExitCredentials, errors.New("a token listed above has expired, or expires within a minute"), "'unwire replay --refresh' exchanges an API key for a new token")
	}
	return nil
}

// States of a secret that a reference names.
const (
	stateFound    = "found"
	stateMissing  = "missing"
	stateExpired  = "expired"
	stateExpiring = "expiring"
)

// credentialLines returns one object for each secret that a reference names: where it was found and when
// it expires, without its value.
func credentialLines(ref string, now time.Time) []contract.Credential {
	// Start with the worst state, and replace it by what is found.
	line := contract.Credential{Reference: ref, What: "token", State: stateMissing, Audience: []string{}, Hosts: []string{}}
	if ref == proto.Profile().Name {
		line.Hosts = proto.Profile().Hosts
	}
	c, err := credential.Resolver{Getenv: os.Getenv, Profile: proto.Profile()}.Load(ref)
	if err != nil {
		line.Error = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "replay: "), credential.ErrCredentials.Error()+": ")
		return []contract.Credential{line}
	}
	var lines []contract.Credential

	// The token with its claims; an expiring one is as useless as an expired one.
	if t, from, ok := c.Token(); ok {
		line.State, line.From, line.Issuer = stateFound, from, t.Issuer
		if t.Audience != nil {
			line.Audience = t.Audience
		}
		if !t.Expires.IsZero() {
			line.Expires = t.Expires.Format(time.RFC3339)
		}
		if left := t.Expires.Sub(now); t.IsStale(now) && left > 0 {
			line.State, line.Error = stateExpiring, fmt.Sprintf("in %d s, so unwire does not send the token", int(left.Seconds()))
		} else if t.IsStale(now) {
			line.State = stateExpired
		}
		lines = append(lines, line)
	}

	// An API key is listed in addition to a token, because it can be exchanged for a new one.
	if _, from, ok := c.Find(credential.EnvAPIKey); ok {
		key := contract.Credential{Reference: ref, What: "API key", State: stateFound, From: from, Audience: []string{}, Hosts: line.Hosts}
		lines = append(lines, key)
	}
	if len(lines) == 0 {
		line.Error = "found neither a token nor an API key"
		lines = append(lines, line)
	}
	return lines
}

// refreshToken exchanges the user's API key for a new access token, and stores it in the credentials of
// opts, if --refresh is set. captured is the URL of the recorded request.
func (f *replayFlags) refreshToken(ctx context.Context, captured string, opts replaySettings) error {
	if !f.refresh {
		return nil
	}
	base, err := baseOf(captured, opts)
	if err != nil {
		return err
	}
	p := proto.Profile()
	if p.CoversHost(base.Hostname()) {
		base = p.Endpoints.Backend
	}
	return opts.Credentials.Refresh(ctx, p, base, opts.Policy, opts.Timeout)
}

// baseOf returns scheme and host of the server to which a request is sent: that of --to, or else that of
// the recorded URL.
func baseOf(captured string, opts replaySettings) (*url.URL, error) {
	if opts.To != nil {
		return opts.To, nil
	}
	u, err := url.Parse(captured)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// agentEndpoint returns the URL of the service's agent host that serves the privacy mode in a recorded
// request.
func agentEndpoint(ex *captures.Exchange) (*url.URL, error) {
	base, err := baseOf(ex.URL, replaySettings{})
	if err != nil {
		return nil, err
	}
	p := proto.Profile()
	return p.AgentEndpoint(base, ex.RequestHeaders.Get(p.Endpoints.PrivacyHeader)), nil
}
