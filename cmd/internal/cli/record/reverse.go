package record

import (
	"net/url"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
)

// reverseURL parses the URL of a server to which requests are forwarded; flag is the flag that has it.
func reverseURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, app.Usagef("%s must be a URL such as https://host, not %q", flag, s)
	}
	return u, nil
}

// A reverseListener is an additional reverse proxy that --also asks for.
type reverseListener struct {
	// origin is the URL of the server to which it forwards.
	origin *url.URL
	// addr is the HOST:PORT at which it listens.
	addr string
}

// startReverse starts a reverse proxy on a free port for each server in --also.
func startReverse(a *app.App, rec *Recorder, f CaptureFlags) error {
	for _, s := range f.also {
		origin, err := reverseURL("--also", s)
		if err != nil {
			return err
		}
		ln, err := app.ListenLoopback("127.0.0.1:0")
		if err != nil {
			return err
		}
		rec.reverse = append(rec.reverse, reverseListener{origin, ln.Addr().String()})
		// its end is that of the proxy
		go func() { _ = rec.proxy.ServeReverse(ln, origin) }()
	}
	return nil
}

// sayReverse prints the addresses of the additional reverse proxies.
func sayReverse(a *app.App, rec *Recorder, json bool) error {
	for _, l := range rec.reverse {
		if !json {
			a.Say("http://%s forwards to %s", l.addr, l.origin)
			continue
		}
		if err := a.Print(&contract.Also{Event: "also", URL: "http://" + l.addr, Origin: l.origin.String()}); err != nil {
			return err
		}
	}
	return nil
}
