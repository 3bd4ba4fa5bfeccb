package bundle

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// doublings is a script that names a value, and from each value a next one that
// has it twice.
func doublings(first, next, use string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "const v0=%s;\n", first)
	const times = 30
	for i := range times {
		fmt.Fprintf(&b, "const v%d=%s;\n", i+1, strings.ReplaceAll(next, "%", fmt.Sprint("v", i)))
	}
	b.WriteString(strings.ReplaceAll(use, "%", fmt.Sprint("v", times)))
	return b.String()
}

// A small script cannot make a value that takes much memory: what is not
// resolved is listed with its place.
func TestMemoryOfValues(t *testing.T) {
	const field = `{no:1,name:"x",kind:"scalar",T:9}`
	fields := strings.Repeat(field+",", 500)
	for name, src := range map[string]string{
		"arrays that are spread":           doublings("["+field+"]", "[...%,...%]", `proto3.makeMessageType("p.A",()=>%)`),
		"objects that are spread":          doublings(field, "{...%,...%}", `proto3.makeMessageType("p.A",()=>[%])`),
		"functions that return arrays":     doublings("()=>["+field+"]", "()=>[...%,...%]", `proto3.makeMessageType("p.A",%)`),
		"strings with +":                   doublings(`"abcdefgh"`, "%+%", `proto3.makeMessageType(%,()=>[])`),
		"strings with + in a chain":        doublings(`"abcdefgh"`, "%+%+%+%", `proto3.makeMessageType(%,()=>[])`),
		"templates":                        doublings(`"abcdefgh"`, "`${%}${%}`", `proto3.makeMessageType(%,()=>[])`),
		"join":                             doublings(`"abcdefgh"`, `[%,%].join(%)`, `proto3.makeMessageType(%,()=>[])`),
		"concat":                           doublings(`"abcdefgh"`, `"".concat(%,%)`, `proto3.makeMessageType(%,()=>[])`),
		"strings that are assigned":        `let a;a="abcdefgh";` + strings.Repeat("a=a+a;", 30) + `proto3.makeMessageType(a,()=>[])`,
		"methods that are not evaluated":   `let a="abcdefgh".repeat(1e9);a+=a;const b=Array(1e9).fill(` + field + `);proto3.makeMessageType(a,()=>[...b,...Object.assign({},b)])`,
		"namespaces in reflection JSON":    doublings(`{fields:{f:{type:"string",id:1}}}`, `{nested:{A:%,B:%}}`, `r.addJSON({nested:%})`),
		"reflection JSON in strings":       doublings("'\"A\":{\"fields\":{}},'", "%+%", "r.fromJSON(JSON.parse('{\"nested\":{\"package\":{\"nested\":{'+%+'}}}}'))"),
		"one list of many messages":        "const l=[" + fields + "];" + strings.Repeat(`proto3.makeMessageType("p.A",()=>l);`, 2000),
		"one list of many messages and ts": "const l=[" + fields + "];" + strings.Repeat(`new T("p.A",[...l]);`, 2000),
		"descriptors":                      "const d=\"" + strings.Repeat("IgAiACIA", 5000) + "\";" + strings.Repeat(`fileDesc("Cgd4LnByb3RvIgAiACIA"+d);`, 2000),
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			debug.FreeOSMemory()
			done, peak := make(chan struct{}), make(chan uint64)
			go func() {
				var most, first uint64
				for {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					if first == 0 {
						first = m.HeapAlloc
					}
					most = max(most, m.HeapAlloc)
					select {
					case <-done:
						peak <- most - first
						return
					case <-time.After(time.Millisecond):
					}
				}
			}()
			start := time.Now()
			r, err := extract(t.Context(), "x.js", []byte(src))
			close(done)
			if err != nil {
				t.Fatal(err)
			}
			used := <-peak
			// The budget grows with the script; the heap has garbage in addition.
			const budget = 256 // bytes of memory for each byte of a script
			most := uint64(64<<20 + 2*budget*len(src))
			if t.Logf("%d bytes of script: %d MiB, %s", len(src), used>>20, time.Since(start)); used > most {
				t.Errorf("%d MiB for a script of %d bytes", used>>20, len(src))
			}
			placed := false
			for _, u := range r.Unresolved {
				placed = placed || u.Place.Line > 0 && u.Place.Column > 0
			}
			if !placed {
				t.Errorf("nothing says what was not resolved:\n%.2000s", summary(r))
			}
		})
	}
}
