// Package ids generates the identifiers of the stand-in.
package ids

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// An IDs generates the identifiers of one call. They are derived from the server's seed and the
// client's request id and first message, so that a repeated call gets the same ones and a new call gets
// new ones.
type IDs struct {
	// Long makes the ids of tool calls 85 bytes long and include a line feed.
	Long bool

	// key is the hash from which ids are derived.
	key [sha256.Size]byte

	// n is the number of ids generated so far.
	n uint64
}

// New returns the generator of ids for a call. procedure is the URL path of the method, and first the
// client's first message.
func New(seed uint64, procedure, requestID string, first []byte) *IDs {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s\n", seed, procedure, requestID)
	h.Write(first)
	d := &IDs{}
	h.Sum(d.key[:0])
	return d
}

// Refresh makes all further ids random, so that a repeated call gets different ones.
func (d *IDs) Refresh() { _, _ = rand.Read(d.key[:]) } // never fails

// next returns the next 32 derived bytes.
func (d *IDs) next() [sha256.Size]byte {
	d.n++
	return sha256.Sum256(binary.BigEndian.AppendUint64(d.key[:], d.n))
}

// UUID returns a generated UUID (version 4).
func (d *IDs) UUID() string {
	b := d.next()
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// Call returns the id of a tool call in the format that model providers use.
func (d *IDs) Call() string {
	if d.Long {
		return "toolu_" + d.UUID() + "\ncall_" + d.UUID() + "_"
	}
	b := d.next()
	return "toolu_" + hex.EncodeToString(b[:12])
}

// Number returns a generated number from 1 to limit.
func (d *IDs) Number(limit uint32) uint32 {
	b := d.next()
	return 1 + binary.BigEndian.Uint32(b[:4])%limit
}
