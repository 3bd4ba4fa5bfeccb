package objectstore

import (
	"context"
	"crypto/md5" //nolint:gosec // what S3 identifies contents by
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

const (
	// defaultPart is the default of Options.PartSize, in bytes.
	defaultPart = 16 << 20
	// minPart is the smallest part of a multipart upload that S3 accepts, in bytes.
	minPart = 5 << 20
	// maxParts is the largest number of parts of one upload that S3 accepts.
	maxParts = 10_000
)

// A bucket is a Store for a bucket of an S3-compatible service.
type bucket struct {
	// scheme is the URL scheme of the bucket's service, such as "s3".
	scheme string
	// name is the name of the bucket.
	name string

	// core is the client that sends the requests to the S3-compatible service.
	core *minio.Core
	// encryption is the server-side encryption requested for new objects; nil for the bucket's own setting.
	encryption encrypt.ServerSide
	// md5ETags means that the service uses the MD5 hash of an object as its ETag. This is so unless objects are
	// encrypted with keys from a key management service.
	md5ETags bool

	// part is the size of the parts of large uploads, in bytes.
	part int64
}

// newBucket returns the bucket with a name. scheme is that of its URLs, such as "s3". It sends no request.
func newBucket(scheme, name string, o Options) (*bucket, error) {
	if o.Transport == nil {
		return nil, errors.New("objectstore: no HTTP transport is given for the bucket")
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	endpoint, err := Endpoint(scheme+"://"+name, o)
	if err != nil {
		return nil, err
	}
	b := &bucket{scheme: scheme, name: name, md5ETags: true, part: defaultPart}
	if o.PartSize > 0 {
		b.part = max(o.PartSize, minPart)
	}
	if b.encryption, err = parseEncryption(o.Encryption); err != nil {
		return nil, err
	}
	b.md5ETags = b.encryption == nil || b.encryption.Type() == encrypt.S3

	// The usual chain: environment, files of the AWS tools, and the role of the machine.
	client := &http.Client{Transport: o.Transport}
	chain := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: client},
	})
	b.core, err = minio.NewCore(endpoint.Host, &minio.Options{
		Creds: chain, Secure: endpoint.Scheme == "https", Transport: o.Transport, Region: region(o, o.Getenv),
		// The caller repeats what failed, and knows how long it may take.
		MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("%s://%s: %w", scheme, name, err)
	}
	return b, nil
}

// parseEncryption parses Options.Encryption, the kind of server-side encryption.
func parseEncryption(text string) (encrypt.ServerSide, error) {
	kind, key, _ := strings.Cut(strings.TrimPrefix(text, "aws:"), ":")
	switch {
	case text == "":
		return nil, nil
	case text == "AES256":
		return encrypt.NewSSE(), nil
	case kind == "kms" && strings.HasPrefix(text, "aws:"):
		return encrypt.NewSSEKMS(key, nil)
	}
	return nil, fmt.Errorf("unknown encryption %q: use AES256, aws:kms or aws:kms:KEY", text)
}

// URL returns the URL of an object, such as s3://bucket/key.
func (b *bucket) URL(key string) string { return b.scheme + "://" + b.name + "/" + key }

// explain wraps an error of the service: it adds the object's URL, and which setting or permission is missing.
func (b *bucket) explain(key string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		err = fs.ErrNotExist
	case minio.NoSuchBucket:
		err = fmt.Errorf("the bucket does not exist: %w", err)
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch":
		err = fmt.Errorf("the object store refuses the credentials (of AWS_ACCESS_KEY_ID, ~/.aws/credentials or the machine's role): %w", err)
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch":
		err = fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = unreachable(sent)
	}
	return fmt.Errorf("%s: %w", b.URL(key), err)
}

// unreachable returns the error of a request that got no answer, with the address of the service in place of the
// method, the whole URL and Go's names of system calls.
func unreachable(sent *url.Error) error {
	at, cause := sent.URL, sent.Err
	if u, err := url.Parse(sent.URL); err == nil {
		at = u.Scheme + "://" + u.Host
	}
	if code, ok := errors.AsType[syscall.Errno](cause); ok {
		cause = code
	}
	return fmt.Errorf("the object store at %s does not answer: %w", at, cause)
}

// List returns the objects whose keys begin with a prefix.
func (b *bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var list []Object
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, b.explain(prefix, o.Err)
		}
		list = append(list, Object{Key: o.Key, Size: o.Size})
	}
	slices.SortFunc(list, func(x, y Object) int { return strings.Compare(x.Key, y.Key) })
	return list, ctx.Err()
}

// Open returns the content of an object. Reading fails if less content arrives than the service announced.
func (b *bucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, _, _, err := b.core.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	return r, b.explain(key, err)
}

// Stat returns the size and ETag of an object.
func (b *bucket) Stat(ctx context.Context, key string) (Object, error) {
	info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return Object{}, fmt.Errorf("%s: %w", b.URL(key), fs.ErrNotExist)
	}
	return Object{Key: key, Size: info.Size}, b.explain(key, err)
}

// Remove removes an object.
func (b *bucket) Remove(ctx context.Context, key string) error {
	return b.explain(key, b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}))
}

// Put uploads an object: a small one with one request, a large one in parts.
func (b *bucket) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if size > b.part {
		return b.explain(key, b.putParts(ctx, key, r, size))
	}
	sum, sha, err := hashes(r, 0, size)
	if err != nil {
		return err
	}
	// The hash is known before, so that the content need not be signed in chunks.
	o := minio.PutObjectOptions{ServerSideEncryption: b.encryption, DisableContentSha256: true}
	info, err := b.core.PutObject(ctx, b.name, key, io.NewSectionReader(r, 0, size), size, base64.StdEncoding.EncodeToString(sum), sha, o)
	if err == nil && b.md5ETags && !sameETag(info.ETag, sum) {
		err = fmt.Errorf("%w: the object store reports the MD5 %s, but the sent data has %x", ErrIntegrity, info.ETag, sum)
	}
	return b.explain(key, err)
}

// hashes returns the MD5 hash and, in hex, the SHA-256 hash of size bytes at offset off. The service compares
// both with the hashes of the received bytes.
func hashes(r io.ReaderAt, off, size int64) (sum []byte, sha string, err error) {
	// S3 identifies contents by MD5.
	m, s := md5.New(), sha256.New() //nolint:gosec
	if _, err := io.Copy(io.MultiWriter(m, s), io.NewSectionReader(r, off, size)); err != nil {
		return nil, "", err
	}
	return m.Sum(nil), hex.EncodeToString(s.Sum(nil)), nil
}

// sameETag reports whether an ETag, with or without quotes, is the hex form of an MD5 hash.
func sameETag(etag string, sum []byte) bool {
	return strings.EqualFold(strings.Trim(etag, `"`), hex.EncodeToString(sum))
}

// putParts uploads an object in parts. If an earlier upload of the same key was interrupted, parts of it with
// the same content are not sent again.
func (b *bucket) putParts(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	// S3 allows at most maxParts parts, so that large files need larger parts.
	part := max(b.part, (size+maxParts-1)/maxParts)
	id, had, err := b.findUpload(ctx, key)
	if err != nil {
		return err
	}
	if id == "" {
		o := minio.PutObjectOptions{ServerSideEncryption: b.encryption, DisableContentSha256: true}
		if id, err = b.core.NewMultipartUpload(ctx, b.name, key, o); err != nil {
			return err
		}
	}

	// Send only those parts that an interrupted upload has not sent yet, or sent with other content.
	var done []minio.CompletePart
	for n, off := 1, int64(0); off < size; n, off = n+1, off+part {
		length := min(part, size-off)
		sum, sha, err := hashes(r, off, length)
		if err != nil {
			return err
		}
		etag := had[n].ETag
		if had[n].Size != length || !sameETag(etag, sum) {
			sent, err := b.core.PutObjectPart(ctx, b.name, key, id, n, io.NewSectionReader(r, off, length), length,
				minio.PutObjectPartOptions{Md5Base64: base64.StdEncoding.EncodeToString(sum), Sha256Hex: sha, SSE: b.encryption, DisableContentSha256: true})
			if err != nil {
				return fmt.Errorf("part %d: %w", n, err)
			}

			// The service returns the MD5 of what it received; a difference means that the part was
			// damaged on its way.
			if etag = sent.ETag; b.md5ETags && !sameETag(etag, sum) {
				return fmt.Errorf("part %d: %w: the object store reports the MD5 %s, but the sent data has %x", n, ErrIntegrity, etag, sum)
			}
		}
		done = append(done, minio.CompletePart{PartNumber: n, ETag: etag})
	}
	_, err = b.core.CompleteMultipartUpload(ctx, b.name, key, id, done, minio.PutObjectOptions{})
	if err != nil {
		return err
	}

	// Only the parts were compared so far.
	if info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{}); err != nil || info.Size != size {
		return errors.Join(err, fmt.Errorf("%w: it has %d bytes instead of %d", ErrIntegrity, info.Size, size))
	}
	return nil
}

// findUpload returns the id of the newest interrupted multipart upload of a key and its parts by number; id is
// "" if there is none.
func (b *bucket) findUpload(ctx context.Context, key string) (id string, parts map[int]minio.ObjectPart, err error) {
	list, err := b.core.ListMultipartUploads(ctx, b.name, key, "", "", "", 1000)
	if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
		// Some services say so of a bucket that never had one.
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	newest := minio.ObjectMultipartInfo{}
	for _, u := range list.Uploads {
		if u.Key == key && (newest.UploadID == "" || u.Initiated.After(newest.Initiated)) {
			newest = u
		}
	}
	if newest.UploadID == "" {
		return "", nil, nil
	}
	parts = map[int]minio.ObjectPart{}
	for marker := 0; ; {
		page, err := b.core.ListObjectParts(ctx, b.name, key, newest.UploadID, marker, 1000)
		if err != nil {
			return "", nil, err
		}
		for _, p := range page.ObjectParts {
			parts[p.PartNumber] = p
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return newest.UploadID, parts, nil
		}
		marker = page.NextPartNumberMarker
	}
}
