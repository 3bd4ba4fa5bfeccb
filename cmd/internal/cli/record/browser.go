package record

import (
	"context"
	"net/url"

	"unwire/cmd/internal/app"
	"unwire/mitm/browser"
)

// prepareBrowser prepares a browser for 'capture --browser': a temporary profile that uses the proxy and
// trusts its CA. args are further command-line flags for the browser.
func prepareBrowser(ctx context.Context, rec *Recorder, f CaptureFlags, args []string) (*browser.Browser, error) {
	b, err := browser.Prepare(ctx, browser.Options{
		URL: f.browser, ProxyAddr: rec.Addr, CAFile: rec.CA.CertFile, SPKI: rec.CA.SPKI(), Args: args,
	})
	if err != nil {
		return nil, app.Fail(app.ExitInput, err, "")
	}
	return b, nil
}

// checkBrowserURL returns a usage error if s, the value of --browser, is not an http or https URL.
func checkBrowserURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return app.Usagef("--browser must be a URL such as https://host/page, not %q", s)
	}
	return nil
}
