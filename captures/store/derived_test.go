package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
)

func TestDerived(t *testing.T) {
	ctx := t.Context()
	path := record(t, "x")
	s := require.Value(Open(path, ReadOptions{}))(t)
	defer s.Close()
	if v := require.Value(s.Derived(ctx, "a"))(t); v != nil {
		t.Errorf("%q, and nothing was stored", v)
	}
	require.NoError(t, s.PutReading(ctx, captures.Reading{Method: "/a.B/C", Path: "1", Type: "string"}))
	before := require.Value(s.LastNumber(ctx))(t)
	for i := range maxDerived {
		require.NoError(t, s.PutDerived(ctx, fmt.Sprint(i), []byte{byte(i)}))
	}
	require.NoError(t, s.PutDerived(ctx, "0", []byte("zero")))
	if v := require.Value(s.Derived(ctx, "0"))(t); string(v) != "zero" {
		t.Errorf("%q", v)
	}
	if n := require.Value(s.LastNumber(ctx))(t); n != before || n == 0 {
		t.Errorf("the last number was %d and is %d", before, n)
	}

	// All values are forgotten when there are too many, and nothing else.
	if v := require.Value(s.Derived(ctx, "7"))(t); v != nil {
		t.Errorf("%q of the values before the limit", v)
	}
	if list := require.Value(s.Readings(ctx, ""))(t); len(list) != 1 {
		t.Errorf("%d readings", len(list))
	}
	if err := s.PutDerived(ctx, "large", bytes.Repeat([]byte{1}, maxDerivedLen+1)); err == nil {
		t.Error("a value above the limit was stored")
	}
}

// What is recorded later has larger numbers.
func TestLastNumber(t *testing.T) {
	path := record(t, "x")
	number := func() int64 {
		s := require.Value(Open(path, ReadOptions{}))(t)
		defer s.Close()
		return require.Value(s.LastNumber(t.Context()))(t)
	}
	before := number()
	s := require.Value(Create(path, Options{}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	r.Chunk(captures.Up, []byte("more"))
	r.End(captures.Complete, "")
	require.NoError(t, s.Close())
	if after := number(); after <= before {
		t.Errorf("%d after %d", after, before)
	}
}

// A part of a capture is not written to.
func TestPutDerivedInPart(t *testing.T) {
	path := record(t, "x")
	data := require.Value(os.ReadFile(path))(t)
	require.NoError(t, os.WriteFile(path, data[:len(data)-1], 0o600))
	s := require.Value(Open(path, ReadOptions{}))(t)
	defer s.Close()
	if err := s.PutDerived(t.Context(), "a", []byte("b")); !errors.Is(err, captures.ErrDamaged) {
		t.Errorf("PutDerived: %v", err)
	}
	if after := require.Value(os.ReadFile(path))(t); !bytes.Equal(after, data[:len(data)-1]) {
		t.Error("the file was changed")
	}
}

// The certificate of a server's CA is stored, whether the recorder knows the connection from the start, as the proxy
// does for HTTP/2, or learns it later.
func TestAuthority(t *testing.T) {
	der := []byte("a certificate")
	sum := sha256.Sum256(der)
	ca := captures.Authority{SHA256: hex.EncodeToString(sum[:]), Subject: "CN=test", Certificate: string(der)}
	for name, known := range map[string]bool{"known from the start": true, "learnt later": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.uwc")
			s := require.Value(Create(path, Options{}))(t)
			ex := captures.Exchange{Method: "POST", URL: "https://api.example/a"}
			if known {
				ex.TLS.CA = ca
			}
			rec := require.Value(s.Begin(ex))(t)
			if !known {
				rec.Connection(captures.TLS{CA: ca}, "")
			}
			rec.EndAt(time.Second, captures.Complete, "")
			require.NoError(t, s.Close())

			s = require.Value(Open(path, ReadOptions{}))(t)
			defer s.Close()
			if got := require.Value(s.Authority(t.Context(), ca.SHA256))(t); !bytes.Equal(got, der) {
				t.Errorf("stored %q, want %q", got, der)
			}
		})
	}
}
