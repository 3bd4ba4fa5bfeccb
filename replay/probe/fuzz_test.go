package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/envelope"
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
			if got := readCanary(message); got != (sighting{index, s, true, true}) || tag&7 < 6 {
				t.Fatalf("%d %d: %s is read as %+v", index, s, message, got)
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
			a.read(p, &http.Response{StatusCode: status, Header: http.Header{}}, data)
			a.finish(p)
			readCanary(a.message)
			kindES(a.message)
			if i := hit(a.message, []string{"a", "b"}, []int{1, 20, 40}); i >= 2 {
				t.Errorf("hit %d of 2", i)
			}
			for _, as := range []int{asNumber, asText, asList, asNulls, asMap, asAny} {
				readES("a", a.message, "", as)
				readGo("a", a.message, as)
			}
			if most := a.sizeLimit(5000); most < 0 || most >= 5000 {
				t.Errorf("at most %d bytes of 5000", most)
			}
			runtimeOf(a)
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

// Wire types are read from any bytes, as deep as the definitions go.
func FuzzSeenIn(f *testing.F) {
	f.Add([]byte{0x0A, 0x04, 0x12, 0x02, 0x1A, 0x00, 0x10, 0x01})
	md := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, data []byte) {
		seen := map[string]Hint{}
		SeenIn(seen, data, md)
		if len(seen) > len(data) {
			t.Errorf("%d fields in %d bytes", len(seen), len(data))
		}
	})
}

// Whatever a server answers, asking it comes to an end, and what is said of each
// field is one of three.
func FuzzVerify(f *testing.F) {
	f.Add([]byte{1, 0, 7, 2, 200, 3, 1, 1, 1, 9})
	f.Add([]byte{255, 254, 253, 254, 255, 255, 253})
	f.Add([]byte{0, 3, 3, 0, 0, 4, 4, 5, 255, 6})
	md := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	var answers atomic.Value
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		text := madeUp(answers.Load().([]byte), int(requests.Add(1)))                      //nolint:forcetypeassert // nothing else is stored
		json.NewEncoder(w).Encode(envelope.Error{Code: "invalid_argument", Message: text}) //nolint:errcheck // the client is this test
	}))
	f.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		answers.Store(append([]byte{}, data...))
		requests.Store(0)
		v, err := Verify(context.Background(), VerifyOptions{Request: md, Options: Options{Depth: 2, Budget: 60, Refine: true, To: to, Method: "/p.S/M"}})
		if err != nil {
			t.Fatal(err)
		}
		if v.Confirmed+v.Contradicted+v.Undecided != len(v.Claims) || v.Requests > 60 || len(v.Claims) == 0 {
			t.Errorf("%d requests; %d %d %d of %d", v.Requests, v.Confirmed, v.Contradicted, v.Undecided, len(v.Claims))
		}
	})
}

// madeUp is what a server says that says anything.
func madeUp(answers []byte, request int) string {
	if len(answers) == 0 {
		return ""
	}
	switch b := answers[request%len(answers)]; b {
	case 255:
		return "proto: cannot parse invalid wire-format data"
	case 254:
		return "proto: invalid UTF-8"
	case 253:
		return "premature EOF"
	default:
		c := appendCanary(nil, int(b), slot(request%slots))
		tag := uint64(c[0]&0x7F) | uint64(c[1]&0x7F)<<7 | uint64(c[2])<<14
		return "illegal tag: field no " + itoa(tag>>3) + " wire type " + itoa(tag&7)
	}
}

func TestDictionaryHasBothForms(t *testing.T) {
	words := strings.Join(Dictionary(nil), " ")
	if !strings.Contains(words, "page_size") || !strings.Contains(words, "pageSize") {
		t.Error(words)
	}
}
