// Package archive reads the members of archives and packages in memory. It writes nothing to disk, so the names
// of members cannot do harm.
//
// b := archive.NewBudget(int64(len(data)), budget.Of(ctx))
// err := archive.Walk(ctx, archive.Detect(data), "app.zip", data, b, visitor)
//
// A Visitor is called for each member, and a Budget limits the total decompressed size, against archive bombs.
// The formats are zip and its variants (jar, vsix, whl, nupkg, apk, crx), asar, tar, ar including Debian
// packages, squashfs alone and in an AppImage, and streams compressed with gzip, bzip2, xz or Zstandard. They
// are recognised by their first bytes. Package extract uses this package.
package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"unwire/captures/budget"
)

// Limits on unpacking one input file. They protect against archive bombs.
const (
	// maxMembers is the maximum number of members, including those of nested archives.
	maxMembers = 1 << 20
	// maxRatio is the maximum ratio of decompressed to compressed size.
	maxRatio = 200
	// maxSmall is the size in bytes that may always be decompressed, however small the input is.
	maxSmall = 256 << 20
	// maxUnpacked is the maximum total decompressed size in bytes, whatever the ratio.
	maxUnpacked = 64 << 30

	// maxReadRatio limits the ratio of the members that a Visitor reads to the compressed size. Reading a script
	// costs 30 times as much as decompressing it; scripts rarely compress to less than a tenth.
	maxReadRatio = 32
	// maxSmallRead is the size in bytes of members that may be read of any input, however small.
	maxSmallRead = 16 << 20
	// HeadBytes is the number of bytes of a member that a Visitor sees before it decides.
	HeadBytes = 4096
)

// ErrBomb is wrapped by the error for an archive that decompresses to more than its Budget allows.
var ErrBomb = errors.New("the archive is too large when unpacked")

// errTooLarge is wrapped by the error for a member that is larger than the Visitor's limit.
var errTooLarge = errors.New("the member of the archive is too large")

// A Kind is a format of archives, such as zip.
type Kind string

// The formats of archives and of compressed files.
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

// Detect returns the format of an archive that begins with head, or "".
func Detect(head []byte) Kind {
	has := func(at int, magic string) bool {
		return len(head) >= at+len(magic) && string(head[at:at+len(magic)]) == magic
	}
	// The signatures at the beginning of each format; tar has its own at offset 257.
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

// A Budget limits the work for unpacking one input, including nested archives. Make one with NewBudget.
type Budget struct {
	// members is the number of archive members read so far.
	members int

	// unpacked is the number of decompressed bytes so far.
	unpacked int64

	// counted is the size in bytes of the members read so far, including the holes of sparse files.
	counted int64

	// most is the limit for both unpacked and counted, in bytes.
	most int64

	// read is the number of bytes of members that were passed to the Visitor so far.
	read int64
	// mostRead is the limit for read, in bytes.
	mostRead int64

	// shared is the budget of the whole command, for all its inputs together; nil if there is none.
	shared *budget.Budget
}

// NewBudget returns the budget for an input of size bytes. All work is also counted in shared, which may be
// nil.
func NewBudget(size int64, shared *budget.Budget) *Budget {
	b := &Budget{most: maxUnpacked, mostRead: maxUnpacked, shared: shared}
	// The comparisons avoid an overflow of the products.
	if size < maxUnpacked/maxRatio {
		b.most = max(maxSmall, size*maxRatio)
	}
	if size < maxUnpacked/maxReadRatio {
		b.mostRead = max(maxSmallRead, size*maxReadRatio)
	}
	return b
}

// member counts one archive member. It fails if the limit is exceeded.
func (b *Budget) member() error {
	if b.members++; b.members > maxMembers {
		return fmt.Errorf("%w: the archive has more than %d members", ErrBomb, maxMembers)
	}
	return b.share(budget.Members, 1)
}

// share counts n units of r in the budget of the whole command.
func (b *Budget) share(r budget.Resource, n int) error {
	if err := b.shared.Spend(r, int64(n)); err != nil {
		return fmt.Errorf("%w: %w", ErrBomb, err)
	}
	return nil
}

// unpack counts n decompressed bytes. It fails if the limit is exceeded.
func (b *Budget) unpack(n int) error {
	if b.unpacked += int64(n); b.unpacked > b.most {
		return fmt.Errorf("%w: it decompresses to more than %d bytes", ErrBomb, b.most)
	}
	return b.share(budget.Decompressed, n)
}

// countBytes counts n bytes of a member's content. It fails if the limit is exceeded.
func (b *Budget) countBytes(n int) error {
	if b.counted += int64(n); b.counted > b.most {
		return fmt.Errorf("%w: it decompresses to more than %d bytes", ErrBomb, b.most)
	}
	return nil
}

// readMember counts a member of n bytes that is passed to the Visitor. It fails if the limit is exceeded.
func (b *Budget) readMember(n int) error {
	if b.read += int64(n); b.read > b.mostRead {
		return fmt.Errorf("%w: the members have more than %d bytes", ErrBomb, b.mostRead)
	}
	return b.share(budget.Parsed, n)
}

// A Visitor has the functions that Walk calls for the members of an archive. All fields are required.
type Visitor struct {
	// Limit returns the maximum size in bytes of a member that is to be read, given its name and first bytes; 0
	// skips the member. A larger member is reported to Broken.
	Limit func(name string, head []byte) int64
	// Member is called with the whole content of a member. data may belong to the archive and must not be
	// modified.
	Member func(name string, data []byte) error
	// Broken is called if a member could not be read. The walk continues with the other members.
	Broken func(name string, err error)
	// At is called with the number of bytes of the archive that have been read so far, to report progress.
	At func(read int64)
}

// Walk reads an archive in the given format and calls v for its members. name is the name of the archive's
// file.
//
// Limits: maxMembers, maxRatio and maxUnpacked, all counted in b.
// Errors: ErrBomb, the errors of v.Member, the context's, and a malformed archive, whose earlier members were
// visited.
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

// A walk is the state of reading one archive.
type walk struct {
	// Visitor has the callbacks that receive the members of the archive.
	Visitor
	// ctx cancels the walk.
	ctx context.Context
	// name is the name of the archive's file.
	name string
	// budget counts the work, which is shared with nested archives.
	budget *Budget
	// done is the size in bytes of the members read so far, out of size, for formats whose members are not read
	// in the order in which they are stored.
	done int64
	// size is the size of the whole archive in bytes.
	size int64
}

// begin counts an archive member before it is read. If it fails, the walk must end.
func (w *walk) begin() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.budget.member()
}

// plain passes a member that is stored without compression to the Visitor, if the Visitor wants it.
func (w *walk) plain(name string, data []byte) error {
	limit := w.Limit(name, data[:min(len(data), HeadBytes)])
	if limit == 0 {
		return nil
	}
	if int64(len(data)) > limit {
		w.Broken(name, tooLarge(int64(len(data)), limit))
		return nil
	}

	return w.member(name, data)
}

// member passes the whole content of a member to the Visitor.
func (w *walk) member(name string, data []byte) error {
	if err := w.budget.readMember(len(data)); err != nil {
		return err
	}
	return w.Member(name, data)
}

// tooLarge returns the error for a member of size bytes where at most limit are allowed.
func tooLarge(size, limit int64) error {
	return fmt.Errorf("%w: it has %d bytes, and unwire reads at most %d", errTooLarge, size, limit)
}

// stream passes a member to the Visitor that is decompressed while r is read. size is its size in bytes
// according to the archive, or -1 if unknown.
//
// Errors: those that end the walk. Errors of the member itself go to Visitor.Broken.
func (w *walk) stream(name string, r io.Reader, size int64) error {
	head := make([]byte, HeadBytes)
	n, err := io.ReadFull(r, head)
	if err := w.budget.countBytes(n); err != nil {
		return err
	}
	whole := err == io.EOF || err == io.ErrUnexpectedEOF

	// An archive bomb ends the walk; other errors affect this member only.
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
		return w.member(name, head)
	}

	data, err := w.rest(head, r, size, limit)
	if errors.Is(err, ErrBomb) || w.ctx.Err() != nil {
		return errors.Join(err, w.ctx.Err())
	}
	if err != nil {
		w.Broken(name, err)
		return nil
	}
	return w.member(name, data)
}

// rest reads the remaining content of a member, whose beginning is head, up to a total of limit bytes. size is
// the expected total, or -1.
func (w *walk) rest(head []byte, r io.Reader, size, limit int64) ([]byte, error) {
	// The buffer grows in steps, because the size in a header may be wrong by intention.
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

// A position is a reader that reports its progress in bytes.
type position struct {
	// r is the archive that is read.
	r io.Reader
	// read is the number of bytes of the archive that were read so far.
	read int64
	// at is called with read after each call of Read.
	at func(read int64)
}

// Read reads from the archive and reports the new position.
func (p *position) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read += int64(n)
	p.at(p.read)
	return n, err
}
