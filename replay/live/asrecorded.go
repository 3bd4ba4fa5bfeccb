package live

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/replay/live/values"
)

// The limits of values that are listed because they were sent as recorded.
const (
	// maxAsRecorded is the number of values.
	maxAsRecorded = 5

	// leastAsRecorded is the length of one in bytes: shorter ones are on both sides by chance.
	leastAsRecorded = 3

	// longestAsRecorded is the length in bytes of the longest.
	longestAsRecorded = 64
)

// A RecordedValue is a value that a server issued first, in the capture, and that replay sent as recorded,
// because it does not look like an identifier.
type RecordedValue struct {
	// Value is the value.
	Value string `json:"value"`

	// Frame is the number of the client frame that contains the value.
	Frame int `json:"frame"`

	// Path is the path of the value in that frame.
	Path string `json:"path"`

	// Exchange is the number of the exchange whose answer had the value first.
	Exchange int64 `json:"issued_by"`

	// FromPath is the path of the value in that answer.
	FromPath string `json:"issued_path"`
}

// String describes the value on one line.
func (v *RecordedValue) String() string {
	return fmt.Sprintf("%q (client frame %d, field %s; recorded in the answer of exchange %d, field %s)", v.Value, v.Frame, v.Path, v.Exchange, v.FromPath)
}

// A plainSource is the place in a server's message that had a value first.
type plainSource struct {
	// exchange is the number of the exchange, and path the path in the message.
	exchange int64
	path     string
}

// AsRecorded returns values of the replayed exchange id that a server message issued first in the capture,
// and that were sent unchanged, although the live server has not sent them: whole values of one word. captured
// is the exchange as it was replayed, and answer what was sent and answered.
//
// Limits: the last 200 exchanges with the same host; five values, those with digits first.
func AsRecorded(ctx context.Context, src *store.Store, id int64, captured, answer *decode.Exchange) ([]RecordedValue, error) {
	earlier, err := earlierOnHost(ctx, src, id)
	if err != nil {
		return nil, err
	}
	issued, own := map[string]plainSource{}, map[string]bool{}
	for _, n := range earlier {
		ex, err := decode.Decode(ctx, src, n, decode.Options{})
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		addPlain(ex, n, issued, own, nil)
	}

	// A value that was replaced, or that the live server sends too, is right.
	is := newAnswerValues(answer)
	var list []RecordedValue
	addPlain(captured, id, issued, own, func(v RecordedValue) {
		if is.sent[frameValue{v.Frame, v.Path, v.Value}] && !is.received[v.Value] {
			list = append(list, v)
		}
	})
	slices.SortStableFunc(list, func(a, b RecordedValue) int { return digitsFirst(a.Value) - digitsFirst(b.Value) })
	return list[:min(len(list), maxAsRecorded)], nil
}

// digitsFirst returns the rank by which values are sorted: those with digits, which are more likely to be identifiers,
// come first.
func digitsFirst(s string) int {
	if strings.ContainsAny(s, "0123456789") {
		return 0
	}
	return 1
}

// addPlain adds the values of an exchange, in captured order: those of the server to issued, and those of the
// client to own. found is called for each value of the client that a server issued; it may be nil.
func addPlain(ex *decode.Exchange, id int64, issued map[string]plainSource, own map[string]bool, found func(RecordedValue)) {
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !IsMessage(f) {
			continue
		}
		for _, l := range values.Leaves(f, nil) {
			text, ok := plainValue(&l)
			if !ok || own[text] || len(issued)+len(own) >= maxTokens {
				continue
			}
			from, known := issued[text]
			switch {
			case f.Dir == captures.Down && !known:
				issued[text] = plainSource{id, l.Path}
			case f.Dir == captures.Up && known && found != nil:
				found(RecordedValue{text, f.Seq, l.Path, from.exchange, from.path})
			}
			if f.Dir == captures.Up {
				own[text] = true // each value is listed once
			}
		}
	}
}

// plainValue returns the text of a value that is one word; ok is false for others.
func plainValue(l *values.Leaf) (text string, ok bool) {
	if l.Object || l.IsMessage() || l.Value == "ntrue" || l.Value == "nfalse" || l.Value == "nnull" {
		return "", false
	}
	text = l.Text()
	ok = len(text) >= leastAsRecorded && len(text) <= longestAsRecorded && values.IsPrintable([]byte(text)) && !strings.ContainsAny(text, " \t\n")
	return text, ok
}

// A frameValue is a value at a path of a frame.
type frameValue struct {
	frame       int
	path, value string
}

// answerValues are the values of an exchange that was sent and answered.
type answerValues struct {
	// sent are the client's values by their place, and received the server's values.
	sent     map[frameValue]bool
	received map[string]bool
}

// newAnswerValues returns the values of an exchange.
func newAnswerValues(ex *decode.Exchange) answerValues {
	out := answerValues{map[frameValue]bool{}, map[string]bool{}}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !IsMessage(f) {
			continue
		}
		for _, l := range values.Leaves(f, nil) {
			text, ok := plainValue(&l)
			switch {
			case !ok:
			case f.Dir == captures.Up:
				out.sent[frameValue{f.Seq, l.Path, text}] = true
			default:
				out.received[text] = true
			}
		}
	}
	return out
}

// earlierOnHost returns the numbers of the exchanges before exchange id with the same host, at most
// maxEarlier, the last ones.
func earlierOnHost(ctx context.Context, src *store.Store, id int64) (list []int64, err error) {
	last, err := src.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	host, err := url.Parse(last.URL)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	for row, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if u, err := url.Parse(row.URL); err == nil && row.ID < id && strings.EqualFold(u.Host, host.Host) {
			list = append(list, row.ID)
		}
	}
	return list[max(0, len(list)-maxEarlier):], nil
}
