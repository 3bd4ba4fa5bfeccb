package credential

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

	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// maxTokenAnswer limits how many bytes of the response to a token exchange are read.
const maxTokenAnswer = 1 << 20

// exchangeTimeout is the default timeout of a token exchange.
const exchangeTimeout = 60 * time.Second

// Refresh sends the API key to the server, which returns a token, and stores the token in c. One
// request is sent, to the host of base, which must be allowed by p; pr describes the request. timeout
// limits the whole exchange; 0 means 60 seconds.
//
// Errors: ErrCredentials if there is no key, or the server returns no token; outbound.ErrRefused.
func (c *Credentials) Refresh(ctx context.Context, pr *profile.Profile, base *url.URL, p outbound.Policy, timeout time.Duration) error {
	if err := outbound.CheckTarget(base, p.Live, p.AllowHosts); err != nil {
		return err
	}
	key, _, ok := c.ForHost(base.Hostname()).Find(EnvAPIKey)
	if !ok {
		return fmt.Errorf("replay: %w: an API key for %s is missing: set %s", ErrCredentials, base.Host, EnvAPIKey)
	}
	if timeout <= 0 {
		timeout = exchangeTimeout
	}
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()

	// The path of the exchange is below that of base.
	u := *base
	u.Path, u.RawQuery, u.User, u.Fragment = strings.TrimSuffix(base.Path, "/")+pr.Exchange.Path, "", nil, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader("{}"))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	if err := p.Pace.Admit(ctx, u.Hostname()); err != nil {
		return fmt.Errorf("replay: the API key could not be exchanged for a token: %w", err)
	}

	// The journal must not contain secrets, even if the server echoes one.
	token, err := journaled(p.Pace, req, func(answer *outbound.Entry) (string, error) {
		return exchange(req, pr, p, timeout, answer)
	}, func(text string) string {
		return redact.New(redact.Options{Profile: pr}).String(strings.ReplaceAll(text, key, "[redacted]"))
	})
	if err != nil {
		return err
	}
	if c.held == nil {
		c.held = map[string]held{}
	}
	c.held[EnvToken] = held{token, "exchange at " + base.Host}
	return nil
}

// journaled sends a request by calling send, and writes the request and its outcome to the journal.
// send fills in the journal entry of the response and returns the token; clean removes secrets from
// error messages.
func journaled(pace *outbound.Pace, req *http.Request, send func(answer *outbound.Entry) (string, error), clean func(string) string) (string, error) {
	host := req.URL.Hostname()
	asked := outbound.Entry{Event: "request", Host: host, Method: req.Method, URL: req.URL.String(), Effects: "unknown"}
	n, err := pace.Note(asked, []byte("{}"))
	if err != nil {
		return "", err
	}
	answer := outbound.Entry{N: n, Event: "answer", Host: host, Origin: "local"}
	token, err := send(&answer)
	if answer.Message == "" && err != nil {
		answer.Message = clean(err.Error())
	}
	_, noted := pace.Note(answer)
	return token, errors.Join(err, noted)
}

// exchange sends the request for an access token, and fills in the journal entry answer from the
// response.
func exchange(req *http.Request, pr *profile.Profile, p outbound.Policy, timeout time.Duration, answer *outbound.Entry) (token string, err error) {
	local := outbound.IsLoopback(strings.ToLower(req.URL.Hostname()))
	tr := outbound.New(req.URL.Scheme, "1.1", local, false, p)
	tr.DisableKeepAlives = true
	defer tr.CloseIdleConnections()
	var at outbound.Progress
	resp, err := tr.RoundTrip(req.WithContext(at.Trace(req.Context(), nil)))
	if err != nil {
		return "", fmt.Errorf("replay: the API key could not be exchanged for a token: %w", at.Failure(err, timeout))
	}
	defer resp.Body.Close()
	retryAfter := resp.Header.Get("retry-after")
	answer.Origin, answer.Status, answer.Until = "server", resp.StatusCode, outbound.RetryAfter(retryAfter, time.Now())
	answer.Code = envelope.CodeOfStatus(resp.StatusCode)
	p.Pace.Observe(req.URL.Hostname(), resp.StatusCode, answer.Code, retryAfter)
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		return "", fmt.Errorf("replay: the API key could not be exchanged for a token: %w", err)
	}
	if token = tokenIn(data, pr.Exchange.Member); resp.StatusCode != http.StatusOK || token == "" {
		return "", fmt.Errorf("replay: %w: %s%s answered with status %d and without a token", ErrCredentials, req.URL.Host, pr.Exchange.Path, resp.StatusCode)
	}
	return token, nil
}

// tokenIn returns the string in a member of the JSON object data; "" if there is none.
func tokenIn(data []byte, member string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return ""
	}
	token, err := stringMember(members, member)
	if err != nil {
		return ""
	}
	return token
}
