package record

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/mitm"
	"unwire/mitm/clientcert"
	"unwire/mitm/upstream"
)

// upstreamFlags are those of how servers are reached.
func (f *CaptureFlags) upstreamFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.UpstreamProxy, "upstream-proxy", "", "send all through this proxy, whatever the environment says: http://, https://, socks5:// or socks5h://[USER:PASSWORD@]HOST:PORT; none: directly")
	flags.StringArrayVar(&f.clientCerts, "client-cert", nil, "show this certificate, [HOST=]PEM, to servers that ask for one")
	flags.StringArrayVar(&f.clientKeys, "client-key", nil, "key of the --client-cert with the same HOST, [HOST=]PEM, a file of mode 0600")
}

// reachServers sets how the proxy that listens at own reaches servers.
func (f *CaptureFlags) reachServers(a *app.App, o *mitm.Options, own string) error {
	var err error
	if o.ClientCertificates, err = clientcert.Load(f.clientCerts, f.clientKeys); err != nil {
		return app.Fail(app.ExitInput, err, "")
	}
	switch f.UpstreamProxy {
	case "none":
		return nil
	case "":
		var ignored []string
		if o.UpstreamProxies, ignored, err = upstream.FromEnvironment(os.Getenv, own); err != nil {
			return app.Fail(app.ExitUsage, err, "correct that variable; --upstream-proxy URL, or none, has it ignored")
		}
		if len(ignored) > 0 {
			a.Say("unwire: warning: %s names this proxy itself, and is ignored: servers are reached directly", strings.Join(ignored, ", "))
		}
		return nil
	}
	proxy, err := upstream.Parse(f.UpstreamProxy)
	if err != nil {
		return app.Usagef("--upstream-proxy: %v", err)
	}
	if upstream.Names(proxy, own) {
		return app.Usagef("--upstream-proxy names this proxy itself: give another one, or none")
	}
	o.UpstreamProxies = upstream.Always(proxy)
	return nil
}
