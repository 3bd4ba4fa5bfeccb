package har

import (
	"encoding/base64"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// A conversion converts one entry of a HAR file to an exchange, or to two: a WebSocket handshake and the
// WebSocket that it opened.
type conversion struct {
	// e is the HAR entry to be converted.
	e *entry
	// place is the position of the entry in the HAR file, for error messages.
	place string

	// rep collects the problems to be reported to the user.
	rep *transfer.Report

	// exchangeDraft is the HTTP exchange under construction.
	exchangeDraft

	// bodies are the request and response bodies, indexed by captures.Direction.
	bodies [2][]byte
	// hasExtension means that unwire wrote the entry: it has a member _unwire of a version that this code
	// reads.
	hasExtension bool

	// webSocket is the WebSocket that the entry describes; nil if there is none.
	webSocket *exchangeDraft
	// onlyWebSocket means that the entry describes only a WebSocket, because the HAR file lacks its HTTP
	// handshake.
	onlyWebSocket bool
}

// problem adds a problem with a member of the HAR entry to the report.
func (c *conversion) problem(member, format string, args ...any) {
	c.rep.Problem(c.place+"."+member, format, args...)
}

// convert converts the HAR entry. It returns false if the entry is not an HTTP or WebSocket exchange.
func (c *conversion) convert() bool {
	e := c.e
	if e.Unwire != nil && e.Unwire.V != extensionVersion {
		c.problem("_unwire.v", "the version %d of the extension is unknown, so the extension is ignored", e.Unwire.V)
	} else if e.Unwire != nil {
		c.hasExtension = true
	}
	if c.hasExtension && e.Unwire.Transport == captures.WebSocket {
		c.onlyWebSocket, c.webSocket = true, c.exportedWebSocket("_unwire", e.Unwire)
		if c.webSocket.ex.URL == "" {
			c.problem("request.url", "skipped: the URL is missing")
			return false
		}
		return true
	}

	// The other members of an entry are those of its HTTP exchange.
	request, pseudo := c.headers(e.Request.Headers)
	response, _ := c.headers(e.Response.Headers)
	c.ex = captures.Exchange{
		Method: e.Request.Method, URL: e.Request.URL, HTTP: httpVersion(e.Request.HTTPVersion, e.Response.HTTPVersion),
		RequestHeaders: request, ResponseHeaders: response, Status: c.status(), Source: "import har",
	}
	if c.ex.Method == "" {
		c.ex.Method = pseudo[":method"]
	}
	if !c.resolveURL(pseudo) {
		return false
	}
	c.ex.Started = c.started()
	c.duration = max(0, fromMillis(e.Time))
	c.bodies[captures.Up], c.bodies[captures.Down] = c.requestBody(), c.responseBody()
	c.setOutcome()

	// The extension is more exact than the standard members, so it overrides them.
	switch {
	case !c.hasExtension:
		c.webSocket = c.chromeWebSocket()
	case e.Unwire.WebSocket != nil:
		c.applyExtension()
		c.webSocket = c.exportedWebSocket("_unwire.websocket", e.Unwire.WebSocket)
	default:
		c.applyExtension()
	}

	// Without chunks of its own, each body is one chunk.
	if c.chunks == nil {
		c.wholeBodies()
	}
	return true
}

// headers converts HAR headers, and also returns HTTP/2's pseudo-header fields, such as :path, by name. Chrome
// joins the values of repeated fields with newlines; headers splits them.
func (c *conversion) headers(hs []header) (captures.Headers, map[string]string) {
	var out captures.Headers
	pseudo := map[string]string{}
	for _, h := range hs {
		if h.NameB64 != nil || h.ValueB64 != nil {
			h.Name, h.Value = string(h.NameB64), string(h.ValueB64)
		}
		if strings.HasPrefix(h.Name, ":") {
			pseudo[h.Name] = h.Value
			// :protocol marks an extended CONNECT, so it is kept.
			if !c.hasExtension && h.Name != ":protocol" {
				continue
			}
		}
		switch {
		case c.hasExtension || !strings.Contains(h.Value, "\n"):
			out = append(out, captures.Header{Name: h.Name, Value: h.Value})
		default:
			for v := range strings.SplitSeq(h.Value, "\n") {
				out = append(out, captures.Header{Name: h.Name, Value: v})
			}
		}
	}
	return out, pseudo
}

// status returns the HTTP status of the HAR entry, or 0 if it is invalid.
func (c *conversion) status() int {
	s := int(c.e.Response.Status)
	if s < 0 || s > 999 {
		c.problem("response.status", "%d is out of range", s)
		return 0
	}
	return s
}

// resolveURL makes the exchange's URL absolute, using the header fields if the HAR entry has only a path, and
// sets the server's address. pseudo are the HTTP/2 pseudo-header fields. It returns false if the URL is not an
// HTTP URL.
func (c *conversion) resolveURL(pseudo map[string]string) bool {
	// Some tools write only the path. The rest is in the headers.
	if c.ex.URL == "" || strings.HasPrefix(c.ex.URL, "/") {
		host := pseudo[":authority"]
		if host == "" {
			host = c.ex.RequestHeaders.Get("host")
		}
		path := c.ex.URL
		if path == "" {
			path = pseudo[":path"]
		}
		if host == "" || path == "" {
			c.problem("request.url", "skipped: the URL is missing, and the header fields do not contain it")
			return false
		}
		scheme := pseudo[":scheme"]
		if scheme == "" {
			scheme = "https"
		}
		c.ex.URL = scheme + "://" + host + path
	}
	u, ok := parseURL(c.ex.URL)
	if !ok {
		c.problem("request.url", "skipped: the URL is malformed")
		return false
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		c.problem("request.url", "skipped: the scheme of the URL is %q, not http or https", transfer.Clip(u.Scheme))
		return false
	}

	// The address has no port; take the one of the URL.
	if ip := c.e.ServerIPAddress; ip != "" {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "ws": "80"}[u.Scheme]
		}
		if port == "" {
			port = "443"
		}
		c.ex.Server = net.JoinHostPort(strings.Trim(ip, "[]"), port)
	}
	return true
}

// parseURL parses a URL. If only the path or query is invalid, as some clients send them, it parses the part
// before that. It returns false if the URL is invalid altogether.
func parseURL(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err == nil {
		return u, true
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		rest = rest[:at]
	}
	if !ok || rest == "" {
		return nil, false
	}
	u, err = url.Parse(scheme + "://" + rest)
	return u, err == nil
}

// httpVersion converts the HTTP versions in a HAR entry, which tools spell differently, to "1.0", "1.1", "2" or
// "3"; "" if unknown. The response's version is preferred, because browsers do not always know which one they
// sent.
func httpVersion(request, response string) string {
	for _, s := range []string{response, request} {
		s = strings.ToLower(strings.TrimSpace(s))
		for _, prefix := range []string{"http/", "h"} {
			if v, ok := strings.CutPrefix(s, prefix); ok {
				v = strings.TrimSuffix(v, ".0")
				switch v {
				case "1", "1.0":
					return "1.0"
				case "1.1", "2", "3":
					return v
				}
			}
		}
		if s == "quic" || strings.HasPrefix(s, "h3-") {
			return "3"
		}
	}
	return ""
}

// started returns the start time of the HAR entry, which tools write in different formats.
func (c *conversion) started() time.Time {
	s := c.e.StartedDateTime
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1970 && t.Year() < 2262 {
			return t
		}
	}
	c.problem("startedDateTime", "%q is not a date; the year 1970 is used instead", transfer.Clip(s))
	// 0 would mean that the time is unknown.
	return time.Unix(1, 0).UTC()
}

// fromMillis converts milliseconds to a duration between 0 and a year.
func fromMillis(n number) time.Duration {
	const day = 24 * 60 * 60 * 1000
	return time.Duration(float64(min(max(n, 0), 365*day)) * 1e6)
}

// requestBody returns the body of the HAR entry's request. If the entry contains only form parameters, it
// encodes them as a form.
func (c *conversion) requestBody() []byte {
	p := c.e.Request.PostData
	switch {
	case p == nil:
		return nil
	case p.Text == "" && len(p.Params) > 0:
		form := make([]string, len(p.Params))
		for i, f := range p.Params {
			form[i] = url.QueryEscape(f.Name) + "=" + url.QueryEscape(f.Value)
		}
		return []byte(strings.Join(form, "&"))
	}

	// Our own member has priority over that of other tools.
	encoding := p.UnwireEncoding
	if encoding == "" {
		encoding = p.Encoding
	}
	return c.body("request.postData", p.Text, encoding)
}

// responseBody returns the body of the HAR entry's response. Other tools store it decompressed, so for these it
// also removes the header fields about the encoding.
func (c *conversion) responseBody() []byte {
	body := c.body("response.content", c.e.Response.Content.Text, c.e.Response.Content.Encoding)
	if c.hasExtension {
		return body
	}
	if size := c.e.Response.Content.Size; body == nil && size > 0 {
		c.problem("response.content.text", "missing: %.0f bytes are not in the file", float64(size))
	}
	encoding := c.ex.ResponseHeaders.Get("content-encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return body
	}
	var kept captures.Headers
	for _, h := range c.ex.ResponseHeaders {
		if !strings.EqualFold(h.Name, "content-encoding") && !strings.EqualFold(h.Name, "content-length") {
			kept = append(kept, h)
		}
	}
	c.ex.ResponseHeaders = kept
	return body
}

// body decodes the text of a body: base64 if encoding says so, otherwise plain. member is its name for problem
// reports.
func (c *conversion) body(member, text, encoding string) []byte {
	switch {
	case text == "":
		return nil
	case encoding == "":
		return []byte(text)
	case !strings.EqualFold(encoding, "base64"):
		c.problem(member+".encoding", "the encoding %q is unknown, so the text is stored undecoded", transfer.Clip(encoding))
		return []byte(text)
	}
	b, err := decodeBase64(text)
	if err != nil {
		c.problem(member+".text", "%v; only the data before it is stored", err)
	}
	return b
}

// decodeBase64 decodes base64 in the standard or the URL-safe alphabet, with or without padding and line
// breaks.
func decodeBase64(s string) ([]byte, error) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', ' ', '\t', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	return base64.RawStdEncoding.DecodeString(s)
}

// setOutcome sets the outcome of the exchange from the HAR entry's standard members: Complete if there is a
// response, otherwise Failed or Incomplete.
func (c *conversion) setOutcome() {
	c.outcome = captures.Complete
	if c.ex.Status != 0 {
		return
	}
	c.outcome = captures.Incomplete
	if e := c.e.Response.Error; e != "" {
		c.outcome, c.ex.Error = captures.Failed, transfer.Clip(e)
	}
}

// sendTime returns the time from the start until the request was sent, according to the HAR entry's timings.
func (c *conversion) sendTime() time.Duration {
	t := c.e.Timings
	return fromMillis(t.Blocked) + fromMillis(t.DNS) + fromMillis(t.Connect) + fromMillis(t.Send)
}

// wholeBodies makes each body one chunk, for entries without recorded chunks. The chunk's time is that at which
// the request was sent or the response ended.
func (c *conversion) wholeBodies() {
	sent := c.sendTime()

	// Timings of some tools exceed the duration.
	if sent > c.duration {
		sent = 0
	}
	for dir, at := range []time.Duration{captures.Up: sent, captures.Down: c.duration} {
		if len(c.bodies[dir]) > 0 {
			c.chunks = append(c.chunks, captures.Chunk{Dir: captures.Direction(dir), T: at, Data: c.bodies[dir]})
		}
	}
}

// applyExtensionHead copies the members of x, the HAR extension that Export writes, to an exchange, except the
// bodies. member is the extension's name for problem reports.
func (c *conversion) applyExtensionHead(member string, x *extension, to *exchangeDraft) {
	ex := &to.ex
	ex.HTTP, ex.Error, ex.Client, ex.Server, ex.TLS, ex.Source = x.HTTP, x.Error, x.Client, x.Server, x.TLS, x.Source

	// The file is not trusted: check values that a capture limits.
	if ex.Process = x.Process; x.Process.PID < 0 || x.Process.PID > math.MaxInt32 {
		c.problem(member+".process.pid", "%d is out of range", x.Process.PID)
		ex.Process.PID = 0
	}
	if !x.Started.IsZero() && x.Started.Year() >= 1970 && x.Started.Year() < 2262 {
		ex.Started = x.Started
	}
	to.duration = time.Duration(max(x.DurationNS, 0))
	if isKnownOutcome(x.Outcome) {
		to.outcome = x.Outcome
	} else {
		c.problem(member+".outcome", "%q is not a known outcome", transfer.Clip(string(x.Outcome)))
	}

	// Relations refer to exchanges by their numbers in the file.
	ex.RequestTrailers, _ = c.headers(x.RequestTrailers)
	ex.ResponseTrailers, _ = c.headers(x.ResponseTrailers)
	to.number = x.ID
	for i, r := range x.Relations {
		if err := r.Check(); err != nil {
			c.problem(fmt.Sprintf("%s.relations[%d]", member, i), "%v", err)
		} else {
			to.relations = append(to.relations, r)
		}
	}
}

// applyExtension overrides the values from standard HAR members with the exact ones in the member _unwire:
// times, bodies as sent, and chunks.
func (c *conversion) applyExtension() {
	x := c.e.Unwire
	c.applyExtensionHead("_unwire", x, &c.exchangeDraft)
	if x.URL != "" {
		c.ex.URL = x.URL
	}
	if x.Up != nil {
		c.bodies[captures.Up] = x.Up
	}
	if x.Down != nil {
		c.bodies[captures.Down] = x.Down
	}
	if x.Omitted {
		c.problem("_unwire.omitted", "the file does not contain the bodies, because they were too large")
		return
	}
	if chunks, err := c.cutChunks(x.Chunks); err != nil {
		c.problem("_unwire.chunks", "%v; each body is stored as one chunk", err)
	} else {
		c.chunks = chunks
	}
}

// cutChunks splits the bodies into chunks. marks describes the chunks in order of arrival; all of them must
// cover the bodies exactly.
func (c *conversion) cutChunks(marks []chunkMark) ([]captures.Chunk, error) {
	rest := c.bodies
	chunks := make([]captures.Chunk, 0, len(marks))
	for i, m := range marks {
		dir := captures.Up
		if m.Dir == captures.Down.String() {
			dir = captures.Down
		} else if m.Dir != captures.Up.String() {
			return nil, fmt.Errorf("chunk %d: the member dir must be up or down", i)
		}
		if m.Len < 0 || m.Len > len(rest[dir]) || m.TNS < 0 {
			return nil, fmt.Errorf("chunk %d claims to have %d bytes, but only %d bytes of the body are left", i, m.Len, len(rest[dir]))
		}
		chunks = append(chunks, captures.Chunk{Dir: dir, T: time.Duration(m.TNS), Data: rest[dir][:m.Len]})
		rest[dir] = rest[dir][m.Len:]
	}

	// Every byte must belong to a chunk.
	for dir, b := range rest {
		if len(b) > 0 {
			return nil, fmt.Errorf("%d bytes of the body (%s) belong to no chunk", len(b), captures.Direction(dir))
		}
	}
	return chunks, nil
}
