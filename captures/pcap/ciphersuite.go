package pcap

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"

	"unwire/captures"
)

const (
	// recordHeader is the length of type(1) version(2) length(2).
	recordHeader = 5

	version12 = 0x0303
	version13 = 0x0304
)

var errNoKey = errors.New("no key for this phase of the handshake")

// A suite is a cipher suite as far as the records need it.
type suite struct {
	id    uint16
	tls13 bool

	// keyLen is the length of the key in bytes.
	keyLen int

	// saltLen is how many bytes of the nonce come with the key. A record has the
	// others.
	saltLen int
	hash    func() hash.Hash
	cipher  func(key []byte) (cipher.AEAD, error)
}

// TLS_DHE_RSA_WITH_AES_128_GCM_SHA256 and TLS_DHE_RSA_WITH_AES_256_GCM_SHA384, which
// crypto/tls does not have.
const (
	dheRSAWithAES128GCM = 0x009e
	dheRSAWithAES256GCM = 0x009f
)

// suites are the cipher suites that are read: all that use AES-GCM or ChaCha20-Poly1305.
var suites = []suite{
	{tls.TLS_AES_128_GCM_SHA256, true, 16, 12, sha256.New, gcm},
	{tls.TLS_AES_256_GCM_SHA384, true, 32, 12, sha512.New384, gcm},
	{tls.TLS_CHACHA20_POLY1305_SHA256, true, 32, 12, sha256.New, chacha20poly1305.New},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, false, 16, 4, sha256.New, gcm},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, false, 32, 4, sha512.New384, gcm},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, false, 16, 4, sha256.New, gcm},
	{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, false, 32, 4, sha512.New384, gcm},
	{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, false, 32, 12, sha256.New, chacha20poly1305.New},
	{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, false, 32, 12, sha256.New, chacha20poly1305.New},
	{dheRSAWithAES128GCM, false, 16, 4, sha256.New, gcm},
	{dheRSAWithAES256GCM, false, 32, 4, sha512.New384, gcm},
	{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, false, 16, 4, sha256.New, gcm},
	{tls.TLS_RSA_WITH_AES_256_GCM_SHA384, false, 32, 4, sha512.New384, gcm},
}

func suiteByID(id, version uint16) *suite {
	for i := range suites {
		if suites[i].id == id && suites[i].tls13 == (version == version13) {
			return &suites[i]
		}
	}
	return nil
}

func suiteName(id uint16) string { return tls.CipherSuiteName(id) }

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// traffic13 makes the keys of a TLS 1.3 traffic secret.
func (s *suite) traffic13(secret []byte) (*recordKeys, error) {
	if len(secret) != s.hash().Size() {
		return nil, errors.New("a secret in the key log does not have the length of the cipher suite's hash")
	}
	aead, err := s.cipher(s.expandLabel(secret, "key", s.keyLen))
	if err != nil {
		return nil, err
	}
	p := &recordKeys{aead: aead, saltLen: s.saltLen}
	copy(p.iv[:], s.expandLabel(secret, "iv", 12))
	return p, nil
}

// nextSecret is the traffic secret that follows a key update.
func (s *suite) nextSecret(secret []byte) []byte {
	return s.expandLabel(secret, "traffic upd", s.hash().Size())
}

// expandLabel is HKDF-Expand-Label of RFC 8446 section 7.1, without a context.
func (s *suite) expandLabel(secret []byte, label string, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(info, "tls13 "+label...)
	info = append(info, 0)
	out, err := hkdf.Expand(s.hash, secret, string(info), n)
	if err != nil {
		panic(err) // more output than HKDF has: n is a constant of ours
	}
	return out
}

// traffic12 makes the keys of one direction from a TLS 1.2 master secret.
// Layout of the key block: client key, server key, client IV, server IV.
func (s *suite) traffic12(master []byte, client, server [32]byte, dir captures.Direction) (*recordKeys, error) {
	seed := append([]byte("key expansion"), server[:]...)
	block := s.prf(master, append(seed, client[:]...), 2*s.keyLen+2*s.saltLen)
	i := int(dir)
	aead, err := s.cipher(block[i*s.keyLen : (i+1)*s.keyLen])
	if err != nil {
		return nil, err
	}
	p := &recordKeys{aead: aead, saltLen: s.saltLen}
	copy(p.iv[:], block[2*s.keyLen+i*s.saltLen:][:s.saltLen])
	return p, nil
}

// prf is P_hash of RFC 5246 section 5.
func (s *suite) prf(secret, seed []byte, n int) []byte {
	mac := func(parts ...[]byte) []byte {
		h := hmac.New(s.hash, secret)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	var out []byte
	for a := mac(seed); len(out) < n; a = mac(a) {
		out = append(out, mac(a, seed)...)
	}
	return out[:n]
}

// A recordKeys opens the records of one direction under one key.
type recordKeys struct {
	aead    cipher.AEAD
	iv      [12]byte
	saltLen int
	seq     uint64
	plain   []byte // of the last record
	aad     [13]byte
}

var errOpen = errors.New("a record does not open: wrong key in the key log, or bytes are damaged")

// open12 opens a TLS 1.2 record, header included.
//
// Layout of the additional data: sequence number(8) type(1) version(2) length(2).
func (p *recordKeys) open12(rec []byte) ([]byte, error) {
	body := rec[recordHeader:]
	nonce := p.iv
	if explicit := len(nonce) - p.saltLen; explicit > 0 {
		if len(body) < explicit {
			return nil, errOpen
		}
		copy(nonce[p.saltLen:], body)
		body = body[explicit:]
	} else {
		p.nextNonce(&nonce)
	}
	if len(body) < p.aead.Overhead() {
		return nil, errOpen
	}
	binary.BigEndian.PutUint64(p.aad[:], p.seq)
	copy(p.aad[8:], rec[:3])
	binary.BigEndian.PutUint16(p.aad[11:], uint16(len(body)-p.aead.Overhead()))
	return p.open(&nonce, body, p.aad[:])
}

// open13 opens a TLS 1.3 record, header included.
func (p *recordKeys) open13(rec []byte) ([]byte, error) {
	nonce := p.iv
	p.nextNonce(&nonce)
	return p.open(&nonce, rec[recordHeader:], rec[:recordHeader])
}

// nextNonce makes the nonce of the next record.
func (p *recordKeys) nextNonce(nonce *[12]byte) {
	low := binary.BigEndian.Uint64(nonce[4:])
	binary.BigEndian.PutUint64(nonce[4:], low^p.seq)
}

func (p *recordKeys) open(nonce *[12]byte, sealed, aad []byte) ([]byte, error) {
	plain, err := p.aead.Open(p.plain[:0], nonce[:], sealed, aad)
	if err != nil {
		return nil, errOpen
	}
	p.plain = plain
	p.seq++
	return plain, nil
}
