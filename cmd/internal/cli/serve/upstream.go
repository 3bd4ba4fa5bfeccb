package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/proto"
	"unwire/replay/agent"
	"unwire/replay/agent/turn"
	"unwire/replay/credential"
	"unwire/replay/gateway"
	"unwire/replay/outbound"
	"unwire/replay/standin"
)

// An upstream is the server of the agent API to which requests are translated: a live server, or the
// local stand-in.
type upstream struct {
	// options are the options for the client of the agent API.
	options agent.Options

	// client is the client of the agent API; nil before begin.
	client *agent.Client

	// name describes the server for the user.
	name string

	// recorder records the traffic; nil records nothing.
	recorder captures.Recorder

	// capture is the capture that is recorded to; nil if there is none.
	capture *store.Store

	// stop ends the stand-in server; it does nothing for a live server.
	stop func()
}

var _ gateway.Upstream = (*upstream)(nil)

// Models returns the models that the agent API offers.
func (u *upstream) Models(ctx context.Context) ([]turn.Model, error) { return u.client.Models(ctx) }

// Run starts a conversation with the agent API, and returns the stream of its events.
func (u *upstream) Run(ctx context.Context, r *turn.Request) (gateway.Stream, error) {
	s, err := u.client.Run(ctx, "", r)
	if err != nil { // a nil *Stream must not become a Stream
		return nil, err
	}
	return s, nil
}

// close closes the client, the stand-in server and the capture.
func (u *upstream) close() error {
	if u.client != nil {
		u.client.Close()
	}
	u.stop()
	if u.capture == nil {
		return nil
	}
	return u.capture.Close()
}

// openUpstream returns the upstream that the flags describe. Without --to, it starts the stand-in server.
func openUpstream(ctx context.Context, a *app.App, f flags) (*upstream, error) {
	if err := app.OneOf("--transport", f.transport, agent.Auto, agent.HTTP2, agent.SSE); err != nil {
		return nil, err
	}
	o := agent.Options{
		Profile: proto.Profile(), Transport: f.transport, ClientVersion: f.clientVersion, Privacy: f.privacy,
		Live: f.Live, AllowHosts: f.Allow,
	}
	if f.toolMap != "" {
		data, err := a.ReadInput(f.toolMap)
		if err != nil {
			return nil, err
		}
		if o.ToolMap, err = agent.ParseToolMap(data); err != nil {
			return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", f.toolMap, err), "'unwire serve --print-tool-map' prints a valid tool map")
		}
	}

	// Without --to, the upstream is the stand-in, so that nothing leaves the machine by default.
	to, policy, err := f.Server()
	if err != nil {
		return nil, err
	}
	u := &upstream{stop: func() {}}
	if to == nil {
		err = u.startStandin(a, f, &o)
	} else {
		err = f.useServer(u, to, policy, &o)
	}
	if err != nil {
		return nil, err
	}

	// The URL may come from a profile, so it is checked here again.
	if err = outbound.CheckTarget(o.URL, o.Live, o.AllowHosts); err != nil {
		u.stop()
		return nil, app.Refusal(err)
	}
	u.options = o
	return u, nil
}

// begin creates the client of the agent API and, if out is not "", the capture that records it.
func (u *upstream) begin(ctx context.Context, a *app.App, out string) (err error) {
	if err = u.record(a, out); err == nil {
		u.options.Recorder = u.recorder
		u.client, err = agent.New(ctx, u.options)
	}
	return err
}

// record creates or opens the capture out, which records the traffic with the agent API; "" records
// nothing.
func (u *upstream) record(a *app.App, out string) (err error) {
	if out == "" {
		return nil
	}
	u.capture, err = store.Create(out, a.IndexedWhenClosed(store.Options{
		Failed: func(err error) { a.SayStopped(err, "the server") },
	}))
	if err == nil {
		u.recorder = u.capture
	}
	return err
}

// startStandin starts the stand-in server on a free port, and sets its URL, token and CA in o.
func (u *upstream) startStandin(a *app.App, f flags, o *agent.Options) error {
	// The token protects the stand-in from other programs on this machine.
	token := rand.Text()
	options := standin.Options{Seed: 1, Token: token}
	if f.script != "" {
		script, err := a.ReadInput(f.script)
		if err != nil {
			return err
		}
		options.Script = script
	}
	srv, err := standin.New(options)
	if err != nil && f.script != "" {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", f.script, err), "'unwire standin --print-script' prints a valid script")
	}
	if err != nil {
		return app.Fail(app.ExitInput, err, "")
	}
	listener, err := app.ListenLoopback("127.0.0.1:0")
	if err != nil {
		return errors.Join(err, srv.Shutdown(context.Background()))
	}
	go func() { _ = srv.Serve(listener) }() // it ends with Shutdown
	u.stop = func() { a.Shutdown(srv.Shutdown) }
	u.name = "the stand-in (plays a script, without a model)"
	o.Token = func(context.Context) (string, error) { return token, nil }
	if o.URL, err = url.Parse("https://" + listener.Addr().String()); err == nil {
		o.RootCAs, err = app.UpstreamRoots(srv.CAFile)
	}
	if err != nil {
		u.stop()
	}
	return err
}

// useServer sets in o the URL and CAs of the server to, and the source of its access token that
// --credentials selects.
func (f *flags) useServer(u *upstream, to *url.URL, policy outbound.Policy, o *agent.Options) error {
	if f.script != "" {
		return app.Usagef("--script is only for the stand-in: remove --to or --script")
	}
	roots, err := app.UpstreamRoots(f.UpstreamCA)
	if err != nil {
		return err
	}
	secrets, err := credential.Resolver{Getenv: os.Getenv, Profile: proto.Profile()}.Load(f.Credentials)
	if err != nil {
		return app.Fail(app.ExitCredentials, err, "name the token's source with --credentials; 'unwire credentials' lists the available sources")
	}
	_, _, hasToken := secrets.Token()
	if _, _, hasKey := secrets.Find(credential.EnvAPIKey); !hasToken && !hasKey {
		return app.Fail(app.ExitCredentials, fmt.Errorf("no token for %s", to.Host),
			"set "+credential.EnvToken+" or "+credential.EnvAPIKey+", or use --credentials; 'unwire credentials' lists the available sources")
	}
	o.URL, o.RootCAs, policy.Roots = to, roots, roots
	o.Token = credential.NewSource(secrets, o.Profile, tokenServer(o.Profile, to), policy).Token
	// The service says which of its hosts runs the agent; other servers do it themselves.
	o.Hosts = o.Profile.CoversHost(to.Hostname())
	u.name = to.Redacted()
	return nil
}

// tokenServer returns the server that exchanges API keys for access tokens: the backend of the profile's
// service for the service's own hosts, and otherwise the upstream itself.
func tokenServer(p *profile.Profile, to *url.URL) *url.URL {
	if p.CoversHost(to.Hostname()) {
		return p.Endpoints.Backend
	}
	return to
}
