package bundle

import (
	"maps"
	"slices"
	"testing"

	"unwire/schema/bundle/protoname"
)

// TestNamesOverFiles reads scripts that refer to each other's definitions by
// names that a bundler made up.
func TestNamesOverFiles(t *testing.T) {
	const (
		of   = `=proto3.makeMessageType("p.B",()=>[{no:1,name:"s",kind:"scalar",T:9}]);`
		use  = `proto3.makeMessageType("p.A",()=>[{no:1,name:"b",kind:"message",T:%}]);`
		want = "message p.A\n  1 b message.p.B\nmessage p.B\n  1 s string\n"
	)
	used := func(name string) string { return replaced(use, name) }
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"chunks of esbuild": {map[string]string{
			"d/a.js": `import{x as y}from"./chunk.js";` + used("y"), "d/chunk.js": `var z` + of + `export{z as x};`,
		}, want},
		"a namespace, without the file's ending": {map[string]string{
			"d/a.js": `import*as c from"../e/chunk";` + used("c.x"), "e/chunk.js": `var z` + of + `export{z as x};`,
		}, want},
		"exported again": {map[string]string{
			"a.js": `import{q}from"./index.js";var w=q;` + used("w"), "index.js": `export{x as q}from"./b.js";`, "b.js": `export const x` + of,
		}, want},
		"all exported again": {map[string]string{
			"a.mjs": `import{x}from"./index";` + used("x"), "index.mjs": `export*from"./no.mjs";export*from"./b.mjs";`, "b.mjs": `export const x` + of,
		}, want},
		"imported and exported": {map[string]string{
			"a.js": `import{q}from"./index.js";` + used("q"), "index.js": `import{x}from"./b.js";export{x as q};proto3.makeEnum("p.E",[{no:0,name:"Z"}]);`, "b.js": `export const x` + of,
		}, want + "enum p.E 1\n"},
		"in a circle": {map[string]string{
			"a.js": `import{q}from"./b.js";` + used("q"), "b.js": `export{q}from"./c.js";`, "c.js": `export*from"./b.js";export{q}from"./b.js";`,
		}, "message p.A\n  1 b bytes\nunresolved 1:89 p.A.b: its type, the message q, was not found, so extract declared it as bytes\n"},
		"CommonJS": {map[string]string{
			"a.js": `const c=require("./c.js");` + used("c.x"), "c.js": `const z` + of + `exports.x=z;`,
		}, want},
		"chunks of webpack": {map[string]string{
			"main.js": `(()=>{var e={7:(e,t,n)=>{var r=n(12);` + used("r.x") + `}}})()`,
			"12.js":   `(self.webpackChunk=self.webpackChunk||[]).push([[12],{12:(e,t,n)=>{n.d(t,{x:()=>r});const r` + of + `}}])`,
		}, want},
		"chunks of webpack, exported again": {map[string]string{
			"main.js": `(()=>{var e={7:(e,t,n)=>{var r=n(9);` + used("r.q") + `}}})()`,
			"9.js":    `(self.webpackChunk=self.webpackChunk||[]).push([[9],{9(e,t,n){n.d(t,{q:()=>a.x});var a=n(12);proto3.makeEnum("p.E",[{no:0,name:"Z"}])}}])`,
			"12.js":   `(self.webpackChunk=self.webpackChunk||[]).push([[12],{12(e,t,n){n.d(t,{x:()=>r});const r` + of + `}}])`,
		}, want + "enum p.E 1\n"},
		"two builds of webpack": {map[string]string{
			"v1/main.js": `(()=>{var e={7:(e,t,n)=>{var r=n(12);` + used("r.x") + `}}})()`,
			"v1/12.js":   `push([[12],{12:(e,t,n)=>{n.d(t,{x:()=>r});const r` + of + `}}])`,
			"v2/12.js":   `push([[12],{12:(e,t,n)=>{n.d(t,{x:()=>r});const r=proto3.makeMessageType("q.Other",()=>[{no:2,name:"o",kind:"scalar",T:9}])}}])`,
		}, want + "message q.Other\n  2 o string\n"},
		"an enum of protobuf-ts": {map[string]string{
			"a.js": `import{E}from"./e.js";class A extends M{constructor(){super("p.A",[{no:1,name:"e",kind:"enum",T:()=>["p.E",E,"E_"]}])}}`,
			"e.js": `export var E;(function(E){E[E["NONE"]=0]="NONE";E[E["ONE"]=1]="ONE"})(E||(E={}));class B extends M{constructor(){super("p.B",[{no:1,name:"s",kind:"scalar",T:9}])}}`,
		}, "message p.A\n  1 e enum.p.E\nmessage p.B\n  1 s string\nenum p.E 2\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			names := slices.Sorted(maps.Keys(tt.files))
			for range 2 { // in either order
				e := New()
				for _, name := range names {
					if err := e.Add(t.Context(), name, []byte(tt.files[name])); err != nil {
						t.Fatal(err)
					}
				}
				if got := summary(result(t, e)); got != tt.want {
					t.Errorf("got\n%swant\n%s", got, tt.want)
				}
				slices.Reverse(names)
			}
		})
	}
}

// replaced puts a name into a text's %.
func replaced(text, name string) string {
	for i := range text {
		if text[i] == '%' {
			return text[:i] + name + text[i+1:]
		}
	}
	return text
}

// TestKeepsCase holds names that foo_bar cannot have become against such that it
// can.
func TestKeepsCase(t *testing.T) {
	for _, name := range []string{"accountID", "accountIDs", "baseURLPath", "Foo", "service_I_NODES", "tokenURI", "fooHTTPServer"} {
		if !protoname.KeepsCase(name) {
			t.Errorf("%s: is taken for foo_bar", name)
		}
	}
	for _, name := range []string{"", "accountId", "isATest", "xYZ", "foo1", "sha256Sum", "aBC", "foo_1"} {
		if protoname.KeepsCase(name) {
			t.Errorf("%s: is not taken for foo_bar", name)
		}
	}
}
