package replay

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRefresh(t *testing.T) {
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := then.Add(90 * 24 * time.Hour)
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	ms := strconv.FormatInt(now.UnixMilli(), 10)
	for _, c := range []struct{ name, value, want string }{ // want is a pattern, or "" where it stays
		{"X-Request-Id", "0d3b5a52-8d2f-4f2c-8a55-0f9d5ea1c001", uuid},
		{"x-request-id", "req_of-unknown shape", uuid},
		{"x-session-id", "0D3B5A52-8D2F-4F2C-8A55-0F9D5EA1C001", strings.ToUpper(strings.ReplaceAll(uuid, "a-f", "A-F"))},
		{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", `00-[0-9a-f]{32}-[0-9a-f]{16}-01`},
		{"x-amzn-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1", `Root=1-` + strconv.FormatInt(now.Unix(), 16) + `-[0-9a-f]{24};Sampled=1`},
		{"x-amzn-trace-id", "Root=0d3b5a52-8d2f-4f2c-8a55-0f9d5ea1c001", "Root=" + uuid},
		{"date", "Sun, 01 Mar 2026 12:00:00 GMT", regexp.QuoteMeta("Sat, 30 May 2026 12:00:00 GMT")},
		{"x-client-timestamp", strconv.FormatInt(then.UnixMilli()-5, 10), ms},
		{"x-client-timestamp", strconv.FormatInt(then.Unix()+5, 10), strconv.FormatInt(now.Unix(), 10)},
		{"x-client-timestamp", "2026-03-01T12:00:00Z", regexp.QuoteMeta("2026-05-30T12:00:00Z")},
		{"x-client-timestamp", "12345", ""},
		{"connect-timeout-ms", "30000", "2500"},
		{"grpc-timeout", "30S", "2500m"},
		{"x-cursor-timezone", "Europe/Berlin", ""},
		{"x-cursor-client-version", "cli-2026.01.09-231024f", ""},
		{"x-ghost-mode", "implicit-false", ""},
		{"user-agent", "connect-es/1.6.1", ""},
		{"connect-protocol-version", "1", ""},
	} {
		r := newRefresher(now, then, 2500*time.Millisecond)
		got, ok := r.header(c.name, c.value)
		switch {
		case c.want == "" && (ok || got != c.value):
			t.Errorf("%s: %s became %s", c.name, c.value, got)
		case c.want != "" && (!ok || got == c.value || !regexp.MustCompile("^"+c.want+"$").MatchString(got)):
			t.Errorf("%s: %s became %s, %v, want %s", c.name, c.value, got, ok, c.want)
		}
	}
	if got, ok := newRefresher(now, then, 0).header("connect-timeout-ms", "30000"); ok || got != "30000" {
		t.Errorf("a deadline without a chosen timeout became %s", got)
	}
}

// An id is the same wherever it stands: in two headers, and in the body.
func TestRefreshIsConsistent(t *testing.T) {
	const id = "0d3b5a52-8d2f-4f2c-8a55-0f9d5ea1c001"
	r := newRefresher(time.Now(), time.Now(), 0)
	first, _ := r.header("x-request-id", id)
	second, _ := r.header("x-amzn-trace-id", "Root="+id)
	if second != "Root="+first {
		t.Errorf("%s and %s", first, second)
	}
	body, changed := r.body([]byte("\x0a\x24" + id + "\x10\x01"))
	if !changed || string(body) != "\x0a\x24"+first+"\x10\x01" {
		t.Errorf("body %q", body)
	}
	if _, changed := r.body([]byte("nothing of it")); changed {
		t.Error("another body changed")
	}
}
