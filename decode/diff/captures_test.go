package diff

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"unwire/captures"
	"unwire/captures/profile"
)

// A countingCapture has so many exchanges without bodies, and counts what is read from it.
type countingCapture struct {
	exchanges int
	// read, chunks and choices are the numbers of calls of Exchange, Chunks and Readings.
	read, chunks, choices int
}

func (c *countingCapture) Profile() *profile.Profile { return nil }

func (c *countingCapture) exchange(id int64) *captures.Exchange {
	return &captures.Exchange{ID: id, Method: "GET", URL: fmt.Sprintf("http://a/%d", id), Status: 200, Outcome: captures.Complete}
}

func (c *countingCapture) Exchange(_ context.Context, id int64) (*captures.Exchange, error) {
	c.read++
	return c.exchange(id), nil
}

func (c *countingCapture) Exchanges(context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for id := range c.exchanges {
			if !yield(c.exchange(int64(id+1)), nil) {
				return
			}
		}
	}
}

func (c *countingCapture) Chunks(context.Context, int64, int64) iter.Seq2[captures.Chunk, error] {
	c.chunks++
	return func(func(captures.Chunk, error) bool) {}
}

func (c *countingCapture) Readings(context.Context, string) ([]captures.Reading, error) {
	c.choices++
	return nil, nil
}

// TestCapturesReadsLittle compares two captures with small exchanges, and counts what is read: the chunks of each exchange
// once.
func TestCapturesReadsLittle(t *testing.T) {
	const n = 50
	a, b := &countingCapture{exchanges: n}, &countingCapture{exchanges: n}
	if list, err := Captures(t.Context(), a, b, Options{}); err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	for _, c := range []*countingCapture{a, b} {
		if c.read > 0 || c.chunks > n || c.choices > 2 {
			t.Errorf("%d exchanges, %d lists of chunks and %d lists of choices were read, want at most 0, %d and 2", c.read, c.chunks, c.choices, n)
		}
	}
}
