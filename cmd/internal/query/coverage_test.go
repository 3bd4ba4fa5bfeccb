package query

import (
	"path/filepath"
	"strings"
	"testing"

	"unwire/decode"
	"unwire/schema"
)

func TestCoverage(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.proto"), `syntax = "proto3"; package a; message M { string s = 1; } message R {} service B { rpc C(M) returns (R); }`)
	defs, err := schema.LoadDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.uwc")
	record(t, path, "text", "more text")
	capture := open(t, path)
	coverage := NewCoverage(defs, nil)
	called := 0
	if err := coverage.Add(t.Context(), capture, ParseAddress(path), func(*decode.Exchange) { called++ }); err != nil {
		t.Fatal(err)
	}
	r := coverage.Report()
	if coverage.Exchanges != 2 || called != 2 || r.Bytes == 0 || r.BytesExplained != r.Bytes || !r.Clean() {
		t.Errorf("%d exchanges, %d calls: %+v", coverage.Exchanges, called, r)
	}

	// Without the field, its frames are named by their addresses.
	write(t, filepath.Join(dir, "a.proto"), `syntax = "proto3"; package a; message M {} message R {} service B { rpc C(M) returns (R); }`)
	if defs, err = schema.LoadDir(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	coverage = NewCoverage(defs, nil)
	if err := coverage.Add(t.Context(), capture, ParseAddress(path+"#2"), nil); err != nil {
		t.Fatal(err)
	}
	unknown := coverage.Report().Unknown
	if len(unknown) != 1 || len(unknown[0].Frames) != 1 || !strings.HasSuffix(unknown[0].Frames[0], "a.uwc#2/up/0") {
		t.Errorf("%+v", unknown)
	}
}
