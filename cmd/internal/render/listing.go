package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// notVerified is said of a server's certificate (capture --upstream-insecure).
const notVerified = "not verified"

// listed are the columns of a listing, with the text that each has of an exchange. The
// optional ones are shown where an exchange has something in them.
var listed = []struct {
	term.Column
	optional bool
	text     func(*contract.Exchange) string
}{
	{term.Column{Name: "CAPTURE", Shorten: term.Start, Min: 12}, true, func(l *contract.Exchange) string { return l.File }},
	{term.Column{Name: "ID", Right: true}, false, func(l *contract.Exchange) string { return strconv.FormatInt(l.ID, 10) }},
	{term.Column{Name: "CALL", Shorten: term.Name, Min: 24}, false, CallName},
	{term.Column{Name: "PROTOCOL", Drop: 3}, false, func(l *contract.Exchange) string { return string(l.Protocol) }},
	{term.Column{Name: "CODEC", Drop: 8}, false, func(l *contract.Exchange) string { return l.Codec }},
	{term.Column{Name: "HTTP", Drop: 9}, false, func(l *contract.Exchange) string { return httpText(l.HTTP) }},
	{term.Column{Name: "STATUS", Drop: 10}, false, statusText},
	{term.Column{Name: "CODE"}, false, Ending},
	{term.Column{Name: "FRAMES", On: term.Drawn, Drop: 1}, false, framesText},
	{term.Column{Name: "FRAMES↑", On: term.Plain}, false, func(l *contract.Exchange) string { return strconv.Itoa(l.FramesUp) }},
	{term.Column{Name: "FRAMES↓", On: term.Plain}, false, func(l *contract.Exchange) string { return strconv.Itoa(l.FramesDown) }},
	{term.Column{Name: "BYTES", On: term.Drawn, Right: true, Drop: 2}, false, func(l *contract.Exchange) string { return app.ByteSize(l.BytesUp + l.BytesDown) }},
	{term.Column{Name: "BYTES↑", On: term.Plain}, false, func(l *contract.Exchange) string { return app.ByteSize(l.BytesUp) }},
	{term.Column{Name: "BYTES↓", On: term.Plain}, false, func(l *contract.Exchange) string { return app.ByteSize(l.BytesDown) }},
	{term.Column{Name: "TIME", Right: true, Drop: 4}, false, func(l *contract.Exchange) string { return fmt.Sprintf("%.1f ms", l.DurationMS) }},
	{term.Column{Name: "JOINED", Drop: 6}, true, joinedText},
	{term.Column{Name: "CERTIFICATE", Shorten: term.End, Min: 12, Drop: 5}, true, certificateText},
	{term.Column{Name: "PROCESS", Drop: 11}, true, func(l *contract.Exchange) string { return processText(l.Process) }},
	{term.Column{Name: "RELATED", Shorten: term.End, Min: 12, Drop: 7}, true, relatedText},
	{term.Column{Name: "NOTES", Shorten: term.End, Min: 12, Drop: 4}, true, notesText},
}

// Exchanges writes a table of exchanges.
func Exchanges(out *term.Output, lines []*contract.Exchange) error {
	processes := haveSeveralProcesses(lines)
	t := term.Table{Rows: make([][]string, len(lines))}
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

// paintCode colours how an exchange ended: in red what failed, in yellow what is not over.
func paintCode(out *term.Output, code, shown string) string {
	switch {
	case code == "ok" || code == "":
		return shown
	case code == inFlight:
		return out.Yellow(shown)
	}
	return out.Red(shown)
}

// framesText counts the frames of both directions: 7↑ 76↓.
func framesText(l *contract.Exchange) string {
	return fmt.Sprintf("%d↑ %d↓", l.FramesUp, l.FramesDown)
}

// httpText names a version of HTTP; "" for an exchange without HTTP.
func httpText(version string) string {
	if version == "" {
		return ""
	}
	return "HTTP/" + version
}

// statusText is the status of an exchange, if it is one of HTTP.
func statusText(l *contract.Exchange) string {
	if l.Transport != captures.HTTP && l.Status == 0 {
		return ""
	}
	return strconv.Itoa(l.Status)
}

// maxRelated is how many relations of an exchange a table names.
const maxRelated = 4

// answersVerb is what a stream does for requests to a served endpoint. It is said once.
const answersVerb = "answers "

// relatedText names the relations of an exchange.
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

// relationText says what the exchange id is to the other one of a relation.
func relationText(id int64, r contract.Relation) string {
	target := fmt.Sprintf("#%d", r.Target)
	if r.Capture != "" {
		target += " of another capture"
	}
	own := r.Exchange == id
	switch {
	case r.Kind == captures.HandshakeOf && own:
		return "opened by " + target
	case r.Kind == captures.HandshakeOf:
		return fmt.Sprintf("handshake of #%d", r.Exchange)
	case r.Kind == captures.FrontEndOf && own:
		return "front end of " + target
	case r.Kind == captures.FrontEndOf:
		return fmt.Sprintf(answersVerb+"#%d", r.Exchange)
	case own:
		return term.Clean(string(r.Kind)) + " " + target
	}
	return fmt.Sprintf("#%d is %s this", r.Exchange, term.Clean(string(r.Kind)))
}

// haveSeveralProcesses reports whether exchanges are of more than one program.
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

// processText names a program by its executable and its number; "" if neither is known.
func processText(p *contract.Process) string {
	switch {
	case p == nil || p.PID == 0:
		return ""
	case p.Name == "":
		return strconv.Itoa(p.PID)
	}
	return p.Name + " " + strconv.Itoa(p.PID)
}

// certificateText says what is remarkable of the certificates of both sides.
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

// clientCertificateText words what became of a server's wish for a client certificate.
func clientCertificateText(c captures.ClientCertificate) string {
	switch c {
	case captures.CertificateRequested:
		return "client certificate requested, none given"
	case captures.CertificateSent:
		return "client certificate sent"
	}
	return ""
}

// CallName names the call of an exchange: the RPC, or method and URL.
func CallName(l *contract.Exchange) string {
	if l.Service != "" {
		return l.Service + "/" + l.RPC
	}
	return strings.TrimSpace(l.Method + " " + l.URL)
}

// inFlight is said of an exchange that has not ended.
const inFlight = "(in flight)"

// Ending is the code of an exchange, or how it ended where it did not end cleanly.
func Ending(l *contract.Exchange) string {
	switch {
	case l.Complete:
		return l.Code
	case l.Outcome == "":
		return inFlight
	case PinningHint(l.Error) != "":
		return "(certificate refused)"
	}
	return "(" + l.Outcome + ")"
}

// joinedText gives the number of calls that are joined to a head, or the head that a call
// is joined to.
func joinedText(l *contract.Exchange) string {
	switch l.Joined {
	case 0:
		return ""
	case l.ID:
		return app.Counted(len(l.Parts), "call")
	}
	return fmt.Sprintf("to #%d", l.Joined)
}
