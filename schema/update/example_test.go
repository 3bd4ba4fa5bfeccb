package update_test

import (
	"fmt"
	"log"

	"unwire/schema"
	"unwire/schema/update"
)

// Run merges the definitions of a source into the text of files. The comment, the
// formatting and everything else of the file stay as they are.
func ExampleRun() {
	files := map[string]string{"chat.proto": `syntax = "proto3";

package chat.v1;

// What users write.
message Message {
    string field_1 = 1; // shown to everybody
}
`}
	newer, err := schema.FromTexts(map[string]string{"chat.proto": `
		syntax = "proto3";
		package chat.v1;
		message Message { string text = 1; bool draft = 3; }`})
	if err != nil {
		log.Fatal(err)
	}

	src := update.Source{Name: "extraction", Certainty: "reported", Schema: newer}
	r, err := update.Run(files, "", []update.Source{src}, update.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(r.Files[0].After)
	// Output:
	// syntax = "proto3";
	//
	// package chat.v1;
	//
	// // What users write.
	// message Message {
	//     string text = 1; // shown to everybody
	//     bool draft = 3;
	// }
}
