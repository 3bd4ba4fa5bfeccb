package redact

import (
	"testing"

	"unwire/captures"
)

// The other direction does not wait for ever for what may be a secret.
func TestCleanedIsBounded(t *testing.T) {
	p := NewExchangeFilter(New(Options{}), &captures.Exchange{}, [2][]Edit{})
	p.Write(captures.Chunk{Dir: captures.Up, Data: []byte("eyJhbGciOi")}, 1<<20, false) // a token may begin
	most := int64(0)
	large := make([]byte, 1<<20)
	for range 64 {
		p.Write(captures.Chunk{Dir: captures.Down, Data: large}, 1<<20, false)
		most = max(most, p.bytes)
	}
	if most > maxAhead+2<<20 {
		t.Errorf("%d bytes were held", most)
	}
}
