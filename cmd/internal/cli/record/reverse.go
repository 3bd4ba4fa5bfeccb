package record

import (
	"net/url"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
)

// reverseURL parses the origin of the server to forward to.
func reverseURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, app.Usagef("%s must be a URL such as https://host, not %q", flag, s)
	}
	return u, nil
}

// A reverseListener is an additional reverse proxy that --also asked for: its address, and the origin
// that it forwards to.
type reverseListener struct {
	origin *url.URL
	addr   string
}

// startReverse opens a reverse listener for each further origin.
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
