package bundle

import (
	"strings"
	"testing"
)

// A script that is cut off at any byte is read up to there.
func TestCutOff(t *testing.T) {
	scripts := fuzzSeeds()
	for _, test := range extractTests() {
		scripts = append(scripts, test.src)
	}
	scripts = append(
		scripts,
		`class A extends B{constructor(){super("a.M",[{no:1,name:"x",kind:"enum",T:["a.E",E]}])}} var E=`,
		`""(E"typeName",""l.newFieldList(var E=`,
		`import{FromJSON as xFromJSON}from"./x";const protobufPackage="p";const A={encode(m,w){w.uint32(8).int32(m.e);return w},decode(i){},fromJSON(o){return{e:isSet(o.e)?xFromJSON(o.e):0}}}`,
	)
	for _, src := range scripts {
		if len(src) > 4000 {
			src = src[:4000]
		}
		for n := range len(src) + 1 {
			for _, before := range []string{"", "var E=", "export{", "("} {
				func() {
					defer func() {
						if p := recover(); p != nil {
							t.Fatalf("%q: %v", before+src[:n], p)
						}
					}()
					if _, err := extract(t.Context(), "x.js", []byte(before+src[:n])); err != nil {
						t.Fatal(err)
					}
				}()
			}
		}
	}
}

// A binding without a value, and every other name, may be the last token.
func TestNamesAtTheEnd(t *testing.T) {
	for _, src := range fuzzSeeds() {
		for _, name := range []string{"A", "E", "E_", "p", "B", "M", "f", "m", "w"} {
			for _, end := range []string{"var %=", "let{%}=", "const[%]=", "%=", "%.", "%(", "class %", "class % extends", "function %", "function %(", "export{% as", "import{% as", "import %", "%=>", "(%)=>", "%={", "`${%"} {
				if _, err := extract(t.Context(), "x.js", []byte(src+";"+strings.ReplaceAll(end, "%", name))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
