package schema

import (
	"strings"
	"testing"
)

func TestNestingOfProtoFiles(t *testing.T) {
	const head = "syntax = \"proto3\";\npackage a.v1;\n"
	nested := func(n int) string {
		return head + strings.Repeat("message A {", n) + strings.Repeat("}", n) + "\n"
	}
	for name, text := range map[string]string{
		"some":     nested(20),
		"comments": head + "// " + strings.Repeat("{", 500) + "\n/*" + strings.Repeat("(", 500) + "*/ message A {}\n",
		"strings":  head + "import \"google/protobuf/descriptor.proto\";\noption java_package = \"" + strings.Repeat("[", 500) + "\";\nmessage A {}\n",
	} {
		if _, err := FromTexts(map[string]string{"a.proto": text}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	imports := head + strings.Repeat("import \"google/protobuf/any.proto\";\n", maxProtoImports+1)
	if _, err := FromTexts(map[string]string{"a.proto": imports}); err == nil || !strings.Contains(err.Error(), "a.proto:4099: the file has more than 4096 imports") {
		t.Errorf("imports: %v", err)
	}
	for name, text := range map[string]string{
		"messages": nested(maxProtoNesting + 1),
		"open":     head + strings.Repeat("message A{", 100_000),
		"lists":    head + "option (x) = " + strings.Repeat("{a:[", 60) + "1",
	} {
		_, err := FromTexts(map[string]string{"a.proto": text})
		if err == nil || !strings.Contains(err.Error(), "a.proto:3: brackets are nested more than 100 levels deep") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
