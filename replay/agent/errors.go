package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/transport"
	"unwire/replay/agent/turn"
	"unwire/replay/outbound"
)

// A cause is the class and code under which unwire reports an error of the agent server.
type cause struct {
	// kind is the class of the error, which determines the HTTP status.
	kind turn.Kind

	// code is the short name of the cause for programs, such as "outdated_client"; "" for none.
	code string
	// advice is appended to the server's error message and suggests what to do; "" for none.
	advice string
}

// Advice for the user; see cause.advice.
const (
	adviceToken   = "The upstream did not accept the token; sign in again, or refer to another one."
	adviceVersion = "The upstream requires a newer client; give its version with --client-version."
)

// byCode are the causes by the Connect code of the server's error.
//
// Source: RESEARCH.md#errors
var byCode = map[string]cause{
	"canceled":            {turn.Upstream, "upstream_canceled", ""},
	"unknown":             {turn.Upstream, "upstream_unknown", ""},
	"invalid_argument":    {turn.Invalid, "upstream_invalid_argument", ""},
	"deadline_exceeded":   {turn.Timeout, "upstream_timeout", ""},
	"not_found":           {turn.NotFound, "upstream_not_found", ""},
	"already_exists":      {turn.Upstream, "conversation_busy", ""},
	"permission_denied":   {turn.Forbidden, "upstream_permission_denied", ""},
	"resource_exhausted":  {turn.RateLimited, "upstream_resource_exhausted", ""},
	"failed_precondition": {turn.Upstream, "upstream_failed_precondition", ""},
	"aborted":             {turn.Upstream, "upstream_aborted", ""},
	"out_of_range":        {turn.Invalid, "upstream_out_of_range", ""},
	"unimplemented":       {turn.Upstream, "upstream_unimplemented", ""},
	"internal":            {turn.Upstream, "upstream_internal", ""},
	"unavailable":         {turn.Overloaded, "upstream_unavailable", ""},
	"data_loss":           {turn.Upstream, "upstream_data_loss", ""},
	"unauthenticated":     {turn.Unauthorized, "upstream_unauthenticated", adviceToken},
}

// byDetail are the causes by the number (aiserver.v1.ErrorDetails.Error) in the details of the server's
// error. They take precedence over byCode.
//
// Source: RESEARCH.md#errors
var byDetail = map[int32]cause{
	1:  {turn.Unauthorized, "bad_api_key", adviceToken},
	2:  {turn.Unauthorized, "not_logged_in", adviceToken},
	5:  {turn.NotFound, "model_not_found", "The model is not one that the upstream offers."},
	11: {turn.Unauthorized, "auth_token_not_found", adviceToken},
	12: {turn.Unauthorized, "auth_token_expired", adviceToken},
	21: {turn.Upstream, "user_aborted_request", ""},
	25: {turn.Timeout, "upstream_timeout", ""},
	28: {turn.RateLimited, "rate_limited", ""},
	30: {turn.Forbidden, "outdated_client", adviceVersion},
	36: {turn.Invalid, "bad_request", ""},
	38: {turn.Unauthorized, "unauthorized", adviceToken},
	39: {turn.NotFound, "upstream_not_found", ""},
	40: {turn.Upstream, "deprecated", "The upstream has replaced this method."},
	41: {turn.RateLimited, "upstream_resource_exhausted", ""},
	43: {turn.ContextTooLong, "conversation_too_long", ""},
	50: {turn.RateLimited, "rate_limited", ""},
}

// byTitle are the causes by the title in the details of the server's error, in lower case. They take
// precedence over byCode and byDetail, because the error for an outdated client has the number of
// another error.
var byTitle = map[string]cause{
	"update required": {turn.Forbidden, "outdated_client", adviceVersion},
}

// failure converts any error of a stream or call to a *turn.Error, whose text contains no token.
func (c *Client) failure(err error) *turn.Error {
	e := *c.translate(err)
	e.Message = c.tokens.hide(e.Message)
	return &e
}

// translate is failure without the removal of tokens.
func (c *Client) translate(err error) *turn.Error {
	var known *turn.Error
	var status *transport.StatusError
	var end *transport.EndError
	var unreachable *transport.UnreachableError

	// The server's own errors first, then local ones, then those of the connection.
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &end):
		return c.said(end.Err, end.RetryAfter)
	case errors.As(err, &status) && !errors.Is(err, transport.ErrRefused):
		if status.Err != nil {
			return c.said(status.Err, status.RetryAfter)
		}
		e := c.said(&envelope.Error{Code: envelope.CodeOfStatus(status.Status)}, status.RetryAfter)
		e.Message = fmt.Sprintf("the upstream answered with HTTP status %d", status.Status)
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &turn.Error{Kind: turn.Timeout, Code: "canceled", Message: "the request was cancelled before the upstream answered", Err: err}
	case errors.Is(err, outbound.ErrRefused):
		return &turn.Error{Kind: turn.Internal, Code: "upstream_not_allowed", Message: err.Error()}
	case errors.As(err, &unreachable):
		return &turn.Error{Kind: turn.Upstream, Code: "upstream_unreachable", Message: "the upstream cannot be reached: " + unreachable.Text}
	case errors.Is(err, transport.ErrRefused):
		return &turn.Error{Kind: turn.Upstream, Code: "no_http2", Message: "the upstream does not accept streams over HTTP/2: use --transport auto or sse"}
	case errors.Is(err, transport.ErrNoEnd):
		return &turn.Error{Kind: turn.Upstream, Code: "no_end_of_stream", Message: "the upstream's stream ended too early: " + err.Error(), Err: transport.ErrNoEnd}
	case errors.Is(err, transport.ErrClosed), errors.Is(err, errStopped):
		return errClosed()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &turn.Error{Kind: turn.Upstream, Code: "connection_lost", Message: "the connection to the upstream was lost", Err: io.ErrUnexpectedEOF}
	}
	return &turn.Error{Kind: turn.Upstream, Code: "upstream_failed", Message: "the upstream failed: " + err.Error()}
}

// errClosed returns the error of a stream that was closed locally.
func errClosed() *turn.Error {
	return &turn.Error{Kind: turn.Upstream, Code: "stream_closed", Message: "the stream was closed", Err: transport.ErrClosed}
}

// said converts an error that the server returned to a *turn.Error. retryAfter is the value of the
// header of that name.
func (c *Client) said(from *envelope.Error, retryAfter string) *turn.Error {
	found, ok := byCode[from.Code]
	if !ok {
		found = cause{turn.Upstream, "upstream_error", ""}
	}
	text := from.Message
	if title, detail, number := c.details(from); title != "" || detail != "" || number != 0 {
		if known, ok := byDetail[number]; ok {
			found = known
		}
		if known, ok := byTitle[strings.ToLower(title)]; ok {
			found = known
		}
		if said := join(title, detail); said != "" {
			text = said
		}
	}
	text = "the upstream answered: " + text + " (" + from.Code + ")"
	if found.advice != "" {
		text += ". " + found.advice
	}
	return &turn.Error{Kind: found.kind, Code: found.code, Message: text, RetryAfter: after(retryAfter)}
}

// join returns "title: detail", or the one that is not empty.
func join(title, detail string) string {
	if title != "" && detail != "" {
		return title + ": " + detail
	}
	return title + detail
}

// details returns title, detail text and number from the service's own detail message
// (aiserver.v1.ErrorDetails) in an error; zero values if it has none.
func (c *Client) details(from *envelope.Error) (title, detail string, number int32) {
	const name = "aiserver.v1.ErrorDetails"
	for i := range from.Details {
		if d := &from.Details[i]; d.Type == name {
			m := c.definitions.New(name)
			if m.Parse(d.Value) == nil {
				return readDetails(m)
			}
		}
	}
	return "", "", 0
}

// readDetails returns title, detail text and number from an aiserver.v1.ErrorDetails message.
func readDetails(m message.Message) (title, detail string, number int32) {
	return m.Text("details", "title"), m.Text("details", "detail"), int32(m.Value("error").Enum())
}

// after parses a Retry-After header that is a number of seconds; it returns 0 for anything else.
func after(field string) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(field), 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second //nolint:gosec
}
