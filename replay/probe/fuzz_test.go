package probe

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCanariesAreReadBack(t *testing.T) {
	for index := range maxBatch {
		for s := range slot(slots) {
			b := appendCanary(nil, index, s)
			if len(b) != 3 || !utf8.Valid(b) {
				t.Fatalf("% x", b)
			}
			tag := uint64(b[0]&0x7F) | uint64(b[1]&0x7F)<<7 | uint64(b[2])<<14
			message := "illegal tag: field no " + itoa(tag>>3) + " wire type " + itoa(tag&7)
			if i, got, illegal, ok := readCanary(message); i != index || got != s || !illegal || !ok || tag&7 < 6 {
				t.Fatalf("%d %d: %s is read as %d %d %v %v", index, s, message, i, got, illegal, ok)
			}
		}
	}
}

func itoa(n uint64) string {
	s := ""
	for ; n > 9; n /= 10 {
		s = string(rune('0'+n%10)) + s
	}
	return string(rune('0'+n)) + s
}

// What a server answers is read without a panic.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"code":"internal","message":"parse binary: illegal tag: field no 33768 wire type 6"}`), 500)
	f.Add([]byte("\x02\x00\x00\x00\x2a{\"error\":{\"code\":\"internal\",\"message\":\"x\"}}"), 200)
	f.Add([]byte("\x80\x00\x00\x00\x20grpc-status: 13\r\ngrpc-message: %20"), 200)
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		for _, p := range []Protocol{ConnectUnary, ConnectStream, GRPC, GRPCWeb} {
			a := &answer{Status: status}
			(&client{protocol: p}).read(a, &http.Response{StatusCode: status, Header: http.Header{}}, data)
			a.finish(p)
			readCanary(a.message)
			kindES(a.message)
			if i := hit(a.message, []string{"a", "b"}, []int{1, 20, 40}); i >= 2 {
				t.Errorf("hit %d of 2", i)
			}
			readES("a", a.message, "", asList)
			readGo("a", a.message, asList)
			runtimeOf(a, p)
		}
	})
}

// A journal is read to its last whole line, whatever it holds.
func FuzzJournal(f *testing.F) {
	f.Add([]byte("{\"v\":1,\"event\":\"answer\",\"key\":\"a\",\"answer\":{\"status\":500}}\n{\"v\":1"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := &journal{answers: map[string]*answer{}}
		end, err := j.load(bytes.NewReader(data))
		if err == nil && end != int64(bytes.LastIndexByte(data, '\n')+1) {
			t.Errorf("%d of %d bytes are whole lines: %q", end, len(data), data)
		}
	})
}

// What a captured message shows is read from any bytes.
func FuzzHints(f *testing.F) {
	f.Add([]byte{0x0A, 0x02, 0x10, 0x01})
	f.Fuzz(func(_ *testing.T, data []byte) {
		o := Options{Hints: map[int32]Hint{}}
		o.hint(data, []int32{1})
		o.hint(data, nil)
		o.knowName(data)
	})
}

func TestDictionaryHasBothForms(t *testing.T) {
	words := strings.Join(Dictionary(nil), " ")
	if !strings.Contains(words, "page_size") || !strings.Contains(words, "pageSize") {
		t.Error(words)
	}
}
