package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/failure"
	"unwire/cmd/internal/term"
)

// notVerified is the text for a server's certificate that was not verified (capture
// --upstream-insecure).
const notVerified = "not verified"

// listed are the columns of 'unwire ls', each with a function that returns the text for an exchange.
// Optional columns are printed only if an exchange has a text in them.
var listed = []struct {
	term.Column
	optional bool
	text     func(*contract.Exchange) string
}{
	{term.Column{Name: "CAPTURE", Shorten: term.Start, Min: 12}, true, func(l *contract.Exchange) string { return l.File }},
	{term.Column{Name: "ID", Right: true}, false, func(l *contract.Exchange) string { return strconv.FormatInt(l.ID, 10) }},
	{term.Column{Name: "CALL", Shorten: term.Name, Min: 24}, false, CallName},
	{term.Column{Name: "PROTOCOL", Drop: 5}, false, func(l *contract.Exchange) string { return string(l.Protocol) }},
	{term.Column{Name: "CODEC", Drop: 8}, false, func(l *contract.Exchange) string { return l.Codec }},
	{term.Column{Name: "HTTP", Drop: 9}, false, func(l *contract.Exchange) string { return httpText(l.HTTP) }},
	{term.Column{Name: "HTTP STATUS", Drop: 10}, false, func(l *contract.Exchange) string { return statusText(l.Status, l.Transport) }},
	{term.Column{Name: "CODE"}, false, Ending},
	{term.Column{Name: "FRAMES", On: term.Drawn, Drop: 1}, false, framesText},
	{term.Column{Name: "FRAMES SENT", On: term.Plain}, false, func(l *contract.Exchange) string { return strconv.Itoa(l.FramesUp) }},
	{term.Column{Name: "FRAMES RECEIVED", On: term.Plain}, false, func(l *contract.Exchange) string { return strconv.Itoa(l.FramesDown) }},
	{term.Column{Name: "SIZE", On: term.Drawn, Right: true, Drop: 2}, false, func(l *contract.Exchange) string { return app.ByteSize(l.BytesUp + l.BytesDown) }},
	{term.Column{Name: "BYTES SENT", On: term.Plain}, false, func(l *contract.Exchange) string { return strconv.FormatInt(l.BytesUp, 10) }},
	{term.Column{Name: "BYTES RECEIVED", On: term.Plain}, false, func(l *contract.Exchange) string { return strconv.FormatInt(l.BytesDown, 10) }},
	{term.Column{Name: "TIME", Right: true, Drop: 4}, false, func(l *contract.Exchange) string { return fmt.Sprintf("%.1f ms", l.DurationMS) }},
	{term.Column{Name: "STREAM", Drop: 6}, true, joinedText},
	{term.Column{Name: "CERTIFICATE", Shorten: term.End, Min: 12, Drop: 5}, true, certificateText},
	{term.Column{Name: "PROCESS", Drop: 11}, true, func(l *contract.Exchange) string { return processText(l.Process) }},
	{term.Column{Name: "RELATED", Shorten: term.End, Min: 12, Drop: 7}, true, relatedText},
	{term.Column{Name: "EDITED", Drop: 6}, true, editedText},
	{term.Column{Name: "NOTES", Shorten: term.End, Min: 12, Drop: 4}, true, notesText},
	{term.Column{Name: "REASON", Shorten: term.End, Min: 16, Drop: 3}, true, func(l *contract.Exchange) string { return l.Error }},
}

// mixedCodec is the codec of an exchange whose messages have different codecs.
const mixedCodec = "mixed"

// Exchanges prints exchanges as a table.
func Exchanges(out *term.Output, lines []*contract.Exchange) error {
	processes := haveSeveralProcesses(lines)
	t := term.Table{Rows: make([][]string, len(lines)), Legend: "(" + arrows + ")"}
	if slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return l.Codec == mixedCodec }) {
		t.Legend = "(↑ from the client, ↓ from the server; " + mixedCodec + ": messages with different codecs)"
	}
	for _, c := range listed {
		switch {
		case c.Name == "PROCESS" && !processes:
			continue
		case c.optional && !slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return c.text(l) != "" }):
			continue
		case c.Name == "CODE":
			c.Paint = func(code, shown string) string { return paintCode(out, code, shown) }
		}
		t.Columns = append(t.Columns, c.Column)
		for i, l := range lines {
			t.Rows[i] = append(t.Rows[i], c.text(l))
		}
	}
	return out.Table(t)
}

// paintCode colours the shown text of the column CODE: red for failures, yellow for exchanges in flight.
// code is the whole text.
func paintCode(out *term.Output, code, shown string) string {
	switch {
	case code == "ok" || code == "":
		return shown
	case code == inFlight:
		return out.Yellow(shown)
	}
	return out.Red(shown)
}

// framesText returns the number of frames in both directions, such as "7↑ 76↓".
func framesText(l *contract.Exchange) string {
	return fmt.Sprintf("%d↑ %d↓", l.FramesUp, l.FramesDown)
}

// httpText formats a version of HTTP, such as "HTTP/2"; "" for an exchange without HTTP.
func httpText(version string) string {
	if version == "" {
		return ""
	}
	return "HTTP/" + version
}

// statusText returns the HTTP status that the server sent on a transport: "none" if it sent no response, and "" if
// the exchange is not HTTP.
func statusText(status int, transport captures.Transport) string {
	switch {
	case status != 0:
		return strconv.Itoa(status)
	case transport == captures.HTTP:
		return "none"
	}
	return ""
}

// maxRelated is the largest number of relations of an exchange in a table.
const maxRelated = 4

// answersVerb is the text for the relation of an upstream stream to the client requests that it answered.
// It is printed once for several requests.
const answersVerb = "used to answer "

// editedText returns "edited" for an exchange that a rewriting rule changed; "" for others.
func editedText(l *contract.Exchange) string {
	if l.Edited {
		return "edited"
	}
	return ""
}

// relatedText lists the relations of an exchange to other exchanges.
func relatedText(l *contract.Exchange) string {
	var texts []string
	for i, r := range l.Relations {
		if i == maxRelated {
			texts = append(texts, "…")
			break
		}
		text := relationText(l.ID, r)
		if i > 0 && r.Kind == captures.FrontEndOf && r.Exchange != l.ID && l.Relations[i-1].Kind == r.Kind {
			text = strings.TrimPrefix(text, answersVerb)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// relationText describes one relation from the point of view of the exchange id.
func relationText(id int64, r contract.Relation) string {
	target := fmt.Sprintf("#%d", r.Target)
	if r.Capture != "" {
		target += " in another capture"
	}
	own := r.Exchange == id
	switch {
	case r.Kind == captures.HandshakeOf && own:
		return "opened by exchange " + target
	case r.Kind == captures.HandshakeOf:
		return fmt.Sprintf("handshake of #%d", r.Exchange)
	case r.Kind == captures.FrontEndOf && own:
		return "answer comes from " + target
	case r.Kind == captures.FrontEndOf:
		return fmt.Sprintf(answersVerb+"#%d", r.Exchange)
	case own:
		return term.Clean(string(r.Kind)) + " " + target
	}
	return fmt.Sprintf("#%d is %s this", r.Exchange, term.Clean(string(r.Kind)))
}

// haveSeveralProcesses reports whether different programs made the given exchanges.
func haveSeveralProcesses(lines []*contract.Exchange) bool {
	first := ""
	for _, l := range lines {
		text := processText(l.Process)
		switch {
		case text == "":
		case first == "":
			first = text
		case text != first:
			return true
		}
	}
	return false
}

// processText returns name and process id of a program; "" if the process id is not known.
func processText(p *contract.Process) string {
	switch {
	case p == nil || p.PID == 0:
		return ""
	case p.Name == "":
		return strconv.Itoa(p.PID)
	}
	return p.Name + " " + strconv.Itoa(p.PID)
}

// certificateText returns remarks on certificates: that the server's was not verified, or that the server
// asked for a client certificate and got none.
func certificateText(l *contract.Exchange) string {
	var texts []string
	if l.Unverified {
		texts = append(texts, notVerified)
	}
	if l.ClientCertificate == captures.CertificateRequested {
		texts = append(texts, clientCertificateText(l.ClientCertificate))
	}
	return strings.Join(texts, ", ")
}

// clientCertificateText describes the outcome of a server's request for a client certificate.
func clientCertificateText(c captures.ClientCertificate) string {
	switch c {
	case captures.CertificateRequested:
		return "client certificate requested, none sent"
	case captures.CertificateSent:
		return "client certificate sent"
	}
	return ""
}

// CallName returns the name of an exchange's call: service and method of an RPC, and otherwise HTTP
// method and URL.
func CallName(l *contract.Exchange) string {
	if l.Service != "" {
		return l.Service + "/" + l.RPC
	}
	return strings.TrimSpace(l.Method + " " + l.URL)
}

// inFlight is the text for an exchange that has not ended yet.
const inFlight = "(in flight)"

// Ending returns the status code of an exchange or, in parentheses, how it ended if that was not cleanly.
func Ending(l *contract.Exchange) string {
	switch {
	case l.Complete:
		return l.Code
	case l.Outcome == "":
		return inFlight
	}
	if f, _ := failure.Of(l.Error); f.Kind == failure.CertificateRefused {
		return "(certificate refused)"
	}
	return "(" + l.Outcome + ")"
}

// joinedText returns, for the first exchange of a conversation, the number of its calls and, for the
// others, the number of the first exchange.
func joinedText(l *contract.Exchange) string {
	switch l.Joined {
	case 0:
		return ""
	case l.ID:
		return "consists of " + app.Counted(len(l.Parts), "exchange")
	}
	return fmt.Sprintf("part of exchange %d", l.Joined)
}
