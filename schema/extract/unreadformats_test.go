package extract

import (
	"strings"
	"testing"
)

func TestKnownAndNotRead(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"a.rpm":    {"\xed\xab\xee\xdb\x03\x00" + strings.Repeat("x", 100), "a.rpm: an RPM package, to be unpacked first: rpm2cpio"},
		"a.dmg":    {strings.Repeat("x", 100), "a.dmg: a macOS disk image"},
		"a.7z":     {"7z\xbc\xaf\x27\x1c\x00\x04" + strings.Repeat("x", 100), "a.7z: a 7z archive"},
		"classes":  {"dex\n035\x00" + strings.Repeat("x", 100), "classes: Android bytecode"},
		"main.jsc": {"x", "main.jsc: V8 bytecode"},
	} {
		collector := newCollector(name, formats())
		if err := collector.addData(t.Context(), name, []byte(c.data)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
