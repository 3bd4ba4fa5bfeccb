package standin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// ids makes the identifiers of one call. They follow from the server's seed and
// from what the client sent (its request id and first message), so that a
// repeated call gets the same ones and a new call gets new ones, as live.
type ids struct {
	key [sha256.Size]byte
	n   uint64
}

func newIDs(seed uint64, procedure, requestID string, first []byte) *ids {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s\n", seed, procedure, requestID)
	h.Write(first)
	d := &ids{}
	h.Sum(d.key[:0])
	return d
}

// refresh makes ids that no other call gets.
func (d *ids) refresh() { _, _ = rand.Read(d.key[:]) } // never fails

func (d *ids) next() [sha256.Size]byte {
	d.n++
	return sha256.Sum256(binary.BigEndian.AppendUint64(d.key[:], d.n))
}

// uuid returns a version 4 UUID.
func (d *ids) uuid() string {
	b := d.next()
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// call returns a tool call id in the form that model providers give them.
func (d *ids) call() string {
	b := d.next()
	return "toolu_" + hex.EncodeToString(b[:12])
}

// number returns a number in [1, limit].
func (d *ids) number(limit uint32) uint32 {
	b := d.next()
	return 1 + binary.BigEndian.Uint32(b[:4])%limit
}
