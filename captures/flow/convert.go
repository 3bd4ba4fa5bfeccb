package flow

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// A conversion converts one flow of a mitmproxy file to an exchange, or to two: a WebSocket handshake and the
// WebSocket that it opened.
type conversion struct {
	// place is the position of the flow in the file, for error messages.
	place string

	// rep collects the problems to be reported to the user.
	rep *transfer.Report

	// exchangeDraft is the exchange under construction.
	exchangeDraft

	// webSocket is the WebSocket that the request opened; nil if it opened none.
	webSocket *exchangeDraft

	// id is the id of the mitmproxy flow.
	id string
	// handshake is the id of the flow with the HTTP handshake of a WebSocket; it is set only in old formats,
	// in which a WebSocket has its own flow.
	handshake string
}

// A dictReader reads members of a decoded dictionary of a mitmproxy flow. The first member with an unexpected
// type sets err; the methods then return zero values.
type dictReader struct {
	// name is the path of the dictionary in the flow with a final dot, such as "request.", for error messages.
	name string

	// values are the members of the dictionary by name, as the scanner decoded them.
	values map[string]any
	// err is the first error, a member with an unexpected type; the methods return zero values once it is
	// set.
	err error
}

// reportType sets err to say that a member does not have the type named want, unless err is already set.
func (n *dictReader) reportType(member, want string) {
	if n.err == nil {
		n.err = fmt.Errorf("%s%s is not a valid %s", n.name, member, want)
	}
}

// dict returns the nested dictionary of a member, or nil if the member is null or missing.
func (n *dictReader) dict(member string) *dictReader {
	v, ok := n.values[member]
	if !ok || v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		n.reportType(member, "dictionary")
		return nil
	}
	return &dictReader{name: n.name + member + ".", values: m}
}

// text returns the string value of the first of the named members that exists, or "" if none does. Different
// versions of the format use different names.
func (n *dictReader) text(members ...string) string {
	for _, member := range members {
		if v := n.values[member]; v != nil {
			s, ok := text(v)
			if !ok {
				n.reportType(member, "text")
			}
			return s
		}
	}
	return ""
}

// integer returns the value of an integer member, or 0 if it is missing or is not an integer.
func (n *dictReader) integer(member string) int64 {
	switch v := n.values[member].(type) {
	case nil:
		return 0
	case int64:
		return v
	}
	n.reportType(member, "integer")
	return 0
}

// seconds returns the value of a member that is a time in seconds since 1970. ok is false if it is missing or
// invalid.
func (n *dictReader) seconds(member string) (s float64, ok bool) {
	switch v := n.values[member].(type) {
	case nil:
		return 0, false
	case int64:
		s = float64(v)
	case float64:
		s = v
	default:
		n.reportType(member, "number")
		return 0, false
	}
	const year2262 = 9.2e9
	if math.IsNaN(s) || s < 0 || s > year2262 {
		n.reportType(member, "time")
		return 0, false
	}
	return s, true
}

// headers returns HTTP headers from a member that is a list of [name, value] pairs, without HTTP/2
// pseudo-header fields such as :path.
func (n *dictReader) headers(member string) captures.Headers {
	if n.values[member] == nil {
		return nil
	}

	// The list has pairs of texts.
	list, ok := n.values[member].([]any)
	if !ok {
		n.reportType(member, "list")
	}
	var out captures.Headers
	for _, v := range list {
		pair, _ := v.([]any)
		if len(pair) != 2 {
			n.reportType(member, "list of pairs")
			return out
		}
		name, ok1 := text(pair[0])
		value, ok2 := text(pair[1])
		if !ok1 || !ok2 {
			n.reportType(member, "list of texts")
			return out
		}
		if !strings.HasPrefix(name, ":") {
			out = append(out, captures.Header{Name: name, Value: value})
		}
	}
	return out
}

// address returns, as host:port, the first of the named members that is a [host, port] list.
func (n *dictReader) address(members ...string) string {
	for _, member := range members {
		list, ok := n.values[member].([]any)
		if !ok || len(list) < 2 {
			continue
		}
		host, ok1 := text(list[0])
		port, ok2 := list[1].(int64)
		if ok1 && ok2 {
			return net.JoinHostPort(host, strconv.FormatInt(port, 10))
		}
	}
	return ""
}

// convert converts a mitmproxy flow v, given as a decoded dictionary, to exchanges.
func (c *conversion) convert(v any) error {
	members, ok := v.(map[string]any)
	if !ok {
		return errors.New("the flow is not a dictionary")
	}
	flow := &dictReader{values: members}
	if err := c.version(flow); err != nil {
		return err
	}
	c.id, c.ex.Source = flow.text("id"), "import mitmproxy"
	switch kind := flow.text("type"); kind {
	case "http":
		return c.http(flow)
	case "tcp":
		return c.connection(flow)
	case "websocket":
		return c.separateWebSocket(flow)
	default:
		return fmt.Errorf("the flow has the type %q, but unwire reads only flows of the types http, tcp and websocket", transfer.Clip(kind))
	}
}

// http converts a flow of type "http", and the WebSocket that it may have opened.
func (c *conversion) http(flow *dictReader) error {
	request := flow.dict("request")
	if request == nil {
		return errors.Join(flow.err, errors.New("the flow has no request"))
	}
	start, known := request.seconds("timestamp_start")
	if !known {
		c.rep.Problem(c.place, "request.timestamp_start is missing; the year 1970 is used instead")
		// 0 would mean that the time is unknown.
		start = 1
	}
	c.ex.Started = timeOf(start)
	c.request(request, start)
	response := flow.dict("response")
	if response != nil {
		c.response(response, start)
	}
	c.connections(flow)
	c.setOutcome(flow, response != nil, start)
	if err := c.addWebSocket(flow, start); err != nil {
		return err
	}
	return firstError(flow, request, response)
}

// version returns an error if the flow's format version is too old, and reports a problem if it is too new.
// Before version 4, flows had mitmproxy's own version, a list, instead of a number.
func (c *conversion) version(flow *dictReader) error {
	v, ok := flow.values["version"]
	if !ok {
		return errors.New("the flow has no version, so this is not a mitmproxy flow")
	}
	n, ok := v.(int64)
	switch {
	case !ok || n < oldestVersion:
		return errors.New("a mitmproxy older than version 4 wrote the flow: convert the file with `mitmdump -r OLD -w NEW`")
	case n > newestVersion:
		c.rep.Problem(c.place, "the flow has format version %d, newer than the latest known version, %d; unwire reads the parts that it knows", n, newestVersion)
	}
	return nil
}

// request converts the flow's request dictionary n. start is when the request began, in seconds since 1970.
func (c *conversion) request(n *dictReader, start float64) {
	ex := &c.ex
	ex.Method, ex.HTTP = n.text("method"), httpVersion(n.text("http_version"))
	ex.RequestHeaders, ex.RequestTrailers = n.headers("headers"), n.headers("trailers")
	scheme, path := n.text("scheme"), n.text("path")

	// The authority is empty in HTTP/1, and in old formats.
	host := n.text("authority")
	if host == "" {
		host = ex.RequestHeaders.Get("host")
	}
	if host == "" {
		host = hostPort(scheme, n.text("host"), n.integer("port"))
	}
	// A CONNECT request has no scheme.
	if scheme == "" {
		scheme = "https"
	}
	if host == "" {
		n.reportType("host", "host")
	}
	ex.URL = scheme + "://" + host
	if strings.HasPrefix(path, "/") {
		ex.URL += path
	}
	c.body(n, captures.Up, start)
}

// hostPort joins host and port, and omits the default port of the scheme.
func hostPort(scheme, host string, port int64) string {
	switch {
	case host == "":
		return ""
	case port == 0, scheme == "https" && port == 443, scheme == "http" && port == 80:
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

// response converts the flow's response dictionary n. start is when the request began, in seconds since 1970.
func (c *conversion) response(n *dictReader, start float64) {
	ex := &c.ex
	status := n.integer("status_code")
	if status < 0 || status > 999 {
		n.reportType("status_code", "status")
	}
	ex.Status = int(status)
	ex.ResponseHeaders, ex.ResponseTrailers = n.headers("headers"), n.headers("trailers")
	c.body(n, captures.Down, start)
}

// body adds the content and trailers of the request or response n. The content becomes one chunk at the time
// when the message was complete; start is when the request began, in seconds since 1970.
func (c *conversion) body(n *dictReader, dir captures.Direction, start float64) {
	at := time.Duration(0)
	end, ok := n.seconds("timestamp_end")
	if !ok {
		end, ok = n.seconds("timestamp_start")
	}
	if ok {
		at = elapsed(start, end)
	}
	c.duration = max(c.duration, at)

	// A content of null was streamed through mitmproxy without being stored.
	switch content, known := n.values["content"]; {
	case content == nil && known:
		c.rep.Problem(c.place, "%scontent is missing, because mitmproxy streamed the body without storing it", n.name)
	case content != nil:
		body, ok := text(content)
		if !ok {
			n.reportType("content", "text")
		}
		if body != "" {
			c.chunks = append(c.chunks, captures.Chunk{Dir: dir, T: at, Data: []byte(body)})
		}
	}
}

// connections sets the addresses and the TLS parameters of the exchange from the flow's dictionaries of the
// client connection and server connection. The names of their members depend on the format version.
func (c *conversion) connections(flow *dictReader) {
	if n := flow.dict("client_conn"); n != nil {
		c.ex.Client = n.address("peername", "address")
	}
	n := flow.dict("server_conn")
	if n == nil {
		return
	}
	c.ex.Server = n.address("peername", "ip_address", "address")
	version, ok := strings.CutPrefix(n.text("tls_version"), "TLSv")
	if !ok {
		return
	}
	c.ex.TLS = captures.TLS{
		Version: version, Cipher: n.text("cipher", "cipher_name"), ServerName: n.text("sni"),
		ALPN: n.text("alpn", "alpn_proto_negotiated"),
	}
}

// setOutcome sets the outcome of the exchange, and its error if the flow has one. answered means that the flow
// has a response; start is when the request began, in seconds since 1970.
func (c *conversion) setOutcome(flow *dictReader, answered bool, start float64) {
	c.outcome = captures.Complete
	if !answered {
		c.outcome = captures.Incomplete
	}
	n := flow.dict("error")
	if n == nil {
		return
	}
	c.outcome, c.ex.Error = captures.Failed, transfer.Clip(n.text("msg"))
	if answered {
		c.outcome = captures.Reset
	}
	if at, ok := n.seconds("timestamp"); ok {
		c.duration = max(c.duration, elapsed(start, at))
	}
}

// httpVersion converts an HTTP version such as "HTTP/2.0" to "2".
func httpVersion(s string) string {
	v := strings.TrimPrefix(strings.ToUpper(s), "HTTP/")
	switch v {
	case "1.0", "1.1":
		return v
	}
	return strings.TrimSuffix(v, ".0")
}

// timeOf converts seconds since 1970 to a time, rounded to microseconds, which is the precision of the format.
func timeOf(s float64) time.Time {
	return time.UnixMicro(int64(math.Round(s * 1e6))).UTC()
}

// elapsed returns the duration from start to end, both in seconds since 1970, but at least 0.
func elapsed(start, end float64) time.Duration {
	return max(0, timeOf(end).Sub(timeOf(start)))
}
