package compare_test

import (
	"fmt"
	"log"

	"unwire/schema"
	"unwire/schema/compare"
)

func load(text string) *schema.Schema {
	s, err := schema.FromTexts(map[string]string{"chat.proto": "syntax = \"proto3\"; package chat.v1;" + text})
	if err != nil {
		log.Fatal(err)
	}
	return s
}

// Diff lists the changes between two versions, with the incompatibility that each causes.
func ExampleDiff() {
	before := load(`message Message { string text = 1; int32 size = 2; }`)
	after := load(`message Message { string body = 1; string size = 2; bool draft = 3; }`)
	for _, c := range compare.Diff(before, after) {
		fmt.Printf("%s %s %s: %q to %q, breaks %q\n", c.Change, c.Kind, c.Element, c.Old, c.New, c.Breaks)
	}
	// Output:
	// added field chat.v1.Message.draft: "" to "bool = 3", breaks ""
	// renamed field chat.v1.Message.text: "text" to "body", breaks "json"
	// retyped field chat.v1.Message.size: "int32" to "string", breaks "wire"
}

// Find searches the names of one version. Camel case separates words.
func ExampleFind() {
	s := load(`message SendMessageRequest { string text = 1; } message MessageList { repeated string texts = 1; }`)
	for _, hit := range compare.Find(s, "send message", 0) {
		fmt.Println(hit.Kind, hit.Element)
	}
	// Output: message chat.v1.SendMessageRequest
}
