package clientprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"unwire/replay/journal"
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
	err := journal.Continue(f, maxLine, func(e entry) {
		if e.Event == "answer" && e.Answer != nil {
			j.outcomes[e.Key] = e.Answer
		}
	})
	if err != nil {
		return nil, fmt.Errorf("clientprobe: journal: %w", err)
	}
	return j, nil
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
