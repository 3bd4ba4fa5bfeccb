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

// A journal is an append-only record of every request and its answer, JSON
// Lines. An answer that it holds is not asked for again, so that a probe that
// was killed goes on where it was.
type journal struct {
	w       io.Writer // nil: none is kept
	answers map[string]*Answer
	target  string
	headers []string
}

// An entry is a line of a journal: a request before it is sent, or its answer.
type entry struct {
	V       int       `json:"v"`
	Event   string    `json:"event"` // "ask" or "answer"
	Request int       `json:"request"`
	Key     string    `json:"key"`
	Time    time.Time `json:"time"`
	What    string    `json:"what,omitempty"`
	URL     string    `json:"url,omitempty"`
	Codec   string    `json:"codec,omitempty"`
	Proto   string    `json:"protocol,omitempty"`
	Headers []string  `json:"headers,omitempty"` // secrets are left out
	Len     int       `json:"len,omitempty"`
	// of at most maxJournalBody bytes; the key is made from it
	Body   []byte  `json:"body,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

const (
	maxJournalBody = 4 << 10
	maxJournalLine = 4 << 20
)

// openJournal reads what a journal holds, and goes on behind its last whole line.
//
// Errors: a line that is no entry, but for the last, which a kill may have cut.
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

// load reads entries and returns the offset behind the last whole one.
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
			return end, fmt.Errorf("line %d is no entry: %w", n, err)
		}
		if e.Event == "answer" && e.Answer != nil {
			j.answers[e.Key] = e.Answer
		}
		end += int64(len(line))
	}
}

// readLine returns a whole line; one without its end is io.EOF.
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
			return nil, fmt.Errorf("it has more than %d bytes", maxJournalLine)
		}
	}
}

// key names a request by what it asks of whom. Headers may have fresh values
// each time.
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
