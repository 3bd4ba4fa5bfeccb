// Package archive reads the members of archives and packages, one after the other and in
// memory: nothing is written, so that a member's name is only a name, wherever it points
// to. A Visitor is called with each member, and a Budget limits what is unpacked in all.
//
// Read are zip with all that is zip inside (jar, vsix, whl, nupkg, apk, crx), asar, tar, ar
// with Debian's packages, squashfs alone and in an AppImage, and compressed streams: gzip,
// bzip2, xz or Zstandard. The format is detected by the first bytes.
package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxMembers bounds how many members are looked at, those of archives in
	// archives included.
	maxMembers = 1 << 20
	// maxRatio bounds how many times its size what is compressed may become.
	maxRatio = 200
	// maxSmall is what may be unpacked of any input, however small it is.
	maxSmall = 256 << 20
	// maxUnpacked bounds what is unpacked in all, in bytes.
	maxUnpacked = 64 << 30
	// HeadBytes is how much of a member is seen before it is wanted.
	HeadBytes = 4096
)

// ErrBomb is returned where an archive unpacks to more than there is reason for.
var ErrBomb = errors.New("archive unpacks to too much")

// errTooLarge is told of a member that is larger than is wanted.
var errTooLarge = errors.New("member too large")

// A Kind is a format of archives.
type Kind string

// The formats of archives.
const (
	kindZip      Kind = "zip"
	kindAsar     Kind = "asar"
	kindTar      Kind = "tar"
	kindAr       Kind = "ar"
	kindSquashfs Kind = "squashfs"
	kindAppImage Kind = "AppImage"
	kindGzip     Kind = "gzip"
	kindBzip2    Kind = "bzip2"
	kindXz       Kind = "xz"
	kindZstd     Kind = "zstd"
)

// Detect says which kind of archive begins with head, or "".
func Detect(head []byte) Kind {
	has := func(at int, magic string) bool {
		return len(head) >= at+len(magic) && string(head[at:at+len(magic)]) == magic
	}
	switch {
	case has(0, "PK\x03\x04"), has(0, "PK\x05\x06"), has(0, "PK\x07\x08"), has(0, "Cr24"):
		return kindZip
	case has(0, "\x1f\x8b\x08"):
		return kindGzip
	case has(0, "BZh") && has(4, "1AY&SY"):
		return kindBzip2
	case has(0, "\xfd7zXZ\x00"):
		return kindXz
	case has(0, "\x28\xb5\x2f\xfd"):
		return kindZstd
	case has(0, "!<arch>\n"):
		return kindAr
	case has(257, "ustar"):
		return kindTar
	case has(0, "hsqs"):
		return kindSquashfs
	case has(0, "\x7fELF") && has(8, "AI\x02"):
		return kindAppImage
	case len(head) > 16 && binary.LittleEndian.Uint32(head) == 4 && bytes.HasPrefix(head[16:], []byte(`{"files":`)):
		return kindAsar
	}
	return ""
}

// A Budget bounds what is unpacked of one input.
type Budget struct {
	members int

	// bytes that were decompressed
	unpacked int64

	// bytes of members that were read; of a sparse one its holes too
	counted int64

	// of each
	most int64
}

// NewBudget returns what may be unpacked of an input of that many bytes.
func NewBudget(size int64) *Budget {
	most := int64(maxUnpacked)
	if size < maxUnpacked/maxRatio {
		most = max(maxSmall, size*maxRatio)
	}
	return &Budget{most: most}
}

// member counts a member.
func (b *Budget) member() error {
	if b.members++; b.members > maxMembers {
		return fmt.Errorf("%w: more than %d members", ErrBomb, maxMembers)
	}
	return nil
}

// unpack counts bytes that were decompressed.
func (b *Budget) unpack(n int) error {
	if b.unpacked += int64(n); b.unpacked > b.most {
		return fmt.Errorf("%w: to more than %d bytes", ErrBomb, b.most)
	}
	return nil
}

// countBytes counts bytes of members.
func (b *Budget) countBytes(n int) error {
	if b.counted += int64(n); b.counted > b.most {
		return fmt.Errorf("%w: to more than %d bytes", ErrBomb, b.most)
	}
	return nil
}

// A Visitor gets the members of an archive.
type Visitor struct {
	// Limit says how many bytes of a member are wanted, by its name and first
	// bytes; 0 for none.
	Limit func(name string, head []byte) int64
	// Member gets a member that was wanted. Its bytes may be the archive's own.
	Member func(name string, data []byte) error
	// Broken gets what could not be read of a member; the others are read on.
	Broken func(name string, err error)
	// At is told how much of the archive has been read, in bytes.
	At func(read int64)
}

// Walk calls v with the members of an archive.
//
// Limits: maxMembers, maxRatio, maxUnpacked, all in b.
// Errors: ErrBomb, those of v.Member, the context's, and of an archive that is
// broken what it was read up to.
func Walk(ctx context.Context, kind Kind, name string, data []byte, b *Budget, v Visitor) error {
	w := &walk{ctx: ctx, name: name, budget: b, Visitor: v}
	var err error
	switch kind {
	case kindZip:
		err = w.zip(data)
	case kindAsar:
		err = w.asar(data)
	case kindTar:
		r := &position{r: bytes.NewReader(data), at: v.At}
		err = w.tar(r)
	case kindAr:
		err = w.ar(data)
	case kindSquashfs:
		err = w.squashfs(data)
	case kindAppImage:
		err = w.appImage(data)
	default:
		err = w.compressed(kind, data)
	}
	if err != nil {
		return fmt.Errorf("archive: %s: %w", kind, err)
	}
	return nil
}

// A walk is one archive as it is read.
type walk struct {
	Visitor
	ctx    context.Context
	name   string
	budget *Budget
	done   int64 // of size, where members are read by name
	size   int64
}

// begin counts a member, and says whether to go on.
func (w *walk) begin() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.budget.member()
}

// plain hands on a member that stands in the archive as it is.
func (w *walk) plain(name string, data []byte) error {
	limit := w.Limit(name, data[:min(len(data), HeadBytes)])
	if limit == 0 {
		return nil
	}
	if int64(len(data)) > limit {
		w.Broken(name, tooLarge(int64(len(data)), limit))
		return nil
	}
	return w.Member(name, data)
}

func tooLarge(size, limit int64) error {
	return fmt.Errorf("%w: %d bytes, at most %d are read", errTooLarge, size, limit)
}

// stream hands on a member that is decompressed as it is read. size is what the
// archive says of its size, or -1.
//
// Errors: those that end the walk. What is wrong with the member is told to Broken.
func (w *walk) stream(name string, r io.Reader, size int64) error {
	head := make([]byte, HeadBytes)
	n, err := io.ReadFull(r, head)
	if err := w.budget.countBytes(n); err != nil {
		return err
	}
	whole := err == io.EOF || err == io.ErrUnexpectedEOF
	if errors.Is(err, ErrBomb) {
		return err
	}
	if err != nil && !whole {
		w.Broken(name, err)
		return nil
	}
	head = head[:n]
	limit := w.Limit(name, head)
	switch {
	case limit == 0:
		return nil
	case size > limit:
		w.Broken(name, tooLarge(size, limit))
		return nil
	case whole:
		return w.Member(name, head)
	}
	data, err := w.rest(head, r, size, limit)
	if errors.Is(err, ErrBomb) || w.ctx.Err() != nil {
		return errors.Join(err, w.ctx.Err())
	}
	if err != nil {
		w.Broken(name, err)
		return nil
	}
	return w.Member(name, data)
}

// rest reads what follows head, up to limit in all.
func (w *walk) rest(head []byte, r io.Reader, size, limit int64) ([]byte, error) {
	// what a header says of the size is not believed beyond it
	const step = 1 << 20
	data := append(make([]byte, 0, max(int64(len(head)), min(size+1, 16*step))), head...)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):min(cap(data), len(data)+step)])
		data = data[:len(data)+n]
		if err := w.budget.countBytes(n); err != nil {
			return nil, err
		}
		if int64(len(data)) > limit {
			return nil, tooLarge(int64(len(data)), limit)
		}
		if err == io.EOF {
			return data, nil
		}
		if err == nil {
			err = w.ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
}

// A position tells how far a reader is.
type position struct {
	r    io.Reader
	read int64
	at   func(read int64)
}

func (p *position) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read += int64(n)
	p.at(p.read)
	return n, err
}
