package transcript

import "testing"

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
