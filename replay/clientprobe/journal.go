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

// A Journal stores the outcomes of runs as JSON Lines, so that an interrupted probe can be continued. A nil Journal
// stores nothing.
type Journal struct {
	// w is the file to which outcomes are appended.
	w io.Writer
	// capture identifies the capture; it is part of each key.
	capture string
	// outcomes are the outcomes so far by key.
	outcomes map[string]*Evidence
}

// An entry is a line of a journal.
type entry struct {
	// V is the version of the format, always 1.
	V int `json:"v"`
	// Event is "answer" for the outcome of a run; other entries are ignored.
	Event string `json:"event"`
	// Key identifies the run: a hash of the capture, the client's command, and the edit.
	Key string `json:"key"`
	// Time is when the run ended, in UTC.
	Time time.Time `json:"time"`
	// Method is the method of the edited field.
	Method string `json:"method,omitempty"`
	// Path is the path of the edited field.
	Path string `json:"path,omitempty"`
	// Answer is the outcome of the run.
	Answer *Evidence `json:"answer,omitempty"`
}

// maxLine is the maximum length of a line of a journal in bytes.
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
		return nil, fmt.Errorf("clientprobe: the journal cannot be read: %w", err)
	}
	return j, nil
}

// key returns a hash that identifies a run by the capture, the client's command, and the edit.
func (j *Journal) key(p *Probe, c *change) string {
	if j == nil {
		return ""
	}
	// Texts always encode.
	b, _ := json.Marshal([]any{j.capture, p.Argv, c.Op, c.Target.Method, c.Target.Path})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// recorded returns the outcome of an earlier run with a key, or nil if there is none.
func (j *Journal) recorded(key string) *Evidence {
	if j == nil {
		return nil
	}
	return j.outcomes[key]
}

// note appends the outcome of the run with a key and the edit c.
func (j *Journal) note(key string, c *change, e *Evidence) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(&entry{V: 1, Event: "answer", Key: key, Time: time.Now().UTC(), Method: c.Target.Method, Path: c.Target.Path, Answer: e})
	if err == nil {
		_, err = j.w.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("clientprobe: the journal cannot be written: %w", err)
	}
	return nil
}
