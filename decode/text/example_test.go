package text_test

import (
	"fmt"
	"os"

	"unwire/decode/text"
)

// Print a message, edit the text, and encode the text again.
func Example() {
	input := []byte{0x08, 0x96, 0x01, 0x12, 0x02, 'h', 'i'}
	doc, err := text.Decode(input, text.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := doc.Text(os.Stdout); err != nil {
		fmt.Println(err)
	}

	output, err := text.Parse([]byte(`1: 150 2: {"hello"}`))
	fmt.Printf("% x %v\n", output, err)
	// Output:
	// 1: 150
	// 2: {"hi"}
	// 08 96 01 12 05 68 65 6c 6c 6f <nil>
}

// A text remembers how the input was encoded, so a hex input yields hex again.
func ExampleParse() {
	doc, err := text.Decode([]byte("08 96 01"), text.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := doc.Text(os.Stdout); err != nil {
		fmt.Println(err)
	}

	output, err := text.Parse([]byte("# unwire: hex group:1\n1: 151\n"))
	fmt.Println(string(output), err)
	// Output:
	// # unwire: hex group:1
	// 1: 150
	// 08 97 01 <nil>
}

// Errors have a position and often a hint.
func ExampleError() {
	_, err := text.Parse([]byte("1: 150\n2: [1 2]\n"))
	fmt.Println(err)
	if e, ok := err.(*text.Error); ok {
		fmt.Println(e.Hint)
	}
	// Output:
	// text: line 2, column 4: unexpected '[': expected a field, a value or a brace
	// write packed numbers in braces: 2: {1 2 3}
}
