package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"unwire/captures/redact"
	"unwire/decode/envelope"
	"unwire/replay/profile"
)

// maxTokenAnswer bounds the answer to an exchange.
const maxTokenAnswer = 1 << 20

// Refresh exchanges the API key for a token, which c has from then on, in
// memory alone. One request is sent, to the host of base, which has to pass
// CheckTarget.
//
// Errors: ErrCredentials where there is no key, or the server gives no token;
// ErrRefused.
func (c *Credentials) Refresh(ctx context.Context, pr *profile.Profile, base *url.URL, o Options) (err error) {
	if err := CheckTarget(base, o.Live, o.AllowHosts); err != nil {
		return err
	}
	here := c.forHost(base.Hostname())
	key, _, ok := here.find(EnvAPIKey)
	if !ok {
		return fmt.Errorf("replay: %w: no API key to exchange at %s: set %s", ErrCredentials, base.Host, EnvAPIKey)
	}
	o.defaults()
	ctx, stop := context.WithTimeout(ctx, o.Timeout)
	defer stop()
	u := *base
	u.Path, u.RawQuery, u.User, u.Fragment = strings.TrimSuffix(base.Path, "/")+pr.Exchange, "", nil, ""
	p := &Plan{HTTP: "1.1", o: o, url: &u}
	tr := p.transport()
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader("{}"))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	if err := o.Pace.admit(ctx, u.Hostname()); err != nil {
		return fmt.Errorf("replay: the exchange of the API key: %w", err)
	}
	asked := Entry{Event: "request", Host: u.Hostname(), Method: req.Method, URL: u.String(), Effects: EffectsUnknown}
	asked.body([]byte("{}"))
	n, err := o.Pace.note(asked)
	if err != nil {
		return err
	}
	answer := Entry{N: n, Event: "answer", Host: u.Hostname(), Origin: FromUs}
	defer func() {
		if answer.Message == "" && err != nil {
			answer.Message = redact.Default().String(strings.ReplaceAll(err.Error(), key, "[redacted]"))
		}
		_, noted := o.Pace.note(answer)
		err = errors.Join(err, noted)
	}()
	var at Progress
	resp, err := tr.RoundTrip(req.WithContext(traced(ctx, new(string), &at)))
	if err != nil {
		return fmt.Errorf("replay: the exchange of the API key: %w", at.explain(err, o.Timeout))
	}
	defer resp.Body.Close()
	answer.Origin, answer.Status, answer.Until = FromServer, resp.StatusCode, RetryAfter(resp.Header.Get("retry-after"), time.Now())
	answer.Code = envelope.CodeOfStatus(resp.StatusCode)
	o.Pace.enough(u.Hostname(), resp.StatusCode, answer.Code, fields(resp.Header))
	var tokens struct {
		AccessToken string `json:"accessToken"`
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		return fmt.Errorf("replay: the exchange of the API key: %w", err)
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(data, &tokens) != nil || tokens.AccessToken == "" {
		return fmt.Errorf("replay: %w: %s%s answered %d and gave no token", ErrCredentials, base.Host, pr.Exchange, resp.StatusCode)
	}
	if c.held == nil {
		c.held = map[string]held{}
	}
	c.held[EnvToken] = held{tokens.AccessToken, "exchange at " + base.Host}
	return nil
}

// Stale reports whether the token is there and of no more use.
func (c *Credentials) Stale(now time.Time) bool {
	t, _, ok := c.Token()
	return ok && t.stale(now)
}
