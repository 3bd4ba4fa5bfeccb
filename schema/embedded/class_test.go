package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"unwire/schema/classfile"
)

// classFile writes a class whose static initializer makes an array of the
// strings, as compilers do; in the pool they are in the opposite order.
func classFile(t testing.TB, texts []string) []byte {
	t.Helper()
	var pool, code bytes.Buffer
	count := 1
	u2 := func(b *bytes.Buffer, n int) { b.Write(binary.BigEndian.AppendUint16(nil, uint16(n))) }
	text := func(s []byte) int {
		pool.WriteByte(1)
		u2(&pool, len(s))
		pool.Write(s)
		count++
		return count - 1
	}
	name, descriptor, attribute := text([]byte("<clinit>")), text([]byte("()V")), text([]byte("Code"))
	pool.WriteByte(5)
	pool.Write(make([]byte, 8))
	count += 2
	index := map[int]int{}
	for i, s := range slices.Backward(texts) {
		at := text(modified(s))
		pool.WriteByte(8)
		u2(&pool, at)
		index[i] = count
		count++
	}
	code.Write([]byte{0x11, 0, byte(len(texts)), 0xbd, 0, 1, 0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) // sipush, anewarray, a tableswitch
	code.Write([]byte{0, 0})
	for i := range texts {
		code.Write([]byte{0x59, 0x10, byte(i)}) // dup, bipush
		if index[i] < 256 && i%2 == 0 {
			code.Write([]byte{classfile.OpLdc, byte(index[i])})
		} else {
			code.WriteByte(classfile.OpLdcW)
			u2(&code, index[i])
		}
		code.WriteByte(0x53) // aastore
	}
	code.WriteByte(0xb1)
	var out bytes.Buffer
	out.WriteString("\xca\xfe\xba\xbe")
	u2(&out, 0)
	u2(&out, 65)
	u2(&out, count)
	out.Write(pool.Bytes())
	for _, n := range []int{0x21, 0, 0, 0, 0, 1} { // no interfaces, no fields, a method
		u2(&out, n)
	}
	for _, n := range []int{8, name, descriptor, 1, attribute} {
		u2(&out, n)
	}
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(code.Len()+12)))
	u2(&out, 4)
	u2(&out, 0)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(code.Len())))
	out.Write(code.Bytes())
	out.Write(make([]byte, 6))
	return out.Bytes()
}

// modified is the modified UTF-8 of a string whose characters are bytes.
func modified(s string) []byte {
	var out []byte
	for _, c := range []byte(s) {
		if c == 0 || c >= 0x80 {
			out = append(out, 0xc0|c>>6, 0x80|c&0x3f)
		} else {
			out = append(out, c)
		}
	}
	return out
}

func TestClass(t *testing.T) {
	for _, f := range corpus(t) {
		var texts []string
		for c := range slices.Chunk(marshal(t, f), 700) {
			texts = append(texts, string(c))
		}
		data := classFile(t, append(texts, "Name", "Value"))
		if len(texts) > 100 || !classfile.Is(data) {
			t.Fatalf("%d pieces", len(texts))
		}
		got, err := ScanClass(context.Background(), data)
		if err != nil {
			t.Fatal(err)
		}
		wantFiles(t, got, formClass, f)
	}
}
