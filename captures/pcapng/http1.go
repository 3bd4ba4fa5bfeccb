package pcapng

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"unwire/captures"
)

// A framing is the way in which the end of an HTTP/1 body is determined.
type framing uint8

const (
	noBody framing = iota
	contentLength
	chunked
	// replacedByChunked means chunked encoding, although the recorded headers do not declare it.
	replacedByChunked
	untilClose
)

// framingOf determines how the end of a body is written in HTTP/1. A complete body whose length differs from
// Content-Length (because secrets were redacted, or it was recorded over HTTP/2) gets chunked encoding;
// reframed, unless nil, counts such bodies.
func framingOf(ex *captures.Exchange, dir captures.Direction, reframed *int) framing {
	fields, trailers, size := ex.RequestHeaders, ex.RequestTrailers, ex.BytesUp
	if dir == captures.Up && ex.Status == http.StatusSwitchingProtocols {
		// The following bytes are not an HTTP body.
		return noBody
	}
	if dir == captures.Down {
		fields, trailers, size = ex.ResponseHeaders, ex.ResponseTrailers, ex.BytesDown
		switch {
		case ex.Status == http.StatusSwitchingProtocols:
			return untilClose
		case ex.Method == http.MethodHead, ex.Status == http.StatusNoContent, ex.Status == http.StatusNotModified:
			return noBody
		}
	}

	// The headers are kept if they describe the body truthfully.
	length := fields.Get("Content-Length")
	told, err := strconv.ParseInt(length, 10, 64)
	switch {
	case strings.Contains(strings.ToLower(fields.Get("Transfer-Encoding")), "chunked"):
		return chunked
	case length != "" && err == nil && len(trailers) == 0 && (told == size || ex.Outcome != captures.Complete && told >= size):
		return contentLength
	case length == "" && len(trailers) == 0 && dir == captures.Down:
		return untilClose
	case length == "" && len(trailers) == 0 && size == 0:
		return noBody
	}
	if reframed != nil {
		*reframed++
	}
	return replacedByChunked
}

// An http1Writer is the protocolWriter for an HTTP/1 connection.
type http1Writer struct {
	// link writes the packets of the connection.
	link *link
}

// send writes bytes of one direction as packets.
func (h *http1Writer) send(dir captures.Direction, p []byte) error {
	_, err := h.link.ends[dir].Write(p)
	return err
}

// request writes the request line and headers.
func (h *http1Writer) request(t *exchangeWriter) error {
	_, host, target := splitURL(t.ex.URL)
	if t.ex.Method == http.MethodOptions && target == "/" && !strings.HasSuffix(t.ex.URL, "/") {
		target = "*"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\n", oneWord(t.ex.Method), oneWord(target), http1Version(t.ex))
	if t.ex.RequestHeaders.Get("Host") == "" {
		fmt.Fprintf(&b, "Host: %s\r\n", oneWord(host))
	}
	writeFields(&b, t.ex.RequestHeaders, t.framing[captures.Up])
	return h.send(captures.Up, b.Bytes())
}

// response writes the status line and headers.
func (h *http1Writer) response(t *exchangeWriter) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/%s %03d %s\r\n", http1Version(t.ex), t.ex.Status, http.StatusText(t.ex.Status))
	writeFields(&b, t.ex.ResponseHeaders, t.framing[captures.Down])
	return h.send(captures.Down, b.Bytes())
}

// http1Version returns the HTTP version to write, "1.0" or "1.1".
func http1Version(ex *captures.Exchange) string {
	if ex.HTTP == "1.0" {
		return "1.0"
	}
	return "1.1"
}

// writeFields writes a header or trailer section, with the fields that framing f requires. It replaces line
// breaks in values, which would start another field.
func writeFields(b *bytes.Buffer, fields captures.Headers, f framing) {
	for _, h := range fields {
		if strings.HasPrefix(h.Name, ":") || f == replacedByChunked && strings.EqualFold(h.Name, "Content-Length") {
			continue
		}
		fmt.Fprintf(b, "%s: %s\r\n", strings.ReplaceAll(oneWord(h.Name), ":", "_"), oneLine(h.Value))
	}

	// The added header replaces Content-Length.
	if f == replacedByChunked {
		b.WriteString("Transfer-Encoding: chunked\r\n")
	}
	b.WriteString("\r\n")
}

// oneLine replaces line breaks in s by spaces.
func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

// oneWord replaces line breaks and spaces in s by underscores.
func oneWord(s string) string { return strings.NewReplacer("\r", "_", "\n", "_", " ", "_").Replace(s) }

// data writes bytes of a body, as a chunk if the framing is chunked.
func (h *http1Writer) data(t *exchangeWriter, dir captures.Direction, p []byte, _ bool) error {
	switch t.framing[dir] {
	case noBody:
		if t.ex.Status != http.StatusSwitchingProtocols {
			return nil
		}
	case chunked, replacedByChunked:
		b := fmt.Appendf(nil, "%x\r\n", len(p))
		p = append(append(b, p...), "\r\n"...)
	}
	return h.send(dir, p)
}

// end writes the end of a body, as its framing requires.
func (h *http1Writer) end(t *exchangeWriter, dir captures.Direction) error {
	switch t.framing[dir] {
	case chunked, replacedByChunked:
		var b bytes.Buffer
		b.WriteString("0\r\n")
		writeFields(&b, t.trailers(dir), noBody)
		return h.send(dir, b.Bytes())
	case untilClose:
		return h.link.close(dir)
	}
	return nil
}

// abort resets the connection from the side by: HTTP/1 has no other way to end an exchange early.
func (h *http1Writer) abort(_ *exchangeWriter, by captures.Direction) error { return h.link.reset(by) }
