package wire_test

import (
	"fmt"

	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

// A message with field 1 (varint 150) and field 2 (the text "hi").
var message = []byte{0x08, 0x96, 0x01, 0x12, 0x02, 'h', 'i'}

func Example() {
	tree := wire.Parse(message, wire.Options{})
	for i := range tree.Children(0) {
		n := tree.Node(i)
		fmt.Printf("field %d, %s, bytes %d to %d: % x\n", n.Number, n.Type, n.Off, n.End, tree.Payload(i))
	}
	// Output:
	// field 1, varint, bytes 0 to 3: 96 01
	// field 2, len, bytes 3 to 7: 68 69
}

// Bytes that do not parse become a node of their own, with the reason.
func ExampleParse_garbage() {
	tree := wire.Parse([]byte{0x08, 0x05, 0x12, 0x7f, 'h', 'i'}, wire.Options{})
	for i := range tree.Children(0) {
		n := tree.Node(i)
		fmt.Println(n.Type, tree.Fault(n))
	}
	// Output:
	// varint <nil>
	// garbage field 2 at 0x2: the length is 127, but only 2 bytes are left
}

// Splice replaces a string inside a nested message and corrects both lengths.
func ExampleSplice() {
	nested := append([]byte{0x0a, byte(len(message))}, message...)
	tree := wire.Parse(nested, wire.Options{})

	path, err := fieldpath.ParseNumbers("1.2")
	if err != nil {
		fmt.Println(err)
		return
	}
	edited, err := wire.Splice(tree, []wire.Edit{{Op: wire.SetValue, Node: tree.Find(path)[0], Data: []byte("hello")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("% x\n% x\n", nested, edited)
	// Output:
	// 0a 07 08 96 01 12 02 68 69
	// 0a 0a 08 96 01 12 05 68 65 6c 6c 6f
}
