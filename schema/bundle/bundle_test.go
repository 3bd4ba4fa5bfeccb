package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"
)

// summary is a result as lines: what is declared, sorted as the files are, then
// what is unresolved.
func summary(r *Result) string {
	var b strings.Builder
	var message func(full string, m *descriptorpb.DescriptorProto)
	message = func(full string, m *descriptorpb.DescriptorProto) {
		fmt.Fprintf(&b, "message %s\n", full)
		for _, f := range m.Field {
			kind := strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
			fmt.Fprintf(&b, "  %d %s %s%s\n", f.GetNumber(), f.GetName(), kind, f.GetTypeName())
		}
		for _, n := range m.NestedType {
			message(full+"."+n.GetName(), n)
		}
		for _, e := range m.EnumType {
			fmt.Fprintf(&b, "enum %s.%s %d\n", full, e.GetName(), len(e.Value))
		}
	}
	for _, f := range r.Files {
		for _, m := range f.MessageType {
			message(f.GetPackage()+"."+m.GetName(), m)
		}
		for _, e := range f.EnumType {
			fmt.Fprintf(&b, "enum %s.%s %d\n", f.GetPackage(), e.GetName(), len(e.Value))
		}
		for _, s := range f.Service {
			fmt.Fprintf(&b, "service %s.%s\n", f.GetPackage(), s.GetName())
			for _, m := range s.Method {
				fmt.Fprintf(&b, "  %s(%s) %s %v %v\n", m.GetName(), m.GetInputType(), m.GetOutputType(), m.GetClientStreaming(), m.GetServerStreaming())
			}
		}
	}
	for _, u := range r.Unresolved {
		fmt.Fprintf(&b, "unresolved %d:%d %s: %s\n", u.Place.Line, u.Place.Column, u.Element, u.Reason)
	}
	return b.String()
}

// result is what the scripts of an extractor declare.
func result(t *testing.T, e *Extractor) *Result {
	t.Helper()
	r, err := e.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An extractTest is a script, and the summary of what it declares.
type extractTest struct{ src, want string }

func extractTests() map[string]extractTest {
	const a, b = "message p.A\n  1 b message.p.B\n", "message p.B\n  1 s string\n"
	return map[string]extractTest{
		"webpack 5": {
			`(()=>{var e={12:(e,t,n)=>{n.d(t,{x:()=>r});const r=n(7).proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}])},
			"./a.js":(e,t,n)=>{var r=n(12);n(7).proto3.makeMessageType("p.A",(()=>[{no:1,name:"b",kind:"message",T:r.x}]))}}})()`,
			a + b,
		},
		"webpack 4": {
			`!function(e){}({12:function(e,t,n){"use strict";n.d(t,"x",(function(){return r}));var r=n(7).proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}])},
			13:function(e,t,n){var r=n(12);n(7).proto3.makeMessageType("p.A",(function(){return[{no:1,name:"b",kind:"message",T:r.x}]}))}})`,
			a + b,
		},
		"webpack 4, modules in an array": {
			`(window.webpackJsonp=window.webpackJsonp||[]).push([[0],[function(e,t){},function(e,t,n){"use strict";n.d(t,"x",(function(){return r}));var r=n(7).proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}])},
			(e,t,n)=>{var r=n(1);n(7).proto3.makeMessageType("p.A",(function(){return[{no:1,name:"b",kind:"message",T:r.x}]}))}]])`,
			a + b,
		},
		"webpack, modules in strings": {
			`(()=>{var m={"./b.js":((u,e,r)=>{
			eval("{r.d(e, { x: () => (B) });\nconst B = proto3.makeMessageType(\"p.B\", () => [{no:1,name:'s',kind:'scalar',T:9}]);\n//# sourceURL=x\n}");
			}),"./a.js":((u,e,r)=>{
			eval(r.ts("var b = r('./b.js'); proto3.makeMessageType('p.A', () => [{no:1,name:\"b\",kind:\"message\",T:b.x}]);"))
			})}})(); eval("short"), my.eval("proto3.makeMessageType('p.C', () => [{no:1,name:'s',kind:'scalar',T:9}])")`,
			a + b,
		},
		"protobuf-ts, classes as functions": {
			`var a=function(t){function i(){return t.call(this,"p.A",[{no:1,name:"b",kind:"message",T:function(){return b}}])||this}return i}(M),x=new a,
			c=function(e){function t(){return k(this,t),s(this,t,["p.B",[{no:1,name:"s",kind:"scalar",T:9}]])}return h(t,e),d(t)}(M),b=new c,
			e=(function(_super){__extends(C,_super);function C(){return _super.call(this,"p.C",[])||this}return C}(M))`,
			a + b + "message p.C\n",
		},
		"protobufjs, arrows and nothing to write": {
			`var $=(e=>(e.p=function(){const t={};return t.A=function(){function e(){}return e.encode=(e,t)=>(t||(t=W.create()),null!=e.b&&Object.hasOwnProperty.call(e,"b")&&$.p.B.encode(e.b,t.uint32(10).fork()).ldelim(),t),e.decode=(e,t)=>{},e}(),
			t.B=function(){function e(){}return e.encode=(e,t)=>(t||(t=W.create()),null!=e.accountID&&Object.hasOwnProperty.call(e,"accountID")&&t.uint32(10).string(e.accountID),t),e.decode=(e,t)=>{},e}(),
			t.C=function(){function e(){}return e.encode=(e,t)=>t,e.decode=(e,t)=>{},e}(),t}(),e))({});
			m.base64=function(){var e={};e.encode=function(e,t,n){return""};e.decode=function(e,t,n){return 0};return e}()`,
			a + "message p.B\n  1 accountID string\nmessage p.C\n",
		},
		"google-protobuf, modules of two packages with one name": {
			`var r={1:(e,t,n)=>{var o={};o.p.B=function(){},o.p.B.serializeBinaryToWriter=function(e,t){t.writeString(1,r)},o.p.B.prototype.getS=function(){return g.getFieldWithDefault(this,1,"")},o.p.E={ZERO:0},g.object.extend(t,o.p)},
			2:(e,t,n)=>{var u={};u.q.B=function(){},u.q.B.serializeBinaryToWriter=function(e,t){t.writeInt32(1,r)},u.q.B.prototype.getExtension$=function(){return g.getFieldWithDefault(this,1,0)},u.q.E={ZERO:0},g.object.extend(t,u.q)},
			3:(e,t,n)=>{var i=()=>n(1);var a=i(),b=n(2);t.S={get:{path:"/p.S/Get",requestStream:!1,responseStream:!1,requestType:a.B,responseType:b.B}}}}`,
			"message p.B\n  1 s string\nenum p.E 1\nservice p.S\n  Get(.p.B) .q.B false false\nmessage q.B\n  1 extension int32\nenum q.E 1\n",
		},
		"ts-proto, names as they are written out": {
			`const protobufPackage="p"; const Foo36_Bar={$type:"p.Foo3_6.Bar",encode(m,w){w.uint32(10).string(m.s);return w},decode(i){}},
			Foo36={$type:"p.Foo3_6",encode(m,w){Foo36_Bar.encode(m.bar,w.uint32(10).fork()).ldelim();return w},decode(i){}}, Foo3={$type:"p.Foo3",encode(m,w){return w},decode(i){},fromPartial(o){}},
			Foo36_Bar_Kind=function(E){E[E["ZERO"]=0]="ZERO";E[E["UNRECOGNIZED"]=-1]="UNRECOGNIZED";return E}({})`,
			"message p.Foo3\nmessage p.Foo3_6\n  1 bar message.p.Foo3_6.Bar\nmessage p.Foo3_6.Bar\n  1 s string\nenum p.Foo3_6.Bar.Kind 1\n",
		},
		"ts-proto, a package that only its service tells": {
			`const A={encode(m,w){B$1.encode(m.b,w.uint32(10).fork()).ldelim();return w},decode(i){},fromPartial(o){}};
			const B$1={encode(m,w){w.uint32(10).string(m.s);return w},decode(i){},fromPartial(o){}};
			const S={get:{path:"/p.S/Get",requestStream:false,responseStream:false,requestDeserialize:(v)=>A.decode(v),responseDeserialize:(v)=>B$1.decode(v)}}`,
			a + b + "service p.S\n  Get(.p.A) .p.B false false\nunresolved 1:9 A: the script declares no package for it; extract puts it into no package, unless a service reveals the package\n",
		},
		"an extension of options": {
			`import{MethodOptions}from"@bufbuild/protobuf"; proto2.makeExtension("p.safe",MethodOptions,()=>({no:50000,kind:"scalar",T:8}))`,
			"",
		},
		"ts-proto, CommonJS": {
			`exports.A=exports.B=exports.protobufPackage=void 0; exports.protobufPackage="p";
			exports.A={encode(m,w){if(m.b!==undefined){exports.B.encode(m.b,w.uint32(10).fork()).ldelim();}return w;},decode(i){},fromPartial(o){}};
			const B=exports.B={encode(m,w){if(m.s!==""){w.uint32(10).string(m.s);}return w;},decode(i){},fromPartial(o){}};`,
			a + b,
		},
		"ts-proto, Rollup's modules": {
			`var bt={},r1;function rb(){return r1||(r1=1,function(e){e.protobufPackage="p",e.B={encode:(m,w)=>(""!==m.s&&w.uint32(10).string(m.s),w),decode(e){}}}(bt)),bt}
			var at={};!function(e){e.protobufPackage="p";const n=rb();e.A={encode:(m,w)=>(void 0!==m.b&&n.B.encode(m.b,w.uint32(10).fork()).ldelim(),w),decode(e){}}}(at);`,
			a + b,
		},
		"ts-proto, a name in the export alone": {
			`const x="p",q={encode(m,w){return q2.encode(m.b,w.uint32(10).fork()).join(),w},decode(i){}},q2={encode(m,w){return w.uint32(10).string(m.s),w},decode(i){}};export{q as A,q2 as B,x as protobufPackage};`,
			a + b,
		},
		"protobufjs, inlined": {
			`var R,o,n,t;R.exports=(o={},(t=R.roots.default).p=((n={}).A=function(){function e(e){}return e.encode=function(e,n){return n||(n=w.create()),null!=e.b&&t.p.B.encode(e.b,n.uint32(10).fork()).ldelim(),n},e}(),n.B=function(){function e(e){}return e.encode=function(e,n){return null!=e.s&&n.uint32(10).string(e.s),n},e}(),n),t)`,
			a + b,
		},
		"two copies, one with less": {
			`proto3.makeMessageType("p.A",()=>[{no:1,name:"b",kind:"message",T:B}]);var B=proto3.makeMessageType("p.B",()=>[]);
			(()=>{var B=proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}]);proto3.makeMessageType("p.A",()=>[])})()`,
			a + b,
		},
		"two definitions that contradict": {
			`proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}]);
proto3.makeMessageType("p.B",()=>[{no:2,name:"s",kind:"scalar",T:9}])`,
			b + "message p.B_2\n  2 s string\nunresolved 2:8 p.B: another definition with this name has other fields, so extract named this one p.B_2\n",
		},
		"a name that is gone": {
			`var protobufPackage="p",q={encode(m,w){return w.uint32(10).string(m.s),w},decode(i){}};` + strings.Repeat(" ", 300),
			"message p.Message_a048b688\n  1 s string\nunresolved 1:27 p.Message_a048b688: a minifier removed its name, so extract made one up\n",
		},
		"ts-proto, oneofs as unions": {
			`const protobufPackage="p";const A={encode(m,w){switch(m.kind?.$case){case"text":w.uint32(10).string(m.kind.text);break;case"no":w.uint32(16).int32(m.kind.value);break}return w},decode(i){}}`,
			"message p.A\n  1 text string\n  2 no int32\n",
		},
		"ts-proto, enums": {
			`var protobufPackage="p",i;!function(e){e[e.LOW=0]="LOW",e[e.UNRECOGNIZED=-1]="UNRECOGNIZED"}(i||(t.Level=i={}));function s(e){switch(e){case 0:case"LOW":return i.LOW;default:return i.UNRECOGNIZED}}
			const A={encode(m,w){return 0!==m.level&&w.uint32(8).int32(m.level),w},decode(i){},fromJSON(e){const t={level:0};return set(e.level)&&(t.level=s(e.level)),t}}`,
			"message p.A\n  1 level enum.p.Level\nenum p.Level 1\n",
		},
		"Telescope": {
			`var Level;(function(Level){Level[Level["LOW"]=0]="LOW";Level[Level["UNRECOGNIZED"]=-1]="UNRECOGNIZED";})(Level||(exports.Level=Level={}));
			exports.A={typeUrl:"/p.q.A",encode(m,w){if(m.s!=="")w.uint32(10).string(m.s);return w},decode(i){}}`,
			"message p.q.A\n  1 s string\nenum p.q.Level 1\n",
		},
		"esbuild, lazy modules": {
			`var e=(n,r)=>()=>(n&&(r=n(n=0)),r);var A,B,i=e(()=>{B=proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}])});
			var o=e(()=>{i();A=proto3.makeMessageType("p.A",()=>[{no:1,name:"b",kind:"message",T:B}])});`,
			a + b,
		},
		"esbuild, CommonJS": {
			`var b=c((exports,module)=>{exports.Q=(0,z.proto3.makeMessageType)("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}])});
			var d=__toESM(b(),1);proto3.makeMessageType("p.A",()=>[{no:1,name:"b",kind:"message",T:d.Q}])`,
			a + b,
		},
		"classes compiled for old browsers": {
			`var B=(function(e){r(t,e);function t(n){var o=e.call(this)||this;return o}t.runtime=i.proto3;t.typeName="p.B";
			t.fields=i.proto3.util.newFieldList(function(){return[{no:1,name:"s",kind:"scalar",T:i.ScalarType.STRING}]});return t}(i.Message));
			var A=(function(e){function t(){}t.typeName="p."+"A";t.fields=i.proto3.util.newFieldList(function(){return[{no:1,name:"b",kind:"message",T:B}]});return t}(i.Message));`,
			a + b,
		},
		"names taken apart, spread and put together": {
			"const {proto3:q,ScalarType:{STRING:s}}=R;const one={no:1,name:`s`,kind:'sca'+'lar',T:0x9},rest=[one];var B=q.makeMessageType(`p.${'B'}`,()=>[...rest]);" +
				`q.makeMessageType("p.A",()=>[{...{no:1,kind:"message"},name:"b",T:()=>B}])`,
			a + b,
		},
		"a class in an inner scope has the name of another": {
			`function f(){class X extends M{}X.typeName="p.B";X.fields=proto3.util.newFieldList(()=>[{no:1,name:"s",kind:"scalar",T:9}]);W=X}
			class X extends M{static typeName="p.A";static fields=proto3.util.newFieldList(()=>[{no:1,name:"b",kind:"message",T:Y}])}let W,Y=W;`,
			a + b,
		},
		"broken before, between and after": {
			"var x = ( } ] function ( {{ \n proto3.makeMessageType('p.B',()=>[{no:1,name:'s',kind:'scalar',T:9}]);\n var s = 'never closed\n if (a /b) } else \n" +
				"proto3.makeMessageType('p.A',()=>[{no:1,name:'b',kind:'message',T:B}]) \n `never ${ closed",
			a + b,
		},
		"what cannot be told": {
			`proto3.makeMessageType("p.A",()=>[{no:1,name:"b",kind:"message",T:gone()},{no:2,name:"n"+x,kind:"scalar",T:9}, 7])`,
			"message p.A\n  1 b bytes\n" +
				"unresolved 1:75 p.A: the name, number or kind of a field is not a constant\nunresolved 1:112 p.A: a field is not a constant object\n" +
				"unresolved 1:71 p.A.b: its type, the message gone, was not found, so extract declared it as bytes\n",
		},
		"two shapes of one name": {
			`var B=proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}]);{let B=proto3.makeMessageType("p.B",()=>[{no:1,name:"i",kind:"scalar",T:5}]);
			proto3.makeMessageType("p.A",()=>[{no:1,name:"b",kind:"message",T:B}])}proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}])`,
			"message p.A\n  1 b message.p.B_2\n" + b + "message p.B_2\n  1 i int32\nunresolved 1:91 p.B: another definition with this name has other fields, so extract named this one p.B_2\n",
		},
		"a service of connect-es": {
			`const S={typeName:"p.S",methods:{get:{name:"Get",I:A,O:A,kind:k.MethodKind.BiDiStreaming},put:{name:"Put",I:A,O:A,kind:1}}};
			var A=proto3.makeMessageType("p.A",[])`,
			"message p.A\nservice p.S\n  Get(.p.A) .p.A true true\n  Put(.p.A) .p.A false true\n",
		},
		"grpc-web and grpc-js of google-protobuf": {
			`proto.p.A.serializeBinaryToWriter=function(e,t){var f=void 0;f=e.getB();if(f!=null){t.writeMessage(1,f,proto.p.B.serializeBinaryToWriter)}};
			proto.p.A.prototype.getB=function(){return jspb.Message.getWrapperField(this,proto.p.B,1)};
			proto.p.B.serializeBinaryToWriter=function(e,t){(f=e.getS()).length>0&&t.writeString(1,f)};
			proto.p.B.prototype.getS=function(){return jspb.Message.getFieldWithDefault(this,1,"")};
			var m=new g.web.MethodDescriptor("/p.S/Get",g.web.MethodType.SERVER_STREAMING,proto.p.A,proto.p.B,e=>e.serializeBinary(),proto.p.B.deserializeBinary);
			exports.T={chat:{path:"/p.T/Chat",requestStream:!0,responseStream:!0,requestType:x_pb.A,responseType:x_pb.B}}`,
			a + b + "service p.S\n  Get(.p.A) .p.B false true\nservice p.T\n  Chat(.p.A) .p.B true true\n",
		},
		"reflection JSON in a string": {
			`Root.fromJSON(JSON.parse('{"nested":{"p":{"nested":{"A":{"fields":{"b":{"type":"B","id":1}}},"B":{"fields":{"s":{"type":"string","id":1}}}}}}}'))`,
			a + b,
		},
		"reflection JSON added to a root": {
			`r.addJSON({p:{nested:{A:{fields:{b:{type:"B",id:1}}},B:{fields:{s:{type:"string",id:1}}}}}})`,
			a + b,
		},
	}
}

func TestExtract(t *testing.T) {
	for name, test := range extractTests() {
		t.Run(name, func(t *testing.T) {
			r, err := extract(t.Context(), "x.js", []byte(test.src))
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(r); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// A bundle that would write a file if it ran is read and does not.
func TestNothingRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	src := fmt.Sprintf(`require("fs").writeFileSync(%q,"x");eval("require('fs').writeFileSync(%s,'x')");
	proto3.makeMessageType((()=>{require("fs").writeFileSync(%q,"x");return "p.A"})(),()=>[{no:1,name:"s",kind:"scalar",T:9}])`, file, file, file)
	r, err := extract(t.Context(), "x.js", []byte(src))
	if err != nil || len(r.Files) != 1 {
		t.Errorf("%v, %d files", err, len(r.Files))
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the bundle ran")
	}
}

func TestTooLarge(t *testing.T) {
	_, err := extract(t.Context(), "x.js", make([]byte, MaxScript+1))
	if !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// What nests deep, or makes a slow reader look at things again and again.
func TestHostileScripts(t *testing.T) {
	const n = 200_000
	for name, src := range map[string]string{
		"parentheses": `proto3.makeMessageType("p.A",` + strings.Repeat("(", n),
		"brackets":    `proto3.makeMessageType("p.A",` + strings.Repeat("[", n) + strings.Repeat("]", n) + ")",
		"blocks":      strings.Repeat("{var a=1;", n/4) + `proto3.makeMessageType(a,a)`,
		"plus":        `proto3.makeMessageType("p"` + strings.Repeat(`+"a"`, n) + `,[])`,
		"self":        "var a=a+`${a}${b}`,b=a;proto3.makeMessageType(a,a,b);proto3.makeMessageType(b,()=>b)",
		"regexps":     "newFieldList;" + strings.Repeat("=/[", n),
		"backticks":   "newFieldList;" + strings.Repeat("`${", n),
		"comments":    "newFieldList;" + strings.Repeat("/*", n),
		"classes":     "newFieldList(" + strings.Repeat("class ", n),
		"anchors":     strings.Repeat(`makeMessageType("a",`, n/100),
		"news":        strings.Repeat(`new X("a",[`, n/100),
		"nested":      strings.Repeat(`{nested:`, n/100),
		"chain":       "proto3.makeMessageType" + strings.Repeat(".a", n) + `("p.A",[])`,
		"lets":        "newFieldList;" + strings.Repeat("let a+", n),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if _, err := extract(ctx, "x.js", []byte(src)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothing(t *testing.T) {
	r, err := extract(t.Context(), "x.js", []byte(`console.log("typeName", {nested: 1})`))
	if err != nil || len(r.Files)+len(r.Unresolved)+len(r.Forms) > 0 {
		t.Error(err, summary(r))
	}
}

// fuzzSeeds are scripts of every codegen.
func fuzzSeeds() []string {
	return []string{
		`class A extends M{static typeName="p.A";static fields=proto3.util.newFieldList(()=>[{no:1,name:"s",kind:"map",K:9,V:{kind:"scalar",T:5}}])}`,
		`proto2.makeEnum("p.E",[{no:1,name:"X"}]);proto2.makeExtension("p.x",A,()=>({no:100,kind:"scalar",T:9,default:"a"}))`,
		`class A extends T{constructor(){super("p.A",[{no:1,name:"e",kind:"enum",T:()=>["p.E",E,"E_"]}])}}var E=(e=>(e[e.A=0]="A",e))(E||{})`,
		`r.addJSON({p:{nested:{A:{oneofs:{o:{oneof:["s"]}},fields:{s:{type:"string",id:1}}},S:{methods:{G:{requestType:"A",responseType:"A"}}}}}})`,
		`a.p=(function(){const p={};p.A=(function(){function A(){}A.encode=function(m,w){w.uint32(10).string(m.s);w.uint32(18).fork().uint32(8).int32(k).uint32(16).int32(m.m[k]).ldelim();return w};return A})();return p})()`,
		`var protobufPackage="p",A={encode(m,w){for(const v of m.xs)w.uint32(10).string(v);A.encode(m.a,w.uint32(18).fork()).join();return w},decode(){}}`,
		`proto.p.A.serializeBinaryToWriter=function(e,t){t.writeString(1,f)};proto.p.A.oneofGroups_=[[1]];proto.p.A.KindCase={KIND_NOT_SET:0,S:1}`,
		"fileDesc(\"CgphLnByb3RvEgFwIgMKAUFiBnByb3RvMw\")/a`${b}`",
	}
}

func FuzzExtract(f *testing.F) {
	for _, src := range fuzzSeeds() {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := extract(t.Context(), "x.js", src)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range r.Unresolved {
			if u.Place.Offset > len(src) || u.Place.Line > bytes.Count(src, []byte("\n"))+1 {
				t.Errorf("%v is not in the source", u.Place)
			}
		}
	})
}

// What one file refers to in another is found by the module's path.
func TestReferencesOverFiles(t *testing.T) {
	const message = `exports.protobufPackage=%q;exports.Coin={encode(m,w){w.uint32(10).string(m.s);return w},decode(i){}};`
	e := New()
	for name, src := range map[string]string{
		"x/a/coin.js":  fmt.Sprintf(message, "a"),
		"x/b/index.js": fmt.Sprintf(message, "b"),
		"x/use.js": `exports.protobufPackage="use";const one=require("./a/coin"),two=__importStar(require("./b"));
			exports.Use={encode(m,w){one.Coin.encode(m.one,w.uint32(10).fork()).ldelim();two.Coin.encode(m.two,w.uint32(18).fork()).ldelim();return w},decode(i){}}`,
		"x/es.mjs": `import { Coin as C } from "./b/index.js"; const protobufPackage="es";
			export const Es={encode(m,w){C.encode(m.one,w.uint32(10).fork()).ldelim();return w},decode(i){}}`,
	} {
		if err := e.Add(t.Context(), name, []byte(src)); err != nil {
			t.Fatal(err)
		}
	}
	got := summary(result(t, e))
	for _, want := range []string{"message use.Use\n  1 one message.a.Coin\n  2 two message.b.Coin\n", "message es.Es\n  1 one message.b.Coin\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A copy with less detail, of another codegen, goes into the one with more.
func TestCopiesOfTwoCodegens(t *testing.T) {
	e := New()
	for name, src := range map[string]string{
		"a.js":   `$root.p=(function(){var p={};p.S=(function(){function S(){$protobuf.rpc.Service.call(this)}Object.defineProperty(S.prototype.get=function get(r){return this.rpcCall(get,$root.p.A,$root.p.A,r)},"name",{value:"Get"});return S})();p.A=(function(){function A(p){}A.encode=function encode(m,w){if(m.fooBar!=null)w.uint32(8).int32(m.fooBar);return w};return A})();return p})();`,
		"a.json": `{"nested":{"p":{"nested":{"S":{"methods":{"Get":{"requestType":"A","responseType":"A","responseStream":true}}},"A":{"fields":{"fooBar":{"type":"E","id":1},"more":{"type":"string","id":2}}},"E":{"values":{"X":0}}}}}}`,
	} {
		if err := e.Add(t.Context(), name, []byte(src)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "message p.A\n  1 foo_bar enum.p.E\n  2 more string\nenum p.E 1\nservice p.S\n  Get(.p.A) .p.A false true\n"
	if got := summary(result(t, e)); got != want {
		t.Errorf("got\n%s", got)
	}
}

// extract returns what one script declares.
func extract(ctx context.Context, name string, src []byte) (*Result, error) {
	e := New()
	if err := e.Add(ctx, name, src); err != nil {
		return nil, err
	}
	return e.Result(ctx)
}

// Bytes that are no tokens cost no more than others: 100 times as many take
// about 100 times as long, where it was 10,000 times.
func TestLexerIsLinear(t *testing.T) {
	const size = 4 << 20
	for name, unit := range map[string]string{
		"NULs": "\x00", "bytes that begin nothing": "\x80\x01@\\", "strings without an end": "'a\n", "numbers before words": "1a ",
		"templates": "`${", "ends of templates": "`${}", "open templates": "`${ } ", "comments": "/*", "regular expressions": "=/[", "escapes": "\\u{",
		"hashes": "#", "slashes": "/ ", "octal numbers": "09",
	} {
		t.Run(name, func(t *testing.T) {
			src := []byte(strings.Repeat(unit, size/len(unit)))
			start := time.Now()
			if _, err := extract(t.Context(), "x.js", src); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("%d bytes took %s", len(src), d)
			} else {
				t.Log(d)
			}
		})
	}
}

// Copies of a script are read once; they export what the script exports.
func TestCopies(t *testing.T) {
	message := `import{proto3}from"@bufbuild/protobuf";export const M=proto3.makeMessageType("a.v1.M",()=>[{no:1,name:"a",kind:"scalar",T:9}]);`
	user := `import{proto3}from"@bufbuild/protobuf";import{M}from"./m.js";export const U=proto3.makeMessageType("a.v1.%s",()=>[{no:1,name:"m",kind:"message",T:M}]);`
	e := New()
	for name, src := range map[string]string{"a/m.js": message, "b/m.js": message, "b/u.js": fmt.Sprintf(user, "U"), "c/u.js": fmt.Sprintf(user, "V")} {
		if err := e.Add(t.Context(), name, []byte(src)); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.Messages) != 3 {
		t.Errorf("%d messages were read", len(e.Messages))
	}
	r, err := e.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range r.Files {
		for _, m := range f.MessageType {
			if m.GetName() == "U" && m.Field[0].GetTypeName() == ".a.v1.M" {
				found++
			}
		}
	}
	if found != 1 {
		t.Errorf("b/u.js does not refer to the message of b/m.js, the copy of a/m.js: %v", r.Files)
	}
}
