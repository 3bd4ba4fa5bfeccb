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

// A conversion makes an exchange of a flow, or two: a handshake and the WebSocket that it
// opened.
type conversion struct {
	place string
	rep   *transfer.Report

	converted

	// socket is what the request opened.
	socket *converted

	// id is the flow's, and handshake that of the flow that opened a WebSocket.
	id, handshake string
}

// A node is a dictionary that is read by its members' names; the first one
// that is of another type than expected is its error.
type node struct {
	name    string
	members map[string]any
	err     error
}

func (n *node) reportType(member, want string) {
	if n.err == nil {
		n.err = fmt.Errorf("%s%s is no %s", n.name, member, want)
	}
}

// dict returns a member, or nil where it is null or missing.
func (n *node) dict(member string) *node {
	v, ok := n.members[member]
	if !ok || v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		n.reportType(member, "dictionary")
		return nil
	}
	return &node{name: n.name + member + ".", members: m}
}

// text returns the first of the members that is there, or "".
func (n *node) text(members ...string) string {
	for _, member := range members {
		if v := n.members[member]; v != nil {
			s, ok := text(v)
			if !ok {
				n.reportType(member, "text")
			}
			return s
		}
	}
	return ""
}

func (n *node) integer(member string) int64 {
	switch v := n.members[member].(type) {
	case nil:
		return 0
	case int64:
		return v
	}
	n.reportType(member, "integer")
	return 0
}

// seconds returns a time in seconds; ok is false where it is not known.
func (n *node) seconds(member string) (s float64, ok bool) {
	switch v := n.members[member].(type) {
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

// headers reads a list of pairs; null is none.
func (n *node) headers(member string) captures.Headers {
	if n.members[member] == nil {
		return nil
	}
	list, ok := n.members[member].([]any)
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

// address reads the first of the members that is a [host, port].
func (n *node) address(members ...string) string {
	for _, member := range members {
		list, ok := n.members[member].([]any)
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

func (c *conversion) convert(v any) error {
	members, ok := v.(map[string]any)
	if !ok {
		return errors.New("not a dictionary")
	}
	flow := &node{members: members}
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
		return c.oldSocket(flow)
	default:
		return fmt.Errorf("a flow of type %q: only http, tcp and websocket are read", transfer.Clip(kind))
	}
}

// http makes the exchange of a flow of type http, and that of its WebSocket.
func (c *conversion) http(flow *node) error {
	request := flow.dict("request")
	if request == nil {
		return errors.Join(flow.err, errors.New("no request"))
	}
	start, known := request.seconds("timestamp_start")
	if !known {
		c.rep.Problem(c.place, "request.timestamp_start: missing: 1970 is taken")
		start = 1 // 0 is no time to a capture
	}
	c.ex.Started = timeOf(start)
	c.request(request, start)
	response := flow.dict("response")
	if response != nil {
		c.response(response, start)
	}
	c.connections(flow)
	c.setOutcome(flow, response != nil, start)
	if err := c.webSocket(flow, start); err != nil {
		return err
	}
	return firstError(flow, request, response)
}

// version checks the format. Before version 4 it was a list, that of the
// program.
func (c *conversion) version(flow *node) error {
	v, ok := flow.members["version"]
	if !ok {
		return errors.New("no version: this is no flow")
	}
	n, ok := v.(int64)
	switch {
	case !ok || n < oldestVersion:
		return errors.New("written by a mitmproxy older than 4: convert it by `mitmdump -r OLD -w NEW`")
	case n > newestVersion:
		c.rep.Problem(c.place, "version: %d is newer than what is known, %d: read as far as it is alike", n, newestVersion)
	}
	return nil
}

func (c *conversion) request(n *node, start float64) {
	ex := &c.ex
	ex.Method, ex.HTTP = n.text("method"), httpVersion(n.text("http_version"))
	ex.RequestHeaders, ex.RequestTrailers = n.headers("headers"), n.headers("trailers")
	scheme, path := n.text("scheme"), n.text("path")
	host := n.text("authority")
	if host == "" {
		host = ex.RequestHeaders.Get("host")
	}
	if host == "" {
		host = hostPort(scheme, n.text("host"), n.integer("port"))
	}
	if scheme == "" { // of a CONNECT
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

// hostPort leaves out the port that a scheme has anyway.
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

func (c *conversion) response(n *node, start float64) {
	ex := &c.ex
	status := n.integer("status_code")
	if status < 0 || status > 999 {
		n.reportType("status_code", "status")
	}
	ex.Status = int(status)
	ex.ResponseHeaders, ex.ResponseTrailers = n.headers("headers"), n.headers("trailers")
	c.body(n, captures.Down, start)
}

// body takes a message's content as one chunk, at the time of its end.
func (c *conversion) body(n *node, dir captures.Direction, start float64) {
	at := time.Duration(0)
	end, ok := n.seconds("timestamp_end")
	if !ok {
		end, ok = n.seconds("timestamp_start")
	}
	if ok {
		at = since(start, end)
	}
	c.duration = max(c.duration, at)
	switch content, known := n.members["content"]; {
	case content == nil && known:
		c.rep.Problem(c.place, "%scontent: missing: mitmproxy has streamed it through", n.name)
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

func (c *conversion) connections(flow *node) {
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

// setOutcome tells how the exchange ended.
func (c *conversion) setOutcome(flow *node, answered bool, start float64) {
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
		c.duration = max(c.duration, since(start, at))
	}
}

func httpVersion(s string) string {
	v := strings.TrimPrefix(strings.ToUpper(s), "HTTP/")
	switch v {
	case "1.0", "1.1":
		return v
	}
	return strings.TrimSuffix(v, ".0")
}

// timeOf is a time in seconds, to the microsecond that it is good for.
func timeOf(s float64) time.Time {
	return time.UnixMicro(int64(math.Round(s * 1e6))).UTC()
}

func since(start, end float64) time.Duration {
	return max(0, timeOf(end).Sub(timeOf(start)))
}
