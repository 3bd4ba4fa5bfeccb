package language

import "testing"

func TestLanguage(t *testing.T) {
	for s, want := range map[string][2]float64{
		"The quick brown fox jumps over the lazy dog.":                 {0.9, 1},
		"Да, конечно: сейчас посмотрю.":                                {0.9, 1},
		"你好，我来看看这个文件。":                                                 {0.9, 1},
		"これはテストです":                                                     {0.9, 1},
		"مرحبا بالعالم، كيف حالك اليوم؟":                               {0.9, 1},
		"สวัสดีชาวโลก":                                                 {0.9, 1},
		"Use `go test`:\n\n```go\nfunc main() {\n\tprintln(1)\n}\n```": {0.3, 1},
		"Yes.":                            {0.5, 0.9},
		"Hello":                           {0.3, 0.7},
		"":                                {0, 0},
		"0b5b9b3e-6a0f-4d0e-9f5e":         {0, 0.1},
		"read_file":                       {0, 0.1},
		"{\"a\":[1,2,3],\"b\":{\"c\":0}}": {0, 0.3},
		"aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ": {0, 0.1},
		"/usr/local/lib/node_modules":                     {0, 0.1},
	} {
		if got := Likeness(s); got < want[0] || got > want[1] {
			t.Errorf("%q: %.2f, want %v", s, got, want)
		}
	}
}
