package mitm

import (
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"
	"strings"

	"unwire/captures"
)

// hopByHop are the names of header fields that apply to a single connection and are not forwarded.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// forwardHeader returns a copy of a header without the fields that apply to a single connection. "te: trailers"
// is kept, because gRPC servers require it, and so is a request for an upgrade.
func forwardHeader(in http.Header) http.Header {
	out := in.Clone()
	if out == nil {
		out = make(http.Header)
	}

	// Connection names further hop-by-hop fields.
	for _, v := range in["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.TrimString(name); name != "" {
				out.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	if hasToken(in["Te"], "trailers") {
		out.Set("Te", "trailers")
	}
	if protocol := upgradeOf(in); protocol != "" {
		out.Set("Connection", "Upgrade")
		out.Set("Upgrade", protocol)
	}
	return out
}

// upgradeOf returns the protocol to which a header asks to switch, or "".
func upgradeOf(h http.Header) string {
	if !hasToken(h["Connection"], "upgrade") {
		return ""
	}
	return h.Get("Upgrade")
}

// awaitsContinue reports whether the client of an HTTP/2 request waits for "100 Continue". net/http removes the
// header field, and only the type of its body shows it. If that type changes, the result is false and the body
// is requested at once.
func awaitsContinue(body io.ReadCloser) bool {
	v := reflect.Indirect(reflect.ValueOf(body))
	if v.Kind() != reflect.Struct {
		return false
	}
	f := v.FieldByName("needsContinue")
	return f.IsValid() && f.Kind() == reflect.Bool && f.Bool()
}

// hasToken reports whether comma-separated field values contain a token.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if t, _, _ = strings.Cut(t, ";"); strings.EqualFold(textproto.TrimString(t), token) {
				return true
			}
		}
	}
	return false
}

// A section is a header section as net/http returns it, with the fields that net/http removes from it.
type section struct {
	// header has the fields that net/http returned.
	header http.Header
	// major is the major HTTP version.
	major int
	// host is the value of the Host field.
	host string
	// encoding is the value of Transfer-Encoding.
	encoding []string
	// trailer are the trailers announced in the header.
	trailer http.Header
}

// headers returns all fields sorted by name, because net/http loses their order. Names are in lower case for
// HTTP/2.
func (s section) headers() captures.Headers {
	all := make(map[string][]string, len(s.header)+3)
	maps.Copy(all, s.header)
	if s.host != "" && s.major < 2 {
		all["Host"] = []string{s.host}
	}
	if len(s.encoding) > 0 {
		all["Transfer-Encoding"] = []string{strings.Join(s.encoding, ", ")}
	}
	if len(s.trailer) > 0 {
		all["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(s.trailer)), ", ")}
	}

	// Sort the names, because net/http has lost their order.
	out := make(captures.Headers, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		shown := name
		if s.major >= 2 {
			shown = strings.ToLower(name)
		}
		for _, v := range all[name] {
			out = append(out, captures.Header{Name: shown, Value: v})
		}
	}
	return out
}
