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

func credentialsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "credentials [REFERENCE…]",
		Short: "Say which references to credentials resolve, and until when, without their values",
		Long: `credentials looks up what 'unwire replay --credentials REFERENCE' would use, and says
where it is, when it expires (of a JWT, whose signature is not checked), whom it is
for, and which hosts it may be sent to. No value is shown, and nothing is sent.

  env:NAME                  an environment variable with the token
  keyring:SERVICE/ACCOUNT   an item of the system's key store: the Keychain on macOS,
                            the Secret Service on Linux, the Credential Manager on Windows
` + storedCredentials(proto.Profile()) + `
  FILE, file:FILE           secrets, NAME: value a line, mode 0600

Without a REFERENCE it says what the environment has (UNWIRE_TOKEN, UNWIRE_API_KEY);
with --profile NAME, also what that service's client has stored.
A token with less than a minute left is not sent, and is told as expiring. The exit
status is 4 where a token is expired or expiring, or a named reference does not resolve.`,
		Example: "  unwire credentials\n  unwire credentials " + proto.Profile().Name + " keyring:my-service/me",
		RunE: func(_ *cobra.Command, args []string) error {
			return credentials(a, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a secret")
	return cmd
}

// storedCredentials is the line of the help about what a profile's client has stored.
func storedCredentials(p *profile.Profile) string {
	client := strings.ToUpper(p.Name[:1]) + p.Name[1:]
	return fmt.Sprintf("  %-24s  what %s's CLI has stored; for %s and loopback only", p.Name, client, strings.Join(p.Hosts, ", "))
}

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
	switch {
	case missing && named:
		return app.Fail(app.ExitCredentials, errors.New("not every reference resolves"), "")
	case useless:
		return app.Fail(app.ExitCredentials, errors.New("a token is of no more use"), "'unwire replay --refresh' exchanges an API key for a fresh one")
	}
	return nil
}

// States of a credential.
const (
	stateFound    = "found"
	stateMissing  = "missing"
	stateExpired  = "expired"
	stateExpiring = "expiring"
)

// credentialLines says what is behind a reference.
func credentialLines(ref string, now time.Time) []contract.Credential {
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
	if t, from, ok := c.Token(); ok {
		line.State, line.From, line.Issuer = stateFound, from, t.Issuer
		if t.Audience != nil {
			line.Audience = t.Audience
		}
		if !t.Expires.IsZero() {
			line.Expires = t.Expires.Format(time.RFC3339)
		}
		if left := t.Expires.Sub(now); t.IsStale(now) && left > 0 {
			line.State, line.Error = stateExpiring, fmt.Sprintf("in %d s; it is refused below a minute", int(left.Seconds()))
		} else if t.IsStale(now) {
			line.State = stateExpired
		}
		lines = append(lines, line)
	}
	if _, from, ok := c.Find(credential.EnvAPIKey); ok {
		key := contract.Credential{Reference: ref, What: "API key", State: stateFound, From: from, Audience: []string{}, Hosts: line.Hosts}
		lines = append(lines, key)
	}
	if len(lines) == 0 {
		line.Error = "it has neither a token nor an API key"
		lines = append(lines, line)
	}
	return lines
}

// refreshToken exchanges the API key for a token where that is asked for.
func (f *replayFlags) refreshToken(ctx context.Context, captured string, opts replaySettings) error {
	if !f.refresh {
		return nil
	}
	base, err := baseOf(captured, opts)
	if err != nil {
		return err
	}
	p := proto.Profile()
	if p.For(base.Hostname()) {
		base = p.Endpoints.Backend
	}
	return opts.Credentials.Refresh(ctx, p, base, opts.Policy, opts.Timeout)
}

// baseOf is the server that a captured request would be sent to.
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

// agentEndpoint chooses the agent's host by the privacy mode that a captured
// request says.
func agentEndpoint(ex *captures.Exchange) (*url.URL, error) {
	base, err := baseOf(ex.URL, replaySettings{})
	if err != nil {
		return nil, err
	}
	p := proto.Profile()
	return p.Agent(base, ex.RequestHeaders.Get(p.Endpoints.PrivacyHeader)), nil
}
