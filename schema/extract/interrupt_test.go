package extract

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"unwire/schema/archive"
)

// soon is the time within which a reading ends after its context did. It is under
// 0.1 s on an idle machine; tests run beside others.
const soon = 5 * time.Second

// manyMessages is a script of so many messages that refer to each other.
func manyMessages(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "export const M%d=proto3.makeMessageType(\"p.M%d\",()=>[", i, i)
		for j := range 10 {
			fmt.Fprintf(&b, "{no:%d,name:\"f%d\",kind:\"message\",T:M%d},", j+1, j, (i*7+j*13)%n)
		}
		b.WriteString("]);\n")
	}
	return b.Bytes()
}

// Every kind of input ends soon after the context does, wherever its reading is.
func TestInterrupted(t *testing.T) {
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	tw := tar.NewWriter(zw)
	const large = 192 << 20
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "passed.over", Size: large, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	for zeros := make([]byte, 1<<20); ; {
		if _, err := tw.Write(zeros); err != nil {
			break
		}
	}
	_ = tw.Close()
	_ = zw.Close()
	script := manyMessages(20_000)
	for name, data := range map[string][]byte{
		"messages.js":   script,
		"tokens.js":     []byte("newFieldList;" + strings.Repeat("a=b[c]+`${d}`;", 1<<20)),
		"nothing.js":    []byte("newFieldList;" + strings.Repeat("@", 32<<20)),
		"spreads.js":    []byte("var a=[];" + strings.Repeat("a=[...a,...a];", 1000) + strings.Repeat("proto3.makeMessageType(\"p.A\",()=>a);", 100_000)),
		"scripts.bin":   append(append([]byte("\x7fELF\x00"), script...), 0),
		"base64.bin":    append([]byte{0}, bytes.Repeat([]byte("CgphLnByb3Rv"), 1<<20)...),
		"names.bin":     bytes.Repeat([]byte("\n\x07a.proto\x00"), 1<<20),
		"literals.py":   bytes.Repeat([]byte("'\\n\\007a.proto\\\"' \"\\\"\""), 1<<19),
		"passed.tar.gz": packed.Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			for _, after := range []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond} {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan time.Time, 1)
				go func() {
					time.Sleep(after)
					ended <- time.Now()
					cancel()
				}()
				err := read(ctx, name, data)
				took := time.Since(<-ended)
				if took > soon {
					t.Errorf("ended %s after the context", took)
				}
				// On a fast machine, reading reaches the limit of its size first.
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, archive.ErrBomb) {
					t.Errorf("got %v", err)
				}
				t.Logf("interrupted after %s: %v later with %v", after, took, err)
			}
		})
	}
}

// read takes a file apart and joins what it declares.
func read(ctx context.Context, name string, data []byte) error {
	c := newCollector(name, formats())
	c.definitions = newDefinitionLimit(maxArchive)
	if err := c.addData(ctx, name, data); err != nil {
		return err
	}
	s, err := c.declared(ctx)
	if err == nil {
		_, err = Merge(ctx, s)
	}
	return err
}
