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

// maxJournalLine limits the length of a line in a journal, in bytes, when it is read.
const maxJournalLine = 1 << 20

// A Journal is an append-only file, in the format JSON Lines, that logs every request that was sent,
// and its outcome. Only its owner can read it. It contains no secrets.
type Journal struct {
	// mu guards the fields below.
	mu sync.Mutex

	// f is the open file.
	f *os.File

	// n is the number of the last request.
	n int64
	// rest maps hosts to the time before which they must not be contacted again.
	rest map[string]time.Time
}

// An Entry is a line of a journal: a request that was sent, or its answer, i.e. its outcome.
type Entry struct {
	// V is the version of the journal's format, always 1.
	V int `json:"v"`
	// N is the number of the request in this journal, from 1. An answer has the number of its request.
	N int64 `json:"n"`
	// Time is the time at which the entry was written.
	Time time.Time `json:"time"`
	// Event is the kind of entry, "request" or "answer".
	Event string `json:"event"`
	// Of is the number of the request of which this one is a part, for example as one of several calls
	// that carry a stream; 0 for none.
	Of int64 `json:"of,omitempty"`
	// Capture is the number of the captured exchange that is replayed; 0 if none is.
	Capture int64 `json:"exchange,omitempty"`
	// Host is the host and port of the server.
	Host string `json:"host,omitempty"`
	// Method is the HTTP method of the request.
	Method string `json:"method,omitempty"`
	// URL is the URL of the request without secrets.
	URL string `json:"url,omitempty"`
	// Effects describes whether the request may change data on the server.
	Effects string `json:"effects,omitempty"`
	// Edits are the edits applied to the captured request.
	Edits []string `json:"edits,omitempty"`
	// Bytes is the total size of the messages as planned.
	Bytes int `json:"bytes,omitempty"`
	// SHA256 is the hash of all messages of the request, concatenated.
	SHA256 string `json:"sha256,omitempty"`
	// Comparison is the result of comparing the response with the captured one, such as "same".
	Comparison string `json:"verdict,omitempty"`
	// Origin is "server" if the server responded, or "local" if the outcome was determined on this
	// machine.
	Origin string `json:"origin,omitempty"`
	// Status is the HTTP status of the response.
	Status int `json:"status,omitempty"`
	// Code is the RPC error code of the response.
	Code string `json:"code,omitempty"`
	// Message is the error message of the response.
	Message string `json:"message,omitempty"`
	// Until is the time before which the server wants no further request, from Retry-After; zero for
	// none.
	Until time.Time `json:"retry_after,omitzero"`
}

// OpenJournal opens a journal for appending, and creates it if it does not exist.
//
// Errors: those of the file; a malformed line, unless it is the last one, which a killed process
// may have truncated.
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

// read reads the existing entries of the journal, to continue its numbers and the waiting times of
// hosts.
func (j *Journal) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	hosts := map[int64]string{}
	for line := 1; ; line++ {
		b, err := readLine(in)
		if err == io.EOF {
			// truncated: the next entry starts on a new line
			if len(b) > 0 {
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
				// truncated by an earlier kill
				continue
			}
			return fmt.Errorf("line %d is not a journal entry", line)
		}

		// A Retry-After of an earlier run still applies.
		if j.n = max(j.n, e.N); e.Event == "request" {
			hosts[e.N] = e.Host
		}
		if host := hosts[e.N]; e.Event == "answer" && e.Until.After(j.rest[host]) {
			j.rest[host] = e.Until
		}
	}
}

// readLine returns the next line without its line feed. If the last line has no line feed, it is
// returned with io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		if out = append(out, part...); len(out) > maxJournalLine {
			return nil, fmt.Errorf("the line has more than %d bytes", maxJournalLine)
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

// Close closes the journal file.
func (j *Journal) Close() error { return j.f.Close() }

// until returns the time before which a host must not be contacted; zero for none.
func (j *Journal) until(host string) time.Time {
	if j == nil {
		return time.Time{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rest[host]
}

// write appends an entry, and syncs it to disk before returning. It returns the entry's number; if that
// is 0 in e, a new one is assigned.
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
		return e.N, fmt.Errorf("replay: the journal cannot be written: %w", err)
	}
	return e.N, j.f.Sync()
}

// Note appends an entry to the journal, if there is one, and returns the entry's number. For a request,
// it adds the size and the hash of its messages. p may be nil.
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
