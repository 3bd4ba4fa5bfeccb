package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"unwire/decode/text"
	"unwire/decode/wire"
)

// What is there of a field that is cut off is told, in each view.
func TestCutField(t *testing.T) {
	whole, err := text.Parse([]byte(`1: {"hello world"} 2: {1: {"first name"} 4: {1: {"deep 日本 words"} 2: 99}} 3: 5`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		cut    int
		render string
		hex    string // what stands beside the bytes
	}{
		{"in text", 8, `
0000  1: string "hello "  (cut off)  ! wire: field 1 at 0x0: length 11, 6 bytes left
`, `1: string "hello "  ! wire: field 1 at 0x0: length 11, 6 bytes left`},
		{"in a character", 37, `
0000  1: string "hello world"
000d  2: message, 22 bytes  (cut off)  ! wire: field 2 at 0xd: length 35, 22 bytes left
000f    1: string "first name"
001b    4: message, 8 bytes  (cut off)  ! wire: field 4 at 0x1b: length 21, 8 bytes left
001d      1: string "deep "  (cut off)  ! wire: field 1 at 0x1d: length 17, 6 bytes left
`, `1: string "hello world"
2: message, 22 bytes  ! wire: field 2 at 0xd: length 35, 22 bytes left
1: string "first name"
4: message, 8 bytes  ! wire: field 4 at 0x1b: length 21, 8 bytes left
1: string "deep "  ! wire: field 1 at 0x1d: length 17, 6 bytes left`},
		{"behind a length", 15, `
0000  1: string "hello world"
000d  garbage bytes[2] 1223  ! wire: field 2 at 0xd: length 35, 0 bytes left
`, `1: string "hello world"
garbage bytes[2]  ! wire: field 2 at 0xd: length 35, 0 bytes left`},
	} {
		tree := wire.Parse(whole[:c.cut], wire.Options{})
		fields := View{}.Fields(tree)
		var out bytes.Buffer
		if err := RenderFields(&out, fields, RenderOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + out.String(); got != c.render {
			t.Errorf("%s:%s\nwant:%s", c.name, got, c.render)
		}
		out.Reset()
		v := NewHexView(&out, HexOptions{All: true, Columns: 40})
		v.Tree(tree, View{}, 0)
		if err := v.Flush(); err != nil {
			t.Fatal(err)
		}
		var beside, shown []string
		for line := range strings.Lines(out.String()) {
			k := len("00000000  ") + 3*40 - 1
			beside = append(beside, strings.TrimSpace(line[min(k, len(line)):]))
			shown = append(shown, strings.Fields(line[:min(k, len(line))])[1:]...)
		}
		if got := strings.Join(beside, "\n"); got != c.hex {
			t.Errorf("%s, hex:\n%s\nwant:\n%s", c.name, got, c.hex)
		}
		if got := strings.Join(shown, ""); got != fmt.Sprintf("%x", whole[:c.cut]) {
			t.Errorf("%s: the bytes beside: %s", c.name, got)
		}
	}
	// In JSON it is beside the garbage, which has all the bytes.
	b, err := json.Marshal(View{}.Fields(wire.Parse(whole[:8], wire.Options{})))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"wire":"garbage","off":0,"len":8`, `"value":"CgtoZWxsbyA="`, `"cut":{"n":1,"wire":"len","off":0,"len":8,"val":2,"kind":"string","type":"string","value":"hello "`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}
