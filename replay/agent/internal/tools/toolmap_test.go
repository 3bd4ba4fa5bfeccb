package tools_test

import (
	"testing"

	"unwire/replay/agent/internal/tools"
)

// FuzzParseMap reads tables of any kind. An error has no table.
func FuzzParseMap(f *testing.F) {
	for _, text := range []string{
		"", "{}", `{"v":1}`, `{"v":1,"tools":[{"exec":["read"],"tool":"my_reader","arguments":{"files":["${path}"],"why":"asked for ${path}"}}]}`,
		`{"v":1,"tools":[{"exec":["shell"],"tool":"${","arguments":"${a.b}"}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if table, err := tools.ParseMap(data); (table == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", data, table, err)
		}
	})
}
