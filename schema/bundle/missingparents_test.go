package bundle

import "testing"

// TestMissingParents: a type that is nested in a message which is not in the source is
// nested in a message without fields, and a package stays a package.
func TestMissingParents(t *testing.T) {
	const child = `[{no:1,name:"s",kind:"scalar",T:9}]`
	es1 := func(full, options string) string {
		return `proto3.makeMessageType("` + full + `",()=>` + child + options + `);`
	}
	for name, c := range map[string]struct{ src, want string }{
		"protobuf-es 1, a call": {
			es1("a.v1.Parent.Child", `,{localName:"Parent_Child"}`),
			"message a.v1.Parent\nmessage a.v1.Parent.Child\n  1 s string\nunresolved 1:8 a.v1.Parent: the source contains only types nested in it, so extract declared it without fields\n",
		},
		"protobuf-es 1, two levels, and lower case": {
			es1("outer.Middle.inner", `,{localName:"outer_Middle_inner"}`),
			"message .outer\nmessage .outer.Middle\nmessage .outer.Middle.inner\n  1 s string\n" +
				"unresolved 1:8 outer.Middle: the source contains only types nested in it, so extract declared it without fields\n" +
				"unresolved 1:8 outer: the source contains only types nested in it, so extract declared it without fields\n",
		},
		"protobuf-es 1, a package with capitals": {
			es1("acme.Api.Child", ""),
			"message acme.Api.Child\n  1 s string\n",
		},
		"protobuf-es 1, the parent is there": {
			es1("a.v1.Parent", "") + es1("a.v1.Parent.Child", `,{localName:"Parent_Child"}`),
			"message a.v1.Parent\n  1 s string\nmessage a.v1.Parent.Child\n  1 s string\n",
		},
		"protobuf-es 1, a class": {
			`class q{static{this.typeName="a.v1.Parent.Child"}static{this.fields=proto3.util.newFieldList(()=>` + child + `)}}`,
			"message a.v1.Parent\nmessage a.v1.Parent.Child\n  1 s string\nunresolved 1:81 a.v1.Parent: the source contains only types nested in it, so extract declared it without fields\n",
		},
		"an enum": {
			`proto3.makeEnum("a.v1.Parent.Kind",[{no:0,name:"KIND_UNSPECIFIED"}]);`,
			"message a.v1.Parent\nenum a.v1.Parent.Kind 1\nunresolved 1:8 a.v1.Parent: the source contains only types nested in it, so extract declared it without fields\n",
		},
		"protobuf-ts": {
			`class X extends M{constructor(){super("a.v1.Parent.Child",[{no:1,name:"s",kind:"scalar",T:9}])}}`,
			"message a.v1.Parent\nmessage a.v1.Parent.Child\n  1 s string\nunresolved 1:33 a.v1.Parent: the source contains only types nested in it, so extract declared it without fields\n",
		},
		"a package of a service": {
			`const S={typeName:"acme.Api.Calls",methods:{}};class q{static{this.typeName="acme.Api.Child"}static{this.fields=proto3.util.newFieldList(()=>` + child + `)}}`,
			"message acme.Api.Child\n  1 s string\nservice acme.Api.Calls\n",
		},
		"packages of capitals": {
			`class q{static{this.typeName="Acme.Api.Child"}static{this.fields=proto3.util.newFieldList(()=>` + child + `)}}`,
			"message Acme.Api.Child\n  1 s string\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := extract(t.Context(), "a.js", []byte(c.src))
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(r); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
