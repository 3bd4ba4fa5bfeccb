package formats

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func compressed(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{g, z} {
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return map[string][]byte{"gzip": gz.Bytes(), "zstd": zs.Bytes()}
}

func TestInflate(t *testing.T) {
	want := bytes.Repeat([]byte("some text "), 10_000)
	for name, file := range compressed(t, want) {
		// A file can be read again, a pipe cannot.
		in, head, err := inflate(bytes.NewReader(file), file[:8])
		if err != nil || !bytes.HasPrefix(want, head) || len(head) != HeadBytes {
			t.Fatalf("%s: %v, a head of %d bytes", name, err, len(head))
		}
		for range 2 {
			if _, err := in.(io.Seeker).Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
		in, _, err = inflate(onlyReader{bytes.NewReader(file)}, file[:8])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s from a pipe: %d bytes, %v", name, len(got), err)
		}
		if _, ok := in.(io.Seeker); ok {
			t.Errorf("%s: a pipe that seeks", name)
		}
		// What inflates without end is stopped, and what is torn off is an error.
		f := &inflated{compression: name, raw: bytes.NewReader(file), limit: 5000}
		if err := f.restart(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); len(got) != 5000 || err == nil || !strings.Contains(err.Error(), "more than 5000 bytes") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		torn := file[:len(file)/2]
		in, _, err = inflate(onlyReader{bytes.NewReader(torn)}, torn[:8])
		if err == nil {
			_, err = io.ReadAll(in)
		}
		if err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s, torn off: %v", name, err)
		}
	}
	plain := strings.NewReader("plain")
	if in, head, err := inflate(plain, []byte("plain")); in != io.Reader(plain) || string(head) != "plain" || err != nil {
		t.Errorf("%q, %v", head, err)
	}
}

func FuzzInflate(f *testing.F) {
	for _, file := range compressed(f, []byte("some text")) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		in, _, err := inflate(onlyReader{bytes.NewReader(file)}, file)
		if err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(in, 1<<22))
		}
	})
}

// TestInflateBomb: a file that contains much more than its size ends with an error; one that is compressed well does
// not.
func TestInflateBomb(t *testing.T) {
	for name, file := range compressed(t, make([]byte, 4*minInflated)) {
		in, _, err := inflate(bytes.NewReader(file), file[:8])
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, in); !errors.Is(err, errBomb) || n < minInflated || n > minInflated+1<<20 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	// Text of random letters compresses to less than 1/20 if each line is repeated 15 times.
	random := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for len(text) < 2*minInflated {
		line := make([]byte, 200)
		for i := range line {
			line[i] = byte('a' + random.IntN(16))
		}
		text = append(text, bytes.Repeat(append(line, '\n'), 15)...)
	}
	for name, file := range compressed(t, text) {
		in, _, err := inflate(bytes.NewReader(file), file[:8])
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, in); err != nil || n != int64(len(text)) {
			t.Errorf("%s of %d bytes: %d of %d bytes, %v", name, len(file), n, len(text), err)
		}
	}
}
