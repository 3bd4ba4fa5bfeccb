package clientprobe

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Journal is an append-only record of the outcomes of runs, as JSON Lines, so that a probe that was ended can go
// on. Its lines have the form of those of package probe. Its methods may be called on nil, which keeps nothing.
type Journal struct {
	w        io.Writer
	capture  string
	outcomes map[string]*Evidence
}

// An entry is a line of a journal.
type entry struct {
	V      int       `json:"v"`
	Event  string    `json:"event"`
	Key    string    `json:"key"`
	Time   time.Time `json:"time"`
	Method string    `json:"method,omitempty"`
	Path   string    `json:"path,omitempty"`
	Answer *Evidence `json:"answer,omitempty"`
}

// maxLine is the length of a line of a journal in bytes.
const maxLine = 1 << 20

// NewJournal continues a journal: the outcomes that f has are not asked again. capture identifies the capture;
// outcomes of another one do not count.
//
// Errors: a line that is not an entry, except for the last one, which a kill may have truncated.
func NewJournal(f io.ReadWriteSeeker, capture string) (*Journal, error) {
	j := &Journal{w: f, capture: capture, outcomes: map[string]*Evidence{}}
	end, err := j.load(f)
	if err != nil {
		return nil, fmt.Errorf("clientprobe: journal: %w", err)
	}
	if _, err := f.Seek(end, io.SeekStart); err != nil {
		return nil, fmt.Errorf("clientprobe: journal: %w", err)
	}
	if t, ok := f.(interface{ Truncate(int64) error }); ok {
		if err := t.Truncate(end); err != nil {
			return nil, fmt.Errorf("clientprobe: journal: %w", err)
		}
	}
	return j, nil
}

// load reads entries and returns the offset after the last complete one.
func (j *Journal) load(r io.Reader) (end int64, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF):
			return end, nil
		case err != nil:
			return end, fmt.Errorf("line %d: %w", n, err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return end, fmt.Errorf("line %d is not a journal entry: %w", n, err)
		}
		if e.Event == "answer" && e.Answer != nil {
			j.outcomes[e.Key] = e.Answer
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
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxLine:
			return nil, fmt.Errorf("the line or message has more than %d bytes", maxLine)
		}
	}
}

// key identifies a run: the capture, the command and the change.
func (j *Journal) key(p *Probe, c *change) string {
	if j == nil {
		return ""
	}
	// Texts always encode.
	b, _ := json.Marshal([]any{j.capture, p.Argv, c.Op, c.Target.Method, c.Target.Path})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// recorded returns the outcome of an earlier run, or nil.
func (j *Journal) recorded(key string) *Evidence {
	if j == nil {
		return nil
	}
	return j.outcomes[key]
}

// note appends an outcome.
func (j *Journal) note(key string, c *change, e *Evidence) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(&entry{V: 1, Event: "answer", Key: key, Time: time.Now().UTC(), Method: c.Target.Method, Path: c.Target.Path, Answer: e})
	if err == nil {
		_, err = j.w.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("clientprobe: journal: %w", err)
	}
	return nil
}
