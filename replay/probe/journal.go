package probe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	journalfile "unwire/replay/journal"
)

// A journal is an append-only file, in the format JSON Lines, of all requests and responses of a probe.
// A probe that was killed continues from it without repeating requests.
type journal struct {
	// w is the file; nil if there is none.
	w io.Writer

	// answers are the recorded responses, by the key of the request.
	answers map[string]*Answer

	// target is the URL of the method.
	target string

	// headers are the request headers without secrets.
	headers []string
}

// An entry is a line of a journal: a request, written before it is sent, or its response ("answer").
type entry struct {
	// V is the version of the journal's format.
	V int `json:"v"`
	// Event is the kind of entry, "ask" or "answer".
	Event string `json:"event"`

	// Request is the number of the request, from 1.
	Request int `json:"request"`

	// Key is a hash that identifies the request by target and content, without headers. Repetitions of the same request
	// have different keys.
	Key string `json:"key"`

	// Time is the time at which the entry was written.
	Time time.Time `json:"time"`

	// What describes the message.
	What string `json:"what,omitempty"`

	// URL is the URL of the request.
	URL string `json:"url,omitempty"`

	// Codec is the encoding of the message, "proto" or "json".
	Codec string `json:"codec,omitempty"`

	// Proto is the RPC protocol.
	Proto string `json:"protocol,omitempty"`
	// Headers are the request's headers without secrets.
	Headers []string `json:"headers,omitempty"`

	// Len is the size of the request body in bytes.
	Len int `json:"len,omitempty"`
	// Body is the beginning of the request body, at most maxJournalBody bytes.
	Body []byte `json:"body,omitempty"`

	// Answer is the response; nil in the entry of a request.
	Answer *Answer `json:"answer,omitempty"`
}

const (
	maxJournalBody = 4 << 10
	maxJournalLine = 4 << 20
)

// openJournal reads the existing journal and prepares to continue after its last complete line.
//
// Errors: a line that is not an entry, except for the last one, which a kill may have truncated.
func openJournal(o *Options, headers []string) (*journal, error) {
	j := &journal{answers: map[string]*Answer{}, target: o.To.Redacted() + o.Method, headers: headers}
	if o.Journal == nil {
		return j, nil
	}
	if err := j.load(o.Journal); err != nil {
		return j, fmt.Errorf("probe: the journal cannot be read: %w", err)
	}
	j.w = o.Journal
	return j, nil
}

// load reads the answers of an existing journal, and seeks to the end of its last complete line, so that further
// entries can be appended.
func (j *journal) load(f io.ReadSeeker) error {
	return journalfile.Continue(f, maxJournalLine, func(e entry) {
		if e.Event == "answer" && e.Answer != nil {
			j.answers[e.Key] = e.Answer
		}
	})
}

// key returns a hash that identifies a request by target and content; try counts repetitions. Headers
// are left out, because they may have fresh values each time.
func (j *journal) key(p Protocol, codec string, body []byte, try int) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", j.target, p, codec, try)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// recorded returns the recorded response to the request with this key; nil if there is none.
func (j *journal) recorded(key string) *Answer {
	a := j.answers[key]
	if a == nil || a.Fail != "" {
		return nil
	}
	again := *a
	return &again
}

// logRequest appends the entry of a request that is about to be sent.
func (j *journal) logRequest(key string, request int, what string, c *Client, codec string, body []byte) error {
	e := entry{
		V: 1, Event: "ask", Request: request, Key: key, Time: time.Now().UTC(), What: what, URL: c.url.Redacted(),
		Codec: codec, Proto: string(c.protocol), Headers: j.headers, Len: len(body),
	}
	if len(body) <= maxJournalBody {
		e.Body = body
	}
	return j.write(&e)
}

// logAnswer appends the entry of a response.
func (j *journal) logAnswer(key string, request int, a *Answer) error {
	return j.write(&entry{V: 1, Event: "answer", Request: request, Key: key, Time: time.Now().UTC(), Answer: a})
}

// write appends an entry; without a file, it does nothing.
func (j *journal) write(e *entry) error {
	if j.w == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("probe: the journal cannot be written: %w", err)
	}
	if _, err := j.w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("probe: the journal cannot be written: %w", err)
	}
	return nil
}
