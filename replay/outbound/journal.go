package outbound

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// maxJournalLine bounds a line of a journal that is read back.
const maxJournalLine = 1 << 20

// A Journal is an append-only file that names every request that was sent, and
// what came of it, so that a claim can cite it: JSON Lines, readable by its
// owner alone. No secret is in it.
type Journal struct {
	mu   sync.Mutex
	f    *os.File
	n    int64
	rest map[string]time.Time // until when a host is left alone
}

// An Entry is a line of a journal: a request, or its answer.
type Entry struct {
	V int `json:"v"`
	// of the request, in this journal; its answer has the same
	N     int64     `json:"n"`
	Time  time.Time `json:"time"`
	Event string    `json:"event"` // "request" or "answer"
	// the request that this one is a piece of, as an append is
	Of         int64     `json:"of,omitempty"`
	Capture    int64     `json:"exchange,omitempty"` // the captured exchange
	Host       string    `json:"host,omitempty"`
	Method     string    `json:"method,omitempty"`
	URL        string    `json:"url,omitempty"`
	Effects    string    `json:"effects,omitempty"`
	Edits      []string  `json:"edits,omitempty"`
	Bytes      int       `json:"bytes,omitempty"`  // of the messages, as planned
	SHA256     string    `json:"sha256,omitempty"` // of them, one after the other
	Comparison string    `json:"verdict,omitempty"`
	Origin     string    `json:"origin,omitempty"`
	Status     int       `json:"status,omitempty"`
	Code       string    `json:"code,omitempty"`
	Message    string    `json:"message,omitempty"`
	Until      time.Time `json:"retry_after,omitzero"`
}

// OpenJournal opens a journal to append to it, and makes it if it is not there.
//
// Errors: of the file; a line that is no entry, unless it is the last one, which
// a killed process may have cut.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	j := &Journal{f: f, rest: map[string]time.Time{}}
	if err := j.read(f); err != nil {
		return nil, errors.Join(fmt.Errorf("replay: %s: %w", path, err), f.Close())
	}
	return j, nil
}

func (j *Journal) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	hosts := map[int64]string{}
	for line := 1; ; line++ {
		b, err := readLine(in)
		if err == io.EOF {
			if len(b) > 0 { // cut: the next entry begins a line of its own
				_, err = j.f.Write([]byte("\n"))
				return err
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		var e Entry
		if len(b) == 0 {
			continue
		}
		if json.Unmarshal(b, &e) != nil || e.V != 1 {
			if _, err := in.Peek(1); err == nil && line > 1 && !json.Valid(b) {
				continue // cut by an end before this one
			}
			return fmt.Errorf("line %d is no entry of a journal", line)
		}
		if j.n = max(j.n, e.N); e.Event == "request" {
			hosts[e.N] = e.Host
		}
		if host := hosts[e.N]; e.Event == "answer" && e.Until.After(j.rest[host]) {
			j.rest[host] = e.Until
		}
	}
}

// readLine reads a line without its end; with io.EOF, one that has none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		if out = append(out, part...); len(out) > maxJournalLine {
			return nil, fmt.Errorf("more than %d bytes", maxJournalLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil {
			out = out[:len(out)-1]
		}
		return out, err
	}
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }

// until is when a host may be asked again.
func (j *Journal) until(host string) time.Time {
	if j == nil {
		return time.Time{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rest[host]
}

// write appends an entry, and has it on the disk before it returns. The number
// is the entry's own, or a new one for 0.
func (j *Journal) write(e Entry) (int64, error) {
	if j == nil {
		return 0, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.N == 0 {
		j.n++
		e.N = j.n
	}
	if e.V, e.Time = 1, time.Now().UTC(); !e.Until.IsZero() && e.Until.After(j.rest[e.Host]) {
		j.rest[e.Host] = e.Until
	}
	b, err := json.Marshal(e)
	if err != nil {
		return e.N, err
	}
	if _, err := j.f.Write(append(b, '\n')); err != nil {
		return e.N, fmt.Errorf("replay: journal: %w", err)
	}
	return e.N, j.f.Sync()
}

// Note appends an entry to the journal, if there is one, and returns its number. Of the
// messages that a request carries, it notes the size and the hash.
func (p *Pace) Note(e Entry, messages ...[]byte) (int64, error) {
	if p == nil {
		return 0, nil
	}
	if e.Event == "request" {
		sum := sha256.New()
		for _, m := range messages {
			e.Bytes += len(m)
			sum.Write(m)
		}
		e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return p.Journal.write(e)
}
