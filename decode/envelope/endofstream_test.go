package envelope

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnd(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     *End
		err      string
	}{
		{"success", `{}`, &End{}, ""},
		{"metadata", `{"metadata":{"a":["b","c"]}}`, &End{Metadata: map[string][]string{"a": {"b", "c"}}}, ""},
		{"error", `{"error":{"code":"invalid_argument","message":"no","details":[{"type":"a.B","value":"CAE","debug":{"n":1}}]}}`, &End{Error: &Error{"invalid_argument", "no", []Detail{{"a.B", []byte{8, 1}, []byte(`{"n":1}`)}}}}, ""},
		{"padded value", `{"error":{"code":"internal","details":[{"type":"a.B","value":"CA=="}]}}`, &End{Error: &Error{Code: "internal", Details: []Detail{{"a.B", []byte{8}, nil}}}}, ""},
		{"numeric code", `{"error":{"code":3}}`, &End{Error: &Error{Code: "invalid_argument"}}, ""},
		{"null", `{"error":null,"metadata":null}`, &End{}, ""},
		{"one string", `{"metadata":{"a":"b"}}`, &End{Metadata: map[string][]string{"a": {"b"}}}, ""},
		{"bad value", `{"error":{"code":"internal","details":[{"type":"a.B","value":"!"},{"type":"c.D","value":"CAE"}]}}`, &End{Error: &Error{Code: "internal", Details: []Detail{{"a.B", []byte{}, nil}, {"c.D", []byte{8, 1}, nil}}}}, `detail 0 cannot be read: the value "!" cannot be decoded: the data is not base64`},
		{"bad metadata", `{"error":{"code":"internal"},"metadata":{"a":1,"b":["c"]}}`, &End{Error: &Error{Code: "internal"}, Metadata: map[string][]string{"b": {"c"}}}, `the metadata "a" cannot be read`},
		{"no JSON", `{"error"`, &End{}, "JSON at offset 0x8"},
		{"no object", `[]`, &End{}, "JSON at offset 0x1"},
		{"empty", ``, &End{}, "JSON at offset 0x0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseEnd([]byte(c.in))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %s", err, c.err)
			}
			again, err := ParseEnd(appendEnd(nil, got))
			if d := cmp.Diff(got, again); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

func TestParseError(t *testing.T) {
	e, err := ParseError([]byte(`{"code":"not_found","message":"gone"}`))
	if err != nil || e == nil || e.Code != "not_found" || e.Message != "gone" {
		t.Errorf("%+v, %v", e, err)
	}
	if e, _ := ParseError([]byte(`{"other":1}`)); e != nil {
		t.Errorf("%+v", e)
	}
	if e, err := ParseError([]byte(`<html>`)); e != nil || err == nil {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestParseStatus(t *testing.T) {
	details := base64.StdEncoding.EncodeToString([]byte("\x08\x03\x1a\x1f\x0a\x19type.googleapis.com/a.Bcd\x12\x02\x08\x01"))
	header := map[string]string{"grpc-status": "3", "grpc-message": "bad%20%C3%BC", "grpc-status-details-bin": details}
	got, err := ParseStatus(func(n string) string { return header[n] })
	want := &End{Error: &Error{"invalid_argument", "bad ü", []Detail{{Type: "a.Bcd", Value: []byte{8, 1}}}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	for status, code := range map[string]string{"0": "", "16": "unauthenticated", "99": "unknown", "x": "unknown"} {
		got, _ := ParseStatus(func(n string) string {
			if n == "grpc-status" {
				return status
			}
			return ""
		})
		if got == nil || (got.Error == nil) != (code == "") || got.Error != nil && got.Error.Code != code {
			t.Errorf("status %s: %+v", status, got)
		}
	}
	if got, err := ParseStatus(func(string) string { return "" }); got != nil || err != nil {
		t.Errorf("no status: %+v, %v", got, err)
	}
}

func TestTrailer(t *testing.T) {
	want := []trailerField{{"grpc-status", "0"}, {"x", "a: b"}}
	got, err := ParseTrailer(appendTrailer(nil, want))
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	got, err = ParseTrailer([]byte("Grpc-Status:0\nnonsense\nx:1"))
	if len(got) != 2 || got[0].Name != "grpc-status" || err == nil || !strings.Contains(err.Error(), "0xe") {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCodes(t *testing.T) {
	for n := range 17 {
		if got, ok := CodeNumber(codeName(n)); got != n || !ok {
			t.Errorf("%d is %s is %d", n, codeName(n), got)
		}
	}
	if codeName(3) != "invalid_argument" || CodeOfStatus(404) != "unimplemented" || codeName(-1) != "unknown" {
		t.Error("the table is wrong")
	}
}
