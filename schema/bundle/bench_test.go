package bundle

import (
	"fmt"
	"strings"
	"testing"
)

// largeBundle is a minified bundle of about a size, with so many messages among
// other code.
func largeBundle(size, messages int) []byte {
	var b strings.Builder
	b.WriteString(`!function(){"use strict";var P=R("proto3",e=>new S(e));`)
	filler := func(n int) string {
		return fmt.Sprintf(`function f%d(e,t){var n,r=e.length;if(!t||t.x/2>3&&/a[/]b/.test(e))return null;for(n=0;n<r;n++){var o=e[n];switch(o.kind){case"a":t.push({k:o.v,w:[1,2,3]});break;default:`+"t.s=`${o.v}-${n}`"+`}}return t.map((e=>e.k+%d)).filter(Boolean)}`, n, n)
	}
	for i := range messages {
		fmt.Fprintf(&b, `var M%d=class extends B{constructor(e){super(),this.a="",this.b=0,P.util.initPartial(e,this)}static{this.runtime=P}static{this.typeName="big.v1.Message%d"}static{this.fields=P.util.newFieldList((()=>[`, i, i)
		for f := 1; f <= 8; f++ {
			fmt.Fprintf(&b, `{no:%d,name:"field_%d",kind:"scalar",T:9,oneof:"o"},`, f, f)
		}
		fmt.Fprintf(&b, `{no:9,name:"other",kind:"message",T:M%d,repeated:!0}]))}static fromBinary(e,t){return(new M%d).fromBinary(e,t)}};`, (i*7)%messages, i)
		for n := 0; b.Len() < size/messages*(i+1); n++ {
			b.WriteString(filler(i*1000 + n))
		}
	}
	b.WriteString(`}();`)
	return []byte(b.String())
}

func BenchmarkExtract(b *testing.B) {
	src := largeBundle(20<<20, 3000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		r, err := extract(b.Context(), "big.js", src)
		if err != nil || len(r.Files) != 1 || len(r.Files[0].MessageType) != 3000 || len(r.Unresolved) > 0 {
			b.Fatal(err, len(r.Files), r.Unresolved)
		}
	}
}
