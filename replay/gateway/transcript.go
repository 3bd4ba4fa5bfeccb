package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"
	"unicode"

	"unwire/replay/agent/turn"
)

// A sum is a SHA-256 hash, used as the fingerprint of a value.
type sum = [sha256.Size]byte

// A transcript is a request's list of messages in a form in which two requests can be compared.
//
// Clients do not send back exactly what they received: they drop the reasoning, trim texts, and order
// the calls and results of one answer differently. Therefore all messages of the assistant and of tools
// between two messages of the user form one run: its text without white space, its calls in order, and
// its results by call id.
type transcript struct {
	// model and tools are fingerprints of the request's model and tools.
	model, tools sum

	// entries are the messages and runs in order.
	entries []entry
	// results are the fingerprints of the tool results, by call id.
	results map[string]sum
	// given are the tool results in the request, by call id.
	given map[string]turn.Result
}

// An entry is one element of a transcript: a message of the user or the system, or a run.
type entry struct {
	// message is the fingerprint of a message.
	message sum

	// run is the run; nil if the entry is a message.
	run *run
}

// A run is the part of a conversation by the assistant and the tools between two user messages.
type run struct {
	// text is the concatenated text of the assistant without white space.
	text strings.Builder

	// calls are the tool calls in order.
	calls []callPrint
	// notes are texts that came together with tool results, and system messages between them.
	notes []note
}

// A note is a text in a run that is not from the assistant; see run.notes.
type note struct {
	// print is the fingerprint of the parts.
	print sum

	// parts are the texts and images of the note.
	parts []turn.Part
}

// A callPrint is a tool call in comparable form.
type callPrint struct {
	// id is the id of the call as the client sees it.
	id string

	// print is the fingerprint of name and arguments.
	print sum
}

// read converts the messages of a request to a transcript.
func read(r *turn.Request) *transcript {
	tr := &transcript{
		model: sha256.Sum256([]byte(r.Model)), tools: printTools(r.Tools),
		results: map[string]sum{}, given: map[string]turn.Result{},
	}
	for _, m := range r.Messages {
		switch m.Role {
		case turn.Assistant:
			tr.lastRun().addAssistant(m.Parts)
		case turn.ToolRole:
			tr.addResults(m.Parts)
		case turn.System:
			if run := tr.openRun(); run != nil {
				run.addNote(m.Parts)
				continue
			}
			tr.entries = append(tr.entries, entry{message: printMessage(m)})
		default:
			tr.entries = append(tr.entries, entry{message: printMessage(m)})
		}
	}
	return tr
}

// openRun returns the run at the end of the transcript; nil if it ends with a message.
func (tr *transcript) openRun() *run {
	if len(tr.entries) == 0 {
		return nil
	}
	return tr.entries[len(tr.entries)-1].run
}

// lastRun returns the run at the end of the transcript; if it ends with a message, a new run is
// appended.
func (tr *transcript) lastRun() *run {
	if r := tr.openRun(); r != nil {
		return r
	}
	r := &run{}
	tr.entries = append(tr.entries, entry{run: r})
	return r
}

// addAssistant adds text and tool calls of an assistant's message.
func (r *run) addAssistant(parts []turn.Part) {
	for _, p := range parts {
		switch {
		case p.Call != nil:
			r.calls = append(r.calls, callPrint{p.Call.ID, printCall(p.Call)})
		case p.Thinking != "", p.Image != nil, p.Result != nil:
		default:
			r.addText(p.Text)
		}
	}
}

// addText adds text of the assistant, without white space.
func (r *run) addText(text string) {
	for _, c := range text {
		if !unicode.IsSpace(c) {
			r.text.WriteRune(c)
		}
	}
}

// addNote adds the parts as a note, unless there are none.
func (r *run) addNote(parts []turn.Part) {
	if len(parts) > 0 {
		r.notes = append(r.notes, note{printParts(parts), parts})
	}
}

// addResults adds the tool results in a message's parts; if a call has several results, the first one
// counts. The other parts of the message become a note.
func (tr *transcript) addResults(parts []turn.Part) {
	run := tr.lastRun()
	var rest []turn.Part
	for _, p := range parts {
		if p.Result == nil {
			rest = append(rest, p)
			continue
		}
		if _, ok := tr.results[p.Result.CallID]; !ok {
			tr.results[p.Result.CallID] = printResult(p.Result)
			tr.given[p.Result.CallID] = *p.Result
		}
	}
	run.addNote(rest)
}

// hasResults reports whether the transcript has results with these fingerprints, which are by call id.
// For a call that the session reported to the agent as interrupted, it must have no result.
func (tr *transcript) hasResults(prints map[string]sum) bool {
	for id, print := range prints {
		given, ok := tr.results[id]
		if !ok {
			rejected := interrupted(id)
			given = printResult(&rejected)
		}
		if given != print {
			return false
		}
	}
	return true
}

// sameSetting reports whether two transcripts are of requests with the same model and tools.
func (tr *transcript) sameSetting(o *transcript) bool {
	return tr.model == o.model && tr.tools == o.tools
}

// lastSession returns the id of the session to which the last tool call in the transcript belongs;
// false if there is no call, or its id is not one of the gateway's.
func (tr *transcript) lastSession() (string, bool) {
	for _, e := range slices.Backward(tr.entries) {
		if e.run != nil && len(e.run.calls) > 0 {
			id, _, ok := sessionOf(e.run.calls[len(e.run.calls)-1].id)
			return id, ok
		}
	}
	return "", false
}

// sameText reports whether the texts of two runs are equal. A text that is empty equals any other,
// because clients may omit it.
func sameText(a, b string) bool { return a == b || a == "" || b == "" }

// sameRun reports whether two runs have the same text, calls and notes.
func sameRun(a, b *run) bool {
	return sameText(a.text.String(), b.text.String()) && slices.Equal(a.calls, b.calls) &&
		sameNotes(a.notes, b.notes)
}

// sameNotes reports whether two lists of notes are equal.
func sameNotes(a, b []note) bool {
	return slices.EqualFunc(a, b, func(x, y note) bool { return x.print == y.print })
}

// sameEntries reports whether two lists of entries are equal.
func sameEntries(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(x, y entry) bool {
		if x.run == nil || y.run == nil {
			return x.run == y.run && x.message == y.message
		}
		return sameRun(x.run, y.run)
	})
}

// A printer computes the fingerprint of a list of values. Each value is preceded by its length, so that
// different lists never hash the same bytes.
type printer struct {
	// Hash has the values added so far.
	hash.Hash
}

// newPrinter returns a printer without values.
func newPrinter() printer { return printer{sha256.New()} }

// add appends values to the list.
func (p printer) add(values ...string) {
	for _, v := range values {
		fmt.Fprintf(p, "%d:%s", len(v), v)
	}
}

// sum returns the fingerprint of the values added so far.
func (p printer) sum() sum { return sum(p.Sum(nil)) }

// printMessage returns the fingerprint of a message: of its role, texts and images.
func printMessage(m turn.Message) sum {
	p := newPrinter()
	parts := printParts(m.Parts)
	p.add(string(m.Role), string(parts[:]))
	return p.sum()
}

// printParts returns the fingerprint of texts and images in a message's parts. Adjacent texts are
// joined first, because clients split texts differently.
func printParts(parts []turn.Part) sum {
	p := newPrinter()
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			p.add("text", text.String())
			text.Reset()
		}
	}
	for _, part := range parts {
		switch {
		case part.Image != nil:
			flush()
			p.add("image", part.Image.MIME, string(part.Image.Data))
		case part.Call != nil, part.Result != nil, part.Thinking != "":
		default:
			text.WriteString(part.Text)
		}
	}
	flush()
	return p.sum()
}

// printResult returns the fingerprint of a tool result.
func printResult(r *turn.Result) sum {
	p := newPrinter()
	parts := printParts(r.Parts)
	p.add(fmt.Sprint(r.IsError, r.Rejected), string(parts[:]))
	return p.sum()
}

// printCall returns the fingerprint of a tool call, i.e. of name and arguments.
func printCall(c *turn.Call) sum {
	p := newPrinter()
	p.add(c.Name, canonicalJSON(c.Arguments))
	return p.sum()
}

// canonicalJSON returns JSON with sorted members, and with numbers in the form in which a JavaScript
// client writes them. Text that is not JSON is returned unchanged.
func canonicalJSON(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// printTools returns the fingerprint of a list of tools, which does not depend on their order.
func printTools(tools []turn.Tool) sum {
	prints := make([]string, len(tools))
	for i, tool := range tools {
		p := newPrinter()
		p.add(tool.Name, tool.Description, canonicalJSON(tool.Schema))
		one := p.sum()
		prints[i] = string(one[:])
	}
	slices.Sort(prints)
	p := newPrinter()
	p.add(prints...)
	return p.sum()
}

// interrupted returns the result that is sent to the agent for a tool call for which the client sent
// none.
func interrupted(callID string) turn.Result {
	return turn.Result{CallID: callID, IsError: true, Rejected: true, Parts: []turn.Part{{Text: "The call was interrupted: the client returned no result."}}}
}

// repair returns a request's messages in the form for the history of a new stream: each call has
// exactly one result, and no result is longer than maxResult bytes. A call without a result, which an
// interrupted answer leaves in the client's history, gets one that reports the interruption.
func repair(messages []turn.Message, maxResult int) []turn.Message {
	answered := map[string]bool{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				answered[p.Result.CallID] = true
			}
		}
	}

	seen := map[string]bool{}
	out := make([]turn.Message, 0, len(messages))
	for _, m := range messages {
		var missing []turn.Part
		parts := make([]turn.Part, 0, len(m.Parts))
		for _, p := range m.Parts {
			// Duplicates are dropped: the first result is the one that the model saw.
			if p.Result != nil {
				if seen[p.Result.CallID] {
					continue
				}
				seen[p.Result.CallID] = true
				cut := cutResult(*p.Result, maxResult)
				p.Result = &cut
			}
			// A call without a result gets one that reports the interruption.
			if p.Call != nil && !answered[p.Call.ID] {
				r := interrupted(p.Call.ID)
				missing = append(missing, turn.Part{Result: &r})
			}
			parts = append(parts, p)
		}
		if len(parts) > 0 || len(m.Parts) == 0 {
			out = append(out, turn.Message{Role: m.Role, Parts: parts})
		}
		if missing != nil {
			out = append(out, turn.Message{Role: turn.ToolRole, Parts: missing})
		}
	}
	return out
}

// cutResult truncates the texts of a tool result to limit bytes in total, with a notice for the model.
func cutResult(r turn.Result, limit int) turn.Result {
	total := 0
	for _, p := range r.Parts {
		total += len(p.Text)
	}
	if total <= limit {
		return r
	}
	left := limit
	parts := make([]turn.Part, 0, len(r.Parts)+1)
	for _, p := range r.Parts {
		if p.Image == nil {
			keep := strings.ToValidUTF8(p.Text[:min(len(p.Text), left)], "")
			left -= min(len(p.Text), left)
			if p.Text = keep; keep == "" {
				continue
			}
		}
		parts = append(parts, p)
	}
	notice := fmt.Sprintf("\n[The result was cut: only the first %d of its %d bytes are here.]", limit, total)
	r.Parts = append(parts, turn.Part{Text: notice})
	return r
}
