package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/captures/transfer"
	secrets "unwire/decode/secret"
)

const secret = "made-up-secret-4711-xyz"

func TestMask(t *testing.T) {
	ctx := context.Background()
	from := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	for range 2 {
		rec, err := from.Begin(captures.Exchange{
			Method: "GET", URL: "https://h/?api_key=" + secret, Status: 200,
			RequestHeaders: captures.Headers{
				{Name: "Content-Type", Value: "application/proto"},
				{Name: "connect-protocol-version", Value: "1"},
				{Name: "TE", Value: "trailers"},
				{Name: "x-person", Value: "Ada"},
				{Name: "x-again", Value: "Ada"},
				{Name: "x-other", Value: "Bob"},
				{Name: "x-empty", Value: ""},
				{Name: "x-known", Value: "[redacted:0123abcd]"},
				{Name: "authorization", Value: "Bearer " + secret},
			},
			ResponseHeaders:  captures.Headers{{Name: "set-cookie", Value: "id=" + secret + "; Path=/"}, {Name: "location", Value: "/x?token=" + secret}},
			ResponseTrailers: captures.Headers{{Name: "grpc-status", Value: "0"}, {Name: "x-trailer", Value: "Ada"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.EndAt(1, captures.Complete, "no route to "+secret)
	}
	if err := from.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	view := transfer.Mask(clean(t, from))
	var first *captures.Exchange
	for ex, err := range view.Exchanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = ex
		}
		text, err := json.Marshal(ex)
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{secret, "Ada", "Bob"} {
			if strings.Contains(string(text), gone) {
				t.Errorf("%s is in %s", gone, text)
			}
		}
		for name, want := range map[string]string{
			"content-type": "application/proto", "connect-protocol-version": "1", "te": "trailers", "x-empty": "", "x-known": "[redacted:0123abcd]",
			"x-person": first.RequestHeaders.Get("x-person"), "x-again": first.RequestHeaders.Get("x-person"),
		} {
			if got := ex.RequestHeaders.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := ex.RequestHeaders.Get("authorization"); !strings.HasPrefix(got, "Bearer [redacted:") {
			t.Errorf("authorization %q", got)
		}
		if ex.RequestHeaders.Get("x-other") == ex.RequestHeaders.Get("x-person") {
			t.Error("values that differ have one placeholder")
		}
		if ex.ResponseTrailers.Get("grpc-status") != "0" || ex.ResponseTrailers.Get("x-trailer") != ex.RequestHeaders.Get("x-person") {
			t.Errorf("trailers %v", ex.ResponseTrailers)
		}
	}
	again, err := transfer.Mask(from).Exchange(ctx, 1)
	if err != nil || again.RequestHeaders.Get("x-person") == first.RequestHeaders.Get("x-person") {
		t.Errorf("two views have one key: %v", err)
	}
	if stored, err := from.Exchange(ctx, 1); err != nil || stored.RequestHeaders.Get("x-person") != "Ada" {
		t.Errorf("the capture itself has changed: %v", err)
	}
}

// clean is a view without secrets, as an export has it.
func clean(t *testing.T, from *store.Store) transfer.Source {
	t.Helper()
	v, err := secrets.NewView(t.Context(), from, redact.New(redact.Options{}), &secrets.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReport(t *testing.T) {
	var r transfer.Report
	for i := range 150 {
		r.Problem("here", "%d", i)
	}
	if len(r.Problems) != 100 || r.More != 50 || r.Problems[7] != "here: 7" {
		t.Errorf("%d problems, %d more", len(r.Problems), r.More)
	}
}

// TestValuesLimit: a value that is too large is not read into memory.
func TestValuesLimit(t *testing.T) {
	v := transfer.NewJSONValues(strings.NewReader(`[1, 2] "` + strings.Repeat("x", 1<<20) + `"`))
	var list []int
	if err := v.Next(64, &list); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	var text string
	if err := v.Next(1000, &text); !errors.Is(err, transfer.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}
