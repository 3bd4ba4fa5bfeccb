package query

import (
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures"
)

// A choice decides how a field is read, and what a capture is to remember.
func TestChoose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "\n\x05Lagos", "two")
	c := open(t, path)
	at, err := c.Resolve(t.Context(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	v := c.Views(t.Context(), at, nil)
	kinds := func() string { return v.Of(at.Call, captures.Up).Fields(at.Frames[0].Tree)[0].Kind }
	before := kinds()
	choice, err := ParseChoice("up/1:bytes")
	if err != nil || !choice.HasDir || choice.Dir != captures.Up {
		t.Fatalf("%+v, %v", choice, err)
	}
	r, fits, err := v.Choose(choice, at.Exchange, at.Frames)
	want := captures.Reading{Method: "/a.B/C", Dir: captures.Up, Path: "1", Type: "bytes"}
	if err != nil || !fits || r != want || before == "bytes" || kinds() != "bytes" {
		t.Errorf("%+v, fits %v, %v: %s, then %s", r, fits, err, before, kinds())
	}
	for text, words := range map[string]string{"7:bytes": "no message in the input has this field", "down/1:bytes": "no message"} {
		choice, err := ParseChoice(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := v.Choose(choice, at.Exchange, at.Frames); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ParseChoice("up/1:nonsense"); err == nil {
		t.Error("a type that is none was taken")
	}

	// What is not chosen any more is forgotten.
	choice, err = ParseChoice("up/1:auto")
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err := v.Choose(choice, at.Exchange, at.Frames); err != nil || r.Type != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// While a capture is recorded, its frames are read by what was chosen for the method.
func TestViewsOfMethod(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "one")
	c := open(t, path)
	if err := c.PutReading(t.Context(), captures.Reading{Method: "/a.B/C", Dir: captures.Up, Path: "1", Type: "bytes"}); err != nil {
		t.Fatal(err)
	}
	at, err := c.Resolve(t.Context(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	v := c.ViewsOfMethod(t.Context(), "/a.B/C", nil)
	if kind := v.Of(at.Call, captures.Up).Fields(at.Frames[0].Tree)[0].Kind; kind != "bytes" || v.Messages(captures.Up) != 1 {
		t.Errorf("%s, from %d messages", kind, v.Messages(captures.Up))
	}
	choice, err := ParseChoice("1:string")
	if err != nil {
		t.Fatal(err)
	}
	v.Add([]Choice{choice})
	if kind := v.Of(at.Call, captures.Up).Fields(at.Frames[0].Tree)[0].Kind; kind != "string" {
		t.Errorf("%s after another choice", kind)
	}
}
