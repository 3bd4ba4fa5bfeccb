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

// notVerified is said of a server's certificate (capture --upstream-insecure).
const notVerified = "not verified"

// Exchanges writes a table of exchanges.
func Exchanges(out *term.Output, lines []*contract.Exchange) error {
	head := []string{"ID", "CALL", "PROTOCOL", "CODEC", "HTTP", "STATUS", "CODE", "FRAMES↑", "FRAMES↓", "BYTES↑", "BYTES↓", "TIME"}
	joined := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return l.Joined != 0 })
	if joined {
		head = append(head, "JOINED")
	}
	certificates := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return certificateText(l) != "" })
	if certificates {
		head = append(head, "CERTIFICATE")
	}
	processes := haveSeveralProcesses(lines)
	if processes {
		head = append(head, "PROCESS")
	}
	related := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return len(l.Relations) > 0 })
	if related {
		head = append(head, "RELATED")
	}
	notes := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return notesText(l) != "" })
	if notes {
		head = append(head, "NOTES")
	}
	reasons := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return l.Error != "" })
	if reasons {
		head = append(head, "REASON")
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{
			strconv.FormatInt(l.ID, 10), CallName(l), string(l.Protocol), l.Codec, httpText(l.HTTP),
			statusText(l), Ending(l), strconv.Itoa(l.FramesUp), strconv.Itoa(l.FramesDown),
			app.ByteSize(l.BytesUp), app.ByteSize(l.BytesDown), fmt.Sprintf("%.1f ms", l.DurationMS),
		}
		if joined {
			rows[i] = append(rows[i], joinedText(l))
		}
		if certificates {
			rows[i] = append(rows[i], certificateText(l))
		}
		if processes {
			rows[i] = append(rows[i], processText(l.Process))
		}
		if related {
			rows[i] = append(rows[i], relatedText(l))
		}
		if notes {
			rows[i] = append(rows[i], notesText(l))
		}
		if reasons {
			rows[i] = append(rows[i], l.Error)
		}
	}
	if slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return l.File != "" }) {
		head = slices.Insert(head, 0, "CAPTURE")
		for i, l := range lines {
			rows[i] = slices.Insert(rows[i], 0, l.File)
		}
	}
	return out.Table(head, rows)
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

// Ending is the code of an exchange, or how it ended where it did not end cleanly.
func Ending(l *contract.Exchange) string {
	switch {
	case l.Complete:
		return l.Code
	case l.Outcome == "":
		return "(in flight)"
	}
	if f, _ := failure.Of(l.Error); f.Kind == failure.CertificateRefused {
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
