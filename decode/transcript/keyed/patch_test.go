package keyed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/transcript/event"
)

// findAll returns the pieces in events of the server.
func findAll(bodies ...string) *Pieces {
	ex := &decode.Exchange{}
	for i, b := range bodies {
		ex.Frames = append(ex.Frames, decode.Frame{Dir: captures.Down, Seq: i, Frame: envelope.Frame{Data: []byte(b)}})
	}
	return Find(event.Read(ex))
}

// The texts of patches have the marks of the objects around them in the document.
func TestPatches(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   string
	}{
		{"the next document", []string{`{"p":"","o":"add","v":{"message":{"role":"system","content":""}}}`, `{"v":{"message":{"role":"assistant","content":""}},"c":1}`, `{"p":"/message/content","o":"append","v":"H"}`, `{"v":"o"}`}, `2 "H" 2 "o" `},
		{"patches in a patch", []string{`{"v":{"response":{"role":"assistant","fragments":[]}}}`, `{"p":"response","o":"BATCH","v":[{"p":"pending","v":false},{"p":"fragments","o":"APPEND","v":[{"type":"THINK","content":"Hm"}]}]}`, `{"p":"response/fragments/-1/content","o":"APPEND","v":"!"}`}, `2 "Hm" 2 "!" `},
		{"operations with types", []string{`{"operations":[{"type":"set","path":["messages","0"],"value":{"role":"assistant","parts":[]}},{"type":"append-text","path":["messages","0","parts","0","text"],"value":"Ho"}]}`}, `2 "Ho" `},
		{"the path of a file", []string{`{"type":"update","path":"src/a.go","value":"no","content":"yes"}`}, `0 "no" 0 "yes" `},
	} {
		got := ""
		for _, p := range findAll(c.events...).List {
			got += fmt.Sprintf("%d %q ", p.Speaker, p.Text)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// An event announces the kind of the texts that follow with the same key.
func TestAnnounced(t *testing.T) {
	got := ""
	for _, p := range findAll(`{"type":"start","block":0,"kind":"thinking"}`, `{"type":"push","block":0,"text":"Hm"}`, `{"type":"start","block":1,"kind":"answer"}`, `{"type":"push","block":1,"text":"Ho"}`).List {
		got += fmt.Sprintf("%d %q ", p.Channel, p.Text)
	}
	if want := `1 "Hm" 0 "Ho" `; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Patches that point into themselves, or into large objects, take no longer than their size allows.
func TestHostilePatches(t *testing.T) {
	start := time.Now()
	wide := `{"v":{` + strings.Repeat(`"a":[],`, 20_000) + `"b":[]}}`
	events := []string{wide}
	for range 20_000 {
		events = append(events, `{"p":"/b/0/list","o":"append","v":{"list":[{"p":"/b","o":"append","v":{"list":[]}}]}}`, `{"p":"/v/list","o":"append","v":{"list":[]}}`)
	}
	findAll(events...)
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("%v", d)
	}
}
