package transcript

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
		if got := likeness(s); got < want[0] || got > want[1] {
			t.Errorf("%q: %.2f, want %v", s, got, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	for s, want := range map[string]class{
		"0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69": uuid,
		"toolu_01Ab3dEf6hIj":                   randomID,
		"https://example.com/a?b=c":            url,
		"/home/me/src/main.go":                 filePath,
		"src/cmd/main.go":                      filePath,
		"main.go":                              filePath,
		"file:///home/me":                      url,
		`{"path":"/tmp/x","n":[1,2]}`:          jsonWhole,
		`{"path":"/tm`:                         jsonPart,
		"composer-1":                           model,
		"gpt-5.1-codex-high":                   model,
		"Claude 4.5 Sonnet":                    model,
		"cli-2026.01.09-231024f":               version,
		"1.4.0":                                version,
		"application/connect+proto":            mime,
		"Europe/Berlin":                        setting,
		"en-US":                                setting,
		"x-request-id: 1":                      header,
		"me@example.com":                       email,
		"2026-03-01T10:00:00Z":                 timestamp,
		"12,345.67":                            number,
		"[DONE]":                               tag,
		"read_file":                            word,
		"toolName":                             word,
		"Hello":                                plain,
		"Hello, world":                         plain,
		"Yes.":                                 plain,
		"Claude is a model - or so it says":    plain,
		"{ is a brace":                         plain,
		"[link](http://x)":                     plain,
	} {
		if got := classOf(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}
