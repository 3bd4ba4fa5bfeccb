package diff_test

import (
	"fmt"

	"unwire/decode/diff"
)

// Compare two JSON documents. An inserted element is one change.
func Example() {
	a := []byte(`{"model":"small","tags":["alpha","beta"]}`)
	b := []byte(`{"tags":["new","alpha","beta"],"model":"large"}`)
	for _, c := range diff.Compare(diff.Message{Data: a}, diff.Message{Data: b}, diff.Options{}) {
		fmt.Println(c.Op, c.Path, c.Old, c.New)
	}
	// Output:
	// change model small large
	// add tags[0] <nil> new
}

// An id that is renamed consistently is not a real difference.
func ExampleChange_ignored() {
	a := []byte(`{"id":"3f2504e0-4f89-41d3-9a0c-0305e82c3301","parent":"3f2504e0-4f89-41d3-9a0c-0305e82c3301"}`)
	b := []byte(`{"id":"9b2d5b6a-7f6e-4c35-8f0a-1d2e3f4a5b6c","parent":"9b2d5b6a-7f6e-4c35-8f0a-1d2e3f4a5b6c"}`)
	changes := diff.Compare(diff.Message{Data: a}, diff.Message{Data: b}, diff.Options{})
	for _, c := range changes {
		fmt.Println(c.Path, c.Ignored)
	}
	fmt.Println(diff.Same(changes))
	// Output:
	// id volatile uuid
	// parent volatile uuid
	// true
}

func ExampleWords() {
	for _, s := range diff.Words("the quick fox", "the slow fox", false) {
		fmt.Printf("%-6s %q\n", s.Op, s.Text)
	}
	// Output:
	//        "the "
	// remove "quick"
	// add    "slow"
	//        " fox"
}
