package record

import (
	"context"
	"net/url"

	"unwire/cmd/internal/app"
	"unwire/mitm/browser"
)

// prepareBrowser makes the profile of capture --browser; args are further flags.
func prepareBrowser(ctx context.Context, rec *Recorder, f CaptureFlags, args []string) (*browser.Browser, error) {
	b, err := browser.Prepare(ctx, browser.Options{
		URL: f.browser, ProxyAddr: rec.Addr, CAFile: rec.CA.CertFile, SPKI: rec.CA.SPKI(), Args: args,
	})
	if err != nil {
		return nil, app.Fail(app.ExitInput, err, "")
	}
	return b, nil
}

// checkBrowserURL returns an error if s is not the URL of a web page. It is called before any file is
// created.
func checkBrowserURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return app.Usagef("--browser must be a URL such as https://host/page, not %q", s)
	}
	return nil
}
