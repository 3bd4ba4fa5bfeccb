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

// hopByHop are the fields that concern one connection only.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// forwardHeader copies what goes on to the next hop. "te: trailers" does, as
// gRPC servers ask for it, and so does the request for an upgrade.
func forwardHeader(in http.Header) http.Header {
	out := in.Clone()
	if out == nil {
		out = make(http.Header)
	}
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

// upgradeOf returns the protocol that a header asks to change to, or "".
func upgradeOf(h http.Header) string {
	if !hasToken(h["Connection"], "upgrade") {
		return ""
	}
	return h.Get("Upgrade")
}

// expectsContinue reports whether the client of an HTTP/2 request waits to be
// told to send its body. net/http takes the field for itself there, and leaves
// no other sign of it than in its body's type; if that should change, the body
// is asked for at once.
func expectsContinue(body io.ReadCloser) bool {
	v := reflect.Indirect(reflect.ValueOf(body))
	if v.Kind() != reflect.Struct {
		return false
	}
	f := v.FieldByName("needsContinue")
	return f.IsValid() && f.Kind() == reflect.Bool && f.Bool()
}

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

// A section is a header section as net/http hands it over, apart from the
// fields that it takes out.
type section struct {
	header   http.Header
	major    int // HTTP version
	host     string
	encoding []string    // transfer-encoding
	trailer  http.Header // announced
}

// headers puts a section into the order of its names, as net/http loses the
// order in which they came. HTTP/2 names are lower-case on the wire.
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
