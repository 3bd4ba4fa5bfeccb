// Package reflectioncmd has the command reflection, which offers gRPC server reflection for a server that has none.
// The work is done by replay/reflection/proxy.
package reflectioncmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/mitm/ca"
	"unwire/replay/listen"
	"unwire/replay/reflection/proxy"
)

// Commands returns the command reflection.
func Commands(a *app.App) []*cobra.Command { return []*cobra.Command{command(a)} }

// flags are the values of the flags of 'unwire reflection'.
type flags struct {
	// Target has the flags about the server.
	app.Target

	// proto names the definitions; "" for the default.
	proto string

	// listen is the address at which the proxy listens.
	listen string

	// json prints events as JSON Lines.
	json bool

	// quiet prints no line for each request.
	quiet bool
}

const long = `reflection is a proxy for a server that does not offer gRPC server
reflection. The proxy answers reflection requests with your .proto definitions, and
forwards all other requests unchanged to the server. Tools that use server reflection,
such as grpcurl, grpcui and buf curl, can then call the methods of the server through
the proxy.

The proxy supports the versions v1 and v1alpha of server reflection, over gRPC, gRPC-Web
and Connect. Clients can connect to the same port with or without TLS. unwire's local
CA, which 'unwire ca' prints, signs the proxy's certificate. If a request arrives over
HTTP/2, the proxy forwards it over HTTP/2.

The proxy records no traffic, and adds no credentials to requests. The proxy forwards
requests only to a server on this machine. To forward requests to another host, give
--live and --allow-host.`

// command returns the command 'unwire reflection'.
func command(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "reflection",
		Short: "Offer gRPC server reflection for a server that does not offer it",
		Long:  long,
		Example: `  # Offer reflection for a local server, at port 8081
  unwire reflection --proto proto/ --to http://127.0.0.1:8080 --listen 8081
  # List the services of this server
  grpcurl -plaintext 127.0.0.1:8081 list
  # Use the definitions in a capture, for a server with a private CA
  unwire reflection --proto F.uwc --to https://127.0.0.1:9440 --upstream-ca ca.pem`,
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, &f) },
	}
	set := cmd.Flags()
	set.StringVar(&f.proto, "proto", "", ".proto definitions that the proxy returns to clients (default: UNWIRE_PROTO, else unwire.yaml)")
	set.StringVar(&f.To, "to", "", "URL of the server to which the proxy forwards requests; if the URL has a path, the proxy puts this path before the path of the method")
	set.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address at which the proxy listens, such as 127.0.0.1:8080, or only its port, such as 8080")
	set.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
	set.BoolVar(&f.Insecure, "upstream-insecure", false, "do not verify the server's certificate")
	set.BoolVar(&f.Live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	set.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "do not print a line for each request")
	set.BoolVar(&f.json, "json", false, "print one JSON object for each event on stdout; the events are listening and answered")
	return cmd
}

// run executes 'unwire reflection' until the user interrupts it.
func run(ctx context.Context, a *app.App, f *flags) error {
	to, policy, err := f.Server()
	if err != nil {
		return err
	}
	if to == nil {
		return app.Usagef("--to URL is required: the server to which requests are forwarded")
	}
	if policy.Roots, err = app.UpstreamRoots(f.UpstreamCA); err != nil {
		return err
	}
	definitions, err := a.FindDefinitions(ctx, f.proto, nil)
	if err != nil {
		return err
	}
	if definitions == nil {
		return app.Usagef("--proto DEFINITIONS is required: the definitions that reflection returns")
	}
	p, err := proxy.New(proxy.Options{Schema: definitions, To: to, Reach: policy, Answered: func(r proxy.Answer) { f.say(a, r) }})
	if errors.Is(err, proxy.ErrNoService) {
		return app.Fail(app.ExitInput, err, "--proto must name definitions with the services of the server; 'unwire schema ls --proto DIR' lists services")
	}
	if err != nil {
		return app.Refusal(err)
	}
	dir, err := app.ConfigDir()
	if err != nil {
		return err
	}
	authority, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		return err
	}
	ln, err := app.ListenLoopback(f.listen)
	if err != nil {
		return err
	}
	server := listen.New(listen.Options{Handler: p, Leaf: authority.Leaf})
	defer a.Shutdown(server.Shutdown)
	return app.ServeUntil(ctx, func() error { return server.Serve(ln) }, func() error {
		addr := ln.Addr().String()
		if f.json {
			return a.Print(&contract.Listening{Event: "listening", URL: "http://" + addr, CA: authority.CertFile})
		}
		fmt.Fprintf(a.Out, "http://%s\n", addr)
		a.Say("reflection lists %s; other requests go to %s. It also serves https://%s (CA %s). Stop with Ctrl-C", app.Counted(len(p.Services()), "service"), term.Clean(to.Redacted()), addr, authority.CertFile)
		return nil
	})
}

// say prints one line for a request that was answered.
func (f *flags) say(a *app.App, r proxy.Answer) {
	e := contract.ReflectionAnswer{Event: "answered", Path: r.Path, By: "server"}
	switch {
	case r.Err != nil:
		e.By, e.Reason = "unwire", r.Err.Error()
	case r.Reflection:
		e.By = "definitions"
	}
	switch {
	case f.json:
		_ = a.Print(&e) // stdout may be gone: the answers go on
	case f.quiet:
	case r.Err != nil:
		a.Say("%s: the client got an error from unwire: %s", term.Clean(r.Path), term.Clean(e.Reason))
	case r.Reflection:
		a.Say("%s: answered from the definitions", term.Clean(r.Path))
	default:
		a.Say("%s: forwarded", term.Clean(r.Path))
	}
}
