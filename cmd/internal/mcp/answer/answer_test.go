package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"unwire/cmd/internal/contract"
)

// page returns the page of a request for so many objects of a size.
func page(t *testing.T, r Request, count, size int) *Answer {
	t.Helper()
	p, err := NewPage(r, "digest")
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		err := p.Add(fmt.Sprintf("F.uwc#%d", i+1), &contract.Definition{Element: fmt.Sprint(i), Text: strings.Repeat("x", size)})
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p.Answer("boundary", nil)
}

// TestPages: all items are on some page, once and in order, and no page exceeds the limit.
func TestPages(t *testing.T) {
	t.Parallel()
	const count, limit = 100, 4096
	next, cursor := 0, ""
	for pages := 0; ; pages++ {
		a := page(t, Request{MaxBytes: limit, Cursor: cursor}, count, 200)
		size := 0
		for _, item := range a.Items {
			size += len(item.Object)
			if want := fmt.Sprintf("F.uwc#%d", next+1); item.Address != want {
				t.Fatalf("item %d is %s, want %s", next, item.Address, want)
			}
			next++
		}
		if size > limit || len(a.Items) == 0 || len(a.Addresses) != len(a.Items) {
			t.Fatalf("page %d: %d bytes, %d items, %d addresses", pages, size, len(a.Items), len(a.Addresses))
		}
		if (a.Cursor == "") != (len(a.LeftOut) == 0) {
			t.Errorf("page %d: cursor %q, but left out: %v", pages, a.Cursor, a.LeftOut)
		}
		if cursor = a.Cursor; cursor == "" {
			break
		}
	}
	if next != count {
		t.Errorf("%d items on all pages, want %d", next, count)
	}
}

func TestNewPageErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{MaxBytes: 10}, "max_bytes must be from 1024 to 1048576, not 10"},
		{Request{MaxBytes: MostBytes + 1}, "max_bytes must be"},
		{Request{Cursor: "7"}, "cursor must be one that an answer returned"},
		{Request{Cursor: "-1.digest"}, "cursor must be one"},
		{Request{Cursor: "7.other"}, "other arguments"},
		{Request{Omit: make([]string, maxOmit+1)}, "omit can have at most 32 names"},
	} {
		if _, err := NewPage(c.r, "digest"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
	}
}

// TestDigest: a cursor depends on the tool and its arguments.
func TestDigest(t *testing.T) {
	t.Parallel()
	if Digest("a", []byte("{}")) == Digest("b", []byte("{}")) || Digest("a", []byte("{}")) == Digest("a", []byte("[]")) {
		t.Error("calls that differ have the same digest")
	}
}

// TestMention: addresses are listed once, and their number is bounded.
func TestMention(t *testing.T) {
	t.Parallel()
	p, err := NewPage(Request{}, "digest")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AddJSON("F.uwc#1", []byte(`{"v":1}`)); err != nil {
		t.Fatal(err)
	}
	p.Mention("F.uwc#1", "F.uwc#2", "F.uwc#2")
	p.LeaveOut(Omission{What: "something"})
	a := p.Answer("b", []string{"remark"})
	if fmt.Sprint(a.Addresses) != "[F.uwc#1 F.uwc#2]" || len(a.LeftOut) != 1 || a.Begin != "b" || a.End != "b" || len(a.Remarks) != 1 {
		t.Errorf("%+v", a)
	}
	for i := range 2 * maxAddresses {
		p.Mention(fmt.Sprint(i))
	}
	if n := len(p.Answer("b", nil).Addresses); n > maxAddresses+1 {
		t.Errorf("%d addresses", n)
	}
}

// TestAnswerOrder: what was recorded stands between the boundaries.
func TestAnswerOrder(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(page(t, Request{}, 1, 10))
	if err != nil {
		t.Fatal(err)
	}
	begin, item, addresses, left, end := strings.Index(string(text), `"begin_recorded"`), strings.Index(string(text), `"items"`),
		strings.Index(string(text), `"addresses"`), strings.Index(string(text), `"left_out"`), strings.Index(string(text), `"end_recorded"`)
	if begin < 0 || begin > item || item > addresses || addresses > left || left > end {
		t.Errorf("%s", text)
	}
}
