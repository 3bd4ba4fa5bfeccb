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

// A journal is an append-only file, in JSON Lines, of all requests and responses of a probe. A killed
// probe resumes from it without repeating requests.
type journal struct {
	// w is the file; nil if no journal is kept.
	w       io.Writer
	answers map[string]*Answer
	target  string
	headers []string
}

// An entry is a line of a journal: a request, written before it is sent, or its answer.
type entry struct {
	V int `json:"v"`
	// Event is the kind of entry, "ask" or "answer".
	Event   string    `json:"event"`
	Request int       `json:"request"`
	Key     string    `json:"key"`
	Time    time.Time `json:"time"`
	What    string    `json:"what,omitempty"`
	URL     string    `json:"url,omitempty"`
	Codec   string    `json:"codec,omitempty"`
	Proto   string    `json:"protocol,omitempty"`
	// Headers are the request's headers without secrets.
	Headers []string `json:"headers,omitempty"`
	Len     int      `json:"len,omitempty"`
	// Body has at most maxJournalBody bytes. The key is derived from it.
	Body   []byte  `json:"body,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

const (
	maxJournalBody = 4 << 10
	maxJournalLine = 4 << 20
)

// openJournal reads an existing journal and continues after its last complete line.
//
// Errors: a line that is not an entry, except for the last one, which a kill may have truncated.
func openJournal(o *Options, headers []string) (*journal, error) {
	j := &journal{answers: map[string]*Answer{}, target: o.To.Redacted() + o.Method, headers: headers}
	if o.Journal == nil {
		return j, nil
	}
	if err := j.load(o.Journal); err != nil {
		return j, fmt.Errorf("probe: journal: %w", err)
	}
	j.w = o.Journal
	return j, nil
}

// load reads the answers of a journal, which can be continued then.
func (j *journal) load(f io.ReadSeeker) error {
	return journalfile.Continue(f, maxJournalLine, func(e entry) {
		if e.Event == "answer" && e.Answer != nil {
			j.answers[e.Key] = e.Answer
		}
	})
}

// key identifies a request by its target and content. Headers are left out, because they may have
// fresh values each time.
func (j *journal) key(p Protocol, codec string, body []byte, try int) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", j.target, p, codec, try)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (j *journal) recorded(key string) *Answer {
	a := j.answers[key]
	if a == nil || a.Fail != "" {
		return nil
	}
	again := *a
	return &again
}

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

func (j *journal) logAnswer(key string, request int, a *Answer) error {
	return j.write(&entry{V: 1, Event: "answer", Request: request, Key: key, Time: time.Now().UTC(), Answer: a})
}

func (j *journal) write(e *entry) error {
	if j.w == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("probe: journal: %w", err)
	}
	if _, err := j.w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("probe: journal: %w", err)
	}
	return nil
}
