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
	// recordHeader is the length in bytes of a TLS record header: type(1) version(2) length(2).
	recordHeader = 5

	// version12 and version13 are the numbers of TLS 1.2 and 1.3 in handshake messages.
	version12 = 0x0303
	version13 = 0x0304
)

// errNoKey means that the key log lacks the traffic secret for the current phase (early data, handshake or
// application data) of a TLS 1.3 connection.
var errNoKey = errors.New("the key log has no key for this phase of the TLS handshake")

// A cipherSuite describes a TLS cipher suite, as far as decrypting records needs it.
type cipherSuite struct {
	// id is the number of the cipher suite in the IANA registry.
	id uint16
	// tls13 means that the suite belongs to TLS 1.3; otherwise it belongs to TLS 1.2.
	tls13 bool

	// keyLen is the length of the cipher's key in bytes.
	keyLen int

	// saltLen is the number of bytes at the beginning of the 12-byte nonce that are derived with the key. The
	// other bytes are sent in each record.
	saltLen int

	// hash creates the hash function with which keys are derived.
	hash func() hash.Hash
	// cipher creates the AEAD cipher for a key of keyLen bytes.
	cipher func(key []byte) (cipher.AEAD, error)
}

// Numbers of two cipher suites with finite-field Diffie-Hellman, which crypto/tls does not define.
const (
	dheRSAWithAES128GCM = 0x009e
	dheRSAWithAES256GCM = 0x009f
)

// cipherSuites are the supported suites: all with AES-GCM or ChaCha20-Poly1305.
var cipherSuites = []cipherSuite{
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

// suiteByID returns the cipher suite with an IANA number for a TLS version, or nil if it is not supported.
func suiteByID(id, version uint16) *cipherSuite {
	for i := range cipherSuites {
		if cipherSuites[i].id == id && cipherSuites[i].tls13 == (version == version13) {
			return &cipherSuites[i]
		}
	}
	return nil
}

// suiteName returns the IANA name of a cipher suite, or its number in hex if it is unknown.
func suiteName(id uint16) string { return tls.CipherSuiteName(id) }

// gcm returns AES-GCM with this key.
func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// keys13 derives the keys for decrypting records from a TLS 1.3 traffic secret (RFC 8446, section 7.3).
func (s *cipherSuite) keys13(secret []byte) (*recordKeys, error) {
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

// updatedSecret derives the traffic secret that follows secret after a TLS 1.3 KeyUpdate (RFC 8446, section
// 7.2).
func (s *cipherSuite) updatedSecret(secret []byte) []byte {
	return s.expandLabel(secret, "traffic upd", s.hash().Size())
}

// expandLabel is HKDF-Expand-Label with an empty context (RFC 8446, section 7.1).
func (s *cipherSuite) expandLabel(secret []byte, label string, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(info, "tls13 "+label...)
	info = append(info, 0)
	out, err := hkdf.Expand(s.hash, secret, string(info), n)
	if err != nil {
		// HKDF fails only if n is too large, and n is a constant.
		panic(err)
	}
	return out
}

// keys12 derives the keys for decrypting records of one direction from a TLS 1.2 master secret and the two
// hello randoms (RFC 5246, section 6.3). The key block consists of the client's key, the server's key, the
// client's IV and the server's IV.
func (s *cipherSuite) keys12(master []byte, client, server [32]byte, dir captures.Direction) (*recordKeys, error) {
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

// prf is the pseudorandom function of TLS 1.2 (P_hash in RFC 5246, section 5); it returns n bytes.
func (s *cipherSuite) prf(secret, seed []byte, n int) []byte {
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

// A recordKeys decrypts the TLS records that one side sends with one traffic key, in order.
type recordKeys struct {
	// aead decrypts and authenticates TLS records with the traffic key.
	aead cipher.AEAD
	// iv is the fixed part of the nonce, in its first saltLen bytes, as derived with the traffic key.
	iv [12]byte
	// saltLen is the number of bytes at the beginning of the 12-byte nonce that iv supplies; each record
	// contains the others.
	saltLen int
	// seq is the sequence number of the next TLS record.
	seq uint64
	// plain is a reused buffer for decrypted records.
	plain []byte
	// aad is a reused buffer for the additional authenticated data of a record.
	aad [13]byte
}

// errOpen means that a TLS record cannot be decrypted.
var errOpen = errors.New("a TLS record cannot be decrypted: the key log has a wrong key, or the bytes are damaged")

// open12 decrypts rec, a TLS 1.2 record with its header. The result is valid until the next call.
//
// The additional data is: sequence number (8 bytes), type (1), version (2), length (2).
func (p *recordKeys) open12(rec []byte) ([]byte, error) {
	body := rec[recordHeader:]
	nonce := p.iv

	// AES-GCM sends a part of the nonce in the record; ChaCha20-Poly1305 derives it from the sequence number.
	if explicit := len(nonce) - p.saltLen; explicit > 0 {
		if len(body) < explicit {
			return nil, errOpen
		}
		copy(nonce[p.saltLen:], body)
		body = body[explicit:]
	} else {
		p.xorSequence(&nonce)
	}
	if len(body) < p.aead.Overhead() {
		return nil, errOpen
	}
	binary.BigEndian.PutUint64(p.aad[:], p.seq)
	copy(p.aad[8:], rec[:3])
	binary.BigEndian.PutUint16(p.aad[11:], uint16(len(body)-p.aead.Overhead()))
	return p.open(&nonce, body, p.aad[:])
}

// open13 decrypts rec, a TLS 1.3 record with its header. The result is valid until the next call.
func (p *recordKeys) open13(rec []byte) ([]byte, error) {
	nonce := p.iv
	p.xorSequence(&nonce)
	return p.open(&nonce, rec[recordHeader:], rec[:recordHeader])
}

// xorSequence sets nonce to the IV, XORed with the record's sequence number.
func (p *recordKeys) xorSequence(nonce *[12]byte) {
	low := binary.BigEndian.Uint64(nonce[4:])
	binary.BigEndian.PutUint64(nonce[4:], low^p.seq)
}

// open decrypts a record's ciphertext and checks its authentication tag and aad. If it succeeds, it advances
// the sequence number.
func (p *recordKeys) open(nonce *[12]byte, sealed, aad []byte) ([]byte, error) {
	plain, err := p.aead.Open(p.plain[:0], nonce[:], sealed, aad)
	if err != nil {
		return nil, errOpen
	}
	p.plain = plain
	p.seq++
	return plain, nil
}
