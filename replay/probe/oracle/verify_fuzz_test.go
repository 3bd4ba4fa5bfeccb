package oracle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/envelope"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

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
		v, err := oracle.VerifyMethod(context.Background(), probe.VerifyOptions{Request: md, Options: probe.Options{Depth: 2, Budget: 60, Refine: true, To: to, Method: "/p.S/M"}})
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
		return canaryText(int(b), request%8)
	}
}

// canaryText is what protobuf-es says when it stumbles over a canary.
func canaryText(index, slot int) string {
	id := uint64(index*8 + slot)
	tag := 0x46 | id&1 | id>>1&3<<3 | id>>3&0x3F<<7 | id>>9&0x7F<<14
	return fmt.Sprintf("illegal tag: field no %d wire type %d", tag>>3, tag&7)
}
