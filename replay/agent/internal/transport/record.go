package transport

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"unwire/captures"
)

// begin starts to record a request that is about to be sent; it returns nil if nothing is recorded.
// version is the HTTP version, "1.1" or "2".
func (d *Dialer) begin(req *http.Request, version string) (captures.Recording, error) {
	if d.Recorder == nil {
		return nil, nil
	}
	record, err := d.Recorder.Begin(captures.Exchange{
		Method: req.Method, URL: req.URL.String(), HTTP: version, RequestHeaders: headers(req.Header), Started: time.Now(), Source: "serve",
	})
	if err != nil {
		return nil, fmt.Errorf("the call cannot be recorded: %w", err)
	}
	return record, nil
}

// headers converts HTTP headers to a list sorted by name, with names in lower case.
func headers(h http.Header) captures.Headers {
	var out captures.Headers
	for name, values := range h {
		for _, v := range values {
			out = append(out, captures.Header{Name: strings.ToLower(name), Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b captures.Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// recordResponse records status, headers and connection of a response; server is the address that
// answered. record may be nil.
func recordResponse(record captures.Recording, resp *http.Response, server string) {
	if record == nil {
		return
	}
	var about captures.TLS
	if t := resp.TLS; t != nil {
		about = captures.TLS{ServerName: t.ServerName, ALPN: t.NegotiatedProtocol}
	}
	record.Connection(about, server)
	record.Response(resp.StatusCode, headers(resp.Header))
}

// recordTrailers records the trailers of a response, if there are any. record may be nil.
func recordTrailers(record captures.Recording, h http.Header) {
	if record != nil && len(h) > 0 {
		record.Trailers(captures.Down, headers(h))
	}
}

// endRecord ends a recording; err is the reason, or nil. record may be nil.
func endRecord(record captures.Recording, outcome captures.Outcome, err error) {
	if record == nil {
		return
	}
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	record.End(outcome, reason)
}

// idOf returns the number of the recorded exchange; 0 if record is nil.
func idOf(record captures.Recording) int64 {
	if record == nil {
		return 0
	}
	return record.ID()
}
