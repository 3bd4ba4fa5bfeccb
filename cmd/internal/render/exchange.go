package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/failure"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
)

// ExchangeHead prints everything about an exchange except its frames: request line, status, headers,
// relations to other exchanges, and the notes on the exchange. If folded is set, it prints only the
// number of headers.
func ExchangeHead(out *term.Output, w io.Writer, at conversation.Resolved, relations []captures.Relation, notes []*contract.PlaceNote, folded bool) {
	fmt.Fprintf(w, "%s\n", out.Bold(term.Clean(strings.TrimSpace(at.Method+" "+at.URL))))
	fmt.Fprint(w, out.Wrap(exchangeFacts(at)))

	for _, r := range contract.NewRelations(relations) {
		fmt.Fprintf(w, "%s\n", relationText(at.ID, r))
	}
	writeFailure(out, w, at)
	Notes(out, w, notes, "")
	list := Headers
	if folded {
		list = headerCount
	}
	legend := arrowLegend
	if !folded {
		legend += fieldLegend
	}
	fmt.Fprint(w, out.Wrap(out.Dim(legend)+"\n"))
	list(out, w, "↑", "", at.RequestHeaders)
	list(out, w, "↑", "trailer ", at.RequestTrailers)
	list(out, w, "↓", "", at.ResponseHeaders)
	list(out, w, "↓", "trailer ", at.ResponseTrailers)
	fmt.Fprintln(w)

	switch {
	case at.Joined != nil:
		fmt.Fprintln(w, out.Wrap(out.Dim(fmt.Sprintf("The client split one stream over several calls, which have the same request ID (%s). The frames of the server are from %s, those of the client from %s. --parts shows only this call.",
			term.Clean(at.Joined.RequestID), idList(at.Joined.Heads), idList(at.Joined.Appends)))+"\n"))
	case at.Head != 0:
		fmt.Fprintf(w, "%s\n\n", out.Dim(fmt.Sprintf("This call is part of a stream. Exchange %d shows the whole stream.", at.Head)))
	}
}

// exchangeFacts returns two lines of facts about an exchange: protocol, status, outcome and duration; and
// time, program, addresses and TLS.
func exchangeFacts(at conversation.Resolved) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exchange %d · %s", at.ID, at.Protocol)
	// Facts that are unknown are left out, so each has its condition.
	if at.Codec != "" {
		codec := at.Codec
		if codec == mixedCodec {
			codec = "messages in several formats"
		}
		fmt.Fprintf(&b, " (%s)", term.Clean(codec))
	}
	if at.HTTP != "" || at.Transport == captures.HTTP {
		fmt.Fprintf(&b, " · HTTP/%s", term.Clean(at.HTTP))
	}
	if status := statusText(at.Status, at.Transport); status != "" {
		fmt.Fprintf(&b, " · HTTP status %s", status)
	}
	if at.Code != "" {
		fmt.Fprintf(&b, " · code %s", term.Clean(at.Code))
	}
	fmt.Fprintf(&b, " · %s · %s\n", outcomeText(at.Outcome), durationText(at.Duration))
	fmt.Fprint(&b, at.Started.Format("2006-01-02 15:04:05.000 -07:00"))
	if text := programText(at.Process); text != "" {
		fmt.Fprintf(&b, " · %s", term.Clean(text))
	}
	switch {
	case at.Server != "":
		fmt.Fprintf(&b, " · %s → %s", term.Clean(at.Client), term.Clean(at.Server))
	case at.Client != "":
		// unwire may have answered without a connection to the server.
		fmt.Fprintf(&b, " · from %s", term.Clean(at.Client))
	}
	if at.TLS.Version != "" {
		fmt.Fprintf(&b, " · TLS %s %s", term.Clean(at.TLS.Version), term.Clean(at.TLS.Cipher))
	}
	if at.TLS.Unverified {
		fmt.Fprintf(&b, " · certificate %s", notVerified)
	}
	if text := clientCertificateText(at.TLS.ClientCertificate); text != "" {
		fmt.Fprintf(&b, " · %s", text)
	}
	if at.TLS.Proxy != "" {
		fmt.Fprintf(&b, " · through the proxy %s", term.Clean(at.TLS.Proxy))
	}
	b.WriteByte('\n')
	return b.String()
}

// writeFailure prints the reason why an exchange failed.
func writeFailure(out *term.Output, w io.Writer, at conversation.Resolved) {
	if at.Error != "" {
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("%s %s\n", out.Red("error:"), term.Clean(at.Error))))
	}
	if f, ok := failure.Of(at.Error); ok && f.Remedy != "" {
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("hint: %s\n", f.Remedy)))
	}
	if at.Message != "" {
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("status message: %s\n", term.Clean(at.Message))))
	}
	if at.Exchange != nil && decode.AnsweredInGRPC(&at.Exchange.Exchange) {
		fmt.Fprint(w, out.Wrap("hint: "+decode.GRPCInsteadOfConnect+"\n"))
	}
}

// durationText formats a duration in milliseconds or seconds.
func durationText(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// programText formats the program that opened a connection: its process, and the name and version that
// it sent.
func programText(p captures.Process) string {
	var parts []string
	if p.Name != "" {
		parts = append(parts, "program "+p.Name)
	}
	if p.PID != 0 {
		parts = append(parts, "process "+strconv.Itoa(p.PID))
	}
	switch {
	case p.Client == "":
	case p.Version == "":
		parts = append(parts, "client "+p.Client)
	default:
		parts = append(parts, "client "+p.Client+"/"+p.Version)
	}
	return strings.Join(parts, ", ")
}

// ExchangeBegan prints the request line and the headers of an exchange that is being recorded.
func ExchangeBegan(out *term.Output, w io.Writer, ex *captures.Exchange, call decode.Call) {
	fmt.Fprintf(w, "%s\n", out.Bold(term.Clean(strings.TrimSpace(ex.Method+" "+ex.URL))))
	fmt.Fprintf(w, "exchange %d · %s", ex.ID, call.Protocol)
	if ex.HTTP != "" || ex.Transport == captures.HTTP {
		fmt.Fprintf(w, " · HTTP/%s", term.Clean(ex.HTTP))
	}
	fmt.Fprint(w, "\n"+out.Wrap(out.Dim(arrowLegend+fieldLegend)+"\n"))
	Headers(out, w, "↑", "", ex.RequestHeaders)
}

// ExchangeEnded prints the outcome of an exchange that was being recorded, with the code and message of
// its status.
func ExchangeEnded(out *term.Output, w io.Writer, ex *captures.Exchange, code, message string) {
	Headers(out, w, "↓", "trailer ", ex.ResponseTrailers)
	fmt.Fprintf(w, "%s\n", out.Dim(fmt.Sprintf("%s · %s · %s", outcomeText(ex.Outcome), term.Clean(code), durationText(ex.Duration))))
	if message != "" {
		fmt.Fprintf(w, "status message: %s\n", term.Clean(message))
	}
}

// Headers prints one line for each header: the arrow of its direction, the prefix name (such as "trailer
// "), and the header.
func Headers(out *term.Output, w io.Writer, arrow, name string, lines captures.Headers) {
	for _, h := range lines {
		fmt.Fprintf(w, "%s %s\n", arrow, out.Dim(name+term.Clean(h.Name)+": "+term.Clean(h.Value)))
	}
}

// headerCount prints one line with the number of headers and the content type, after the arrow of their direction.
// name is what the headers are called, such as "trailer"; "" means "header".
func headerCount(out *term.Output, w io.Writer, arrow, name string, lines captures.Headers) {
	if len(lines) == 0 {
		return
	}
	if name == "" {
		name = "header"
	}
	text := app.Counted(len(lines), strings.TrimSpace(name))
	if media := lines.Get("content-type"); media != "" {
		text += ", content-type: " + term.Clean(media)
	}
	fmt.Fprintf(w, "%s %s\n", arrow, out.Dim(text))
}

// outcomeText returns an outcome in words.
func outcomeText(o captures.Outcome) string {
	if o == captures.InFlight {
		return "in flight"
	}
	return term.Clean(string(o))
}

// idList lists the first six numbers of exchanges, such as "#3 #7", followed by their count if there are
// more.
func idList(ids []int64) string {
	const most = 6
	var parts []string
	for i, id := range ids {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(ids)-most))
			break
		}
		parts = append(parts, strconv.FormatInt(id, 10))
	}
	if len(ids) == 1 {
		return "exchange " + parts[0]
	}
	return "exchanges " + strings.Join(parts, ", ")
}
