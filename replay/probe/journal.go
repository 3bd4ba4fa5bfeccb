package probe

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
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
	end, err := j.load(o.Journal)
	if err != nil {
		return j, fmt.Errorf("probe: journal: %w", err)
	}
	if _, err := o.Journal.Seek(end, io.SeekStart); err != nil {
		return j, fmt.Errorf("probe: journal: %w", err)
	}
	if t, ok := o.Journal.(interface{ Truncate(int64) error }); ok {
		if err := t.Truncate(end); err != nil {
			return j, fmt.Errorf("probe: journal: %w", err)
		}
	}
	j.w = o.Journal
	return j, nil
}

// load reads entries and returns the offset after the last complete one.
func (j *journal) load(r io.Reader) (end int64, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(lines)
		if err == io.EOF {
			return end, nil
		}
		if err != nil {
			return end, fmt.Errorf("line %d: %w", n, err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return end, fmt.Errorf("line %d is not a journal entry: %w", n, err)
		}
		if e.Event == "answer" && e.Answer != nil {
			j.answers[e.Key] = e.Answer
		}
		end += int64(len(line))
	}
}

// readLine returns a complete line; io.EOF for one that is not terminated.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > maxJournalLine:
			return nil, fmt.Errorf("the line or message has more than %d bytes", maxJournalLine)
		}
	}
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
