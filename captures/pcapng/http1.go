package pcapng

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"unwire/captures"
)

// A framing is how an HTTP/1 body says where it ends.
type framing uint8

const (
	noBody framing = iota
	byLength
	asChunks
	addedChunks // as the headers have it otherwise
	untilClose
)

// framingOf tells how a body is sent. What was recorded as complete and has
// another length than its headers say (as secrets were replaced in it, or it
// came over HTTP/2) is sent in chunks, and counted.
func framingOf(ex *captures.Exchange, dir captures.Direction, reframed *int) framing {
	fields, trailers, size := ex.RequestHeaders, ex.RequestTrailers, ex.BytesUp
	if dir == captures.Up && ex.Status == http.StatusSwitchingProtocols {
		return noBody // what follows is no body of it
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
	length := fields.Get("Content-Length")
	told, err := strconv.ParseInt(length, 10, 64)
	switch {
	case strings.Contains(strings.ToLower(fields.Get("Transfer-Encoding")), "chunked"):
		return asChunks
	case length != "" && err == nil && len(trailers) == 0 && (told == size || ex.Outcome != captures.Complete && told >= size):
		return byLength
	case length == "" && len(trailers) == 0 && dir == captures.Down:
		return untilClose
	case length == "" && len(trailers) == 0 && size == 0:
		return noBody
	}
	if reframed != nil {
		*reframed++
	}
	return addedChunks
}

// An http1 speaks for both sides of an HTTP/1 connection.
type http1 struct{ link *link }

func (h *http1) send(dir captures.Direction, p []byte) error {
	_, err := h.link.ends[dir].Write(p)
	return err
}

func (h *http1) request(t *exchangeWriter) error {
	_, host, target := splitURL(t.ex.URL)
	if t.ex.Method == http.MethodOptions && target == "/" && !strings.HasSuffix(t.ex.URL, "/") {
		target = "*"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\n", oneWord(t.ex.Method), oneWord(target), version1(t.ex))
	if t.ex.RequestHeaders.Get("Host") == "" {
		fmt.Fprintf(&b, "Host: %s\r\n", oneWord(host))
	}
	writeFields(&b, t.ex.RequestHeaders, t.framing[captures.Up])
	return h.send(captures.Up, b.Bytes())
}

func (h *http1) response(t *exchangeWriter) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/%s %03d %s\r\n", version1(t.ex), t.ex.Status, http.StatusText(t.ex.Status))
	writeFields(&b, t.ex.ResponseHeaders, t.framing[captures.Down])
	return h.send(captures.Down, b.Bytes())
}

func version1(ex *captures.Exchange) string {
	if ex.HTTP == "1.0" {
		return "1.0"
	}
	return "1.1"
}

// writeFields writes a header section. Line ends within a value would be others' fields.
func writeFields(b *bytes.Buffer, fields captures.Headers, f framing) {
	for _, h := range fields {
		if strings.HasPrefix(h.Name, ":") || f == addedChunks && strings.EqualFold(h.Name, "Content-Length") {
			continue
		}
		fmt.Fprintf(b, "%s: %s\r\n", strings.ReplaceAll(oneWord(h.Name), ":", "_"), oneLine(h.Value))
	}
	if f == addedChunks {
		b.WriteString("Transfer-Encoding: chunked\r\n")
	}
	b.WriteString("\r\n")
}

func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }
func oneWord(s string) string { return strings.NewReplacer("\r", "_", "\n", "_", " ", "_").Replace(s) }

func (h *http1) data(t *exchangeWriter, dir captures.Direction, p []byte, _ bool) error {
	switch t.framing[dir] {
	case noBody:
		if t.ex.Status != http.StatusSwitchingProtocols {
			return nil
		}
	case asChunks, addedChunks:
		b := fmt.Appendf(nil, "%x\r\n", len(p))
		p = append(append(b, p...), "\r\n"...)
	}
	return h.send(dir, p)
}

func (h *http1) end(t *exchangeWriter, dir captures.Direction) error {
	switch t.framing[dir] {
	case asChunks, addedChunks:
		var b bytes.Buffer
		b.WriteString("0\r\n")
		writeFields(&b, t.trailers(dir), noBody)
		return h.send(dir, b.Bytes())
	case untilClose:
		return h.link.close(dir)
	}
	return nil
}

// cut breaks the connection: nothing else ends an exchange of HTTP/1 early.
func (h *http1) cut(_ *exchangeWriter, by captures.Direction) error { return h.link.reset(by) }
