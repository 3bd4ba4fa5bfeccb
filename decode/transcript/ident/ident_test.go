package ident

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		s    string
		want Class
	}{
		{"0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69", UUID},
		{"0B5B9B3E-6A0F-4D0E-9F5E-3F1D2C4B5A69", UUID},
		{"9f86d081884c7d659a2feaa0c55ad015", Hex},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Hex},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", ID},
		{"toolu_01Ab3dEf6hIj", ID},
		{"chatcmpl-B7x9Kq2LmZ0p", ID},
		{"run-0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69", ID},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", Token},
		{"pZGTi4a/9s0B1xQ2Zr7Lk+3m", Token},
		{"2026-03-01T10:00:00Z", Time},
		{"2026-03-01T10:00:00.123456+02:00", Time},
		{"", ""},
		{"hello", ""},
		{"composer-1", ""},
		{"gpt-5-codex-high-fast", ""},
		{"cli-2026.01.09-231024f", ""},
		{"Donaudampfschifffahrtsgesellschaft", ""},
		{"deadbeef", ""},
		{"aaaaaaaaaaaaaaaaaaaaaaaa", ""},
		{"12345678901234567890", ""},
		{"/usr/share/doc/README.md", ""},
		{"handleUserMessageAction", ""},
		{"text 0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69", ""},
	} {
		if got := Of(c.s); got != c.want {
			t.Errorf("%q: %q, want %q", c.s, got, c.want)
		}
	}
}

// TestOfPrefixedHex: an ID whose random part is hex is one whatever its digits,
// as a diff that misses one in a hundred is wrong every other run.
func TestOfPrefixedHex(t *testing.T) {
	for i := range 2000 {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		id := "toolu_" + hex.EncodeToString(sum[:12])
		if got := Of(id); got != ID {
			t.Errorf("%q: %q, want %q", id, got, ID)
		}
	}
}

func TestIsTime(t *testing.T) {
	for v, want := range map[uint64]bool{1763700000: true, 1763700000123: true, 1763700000123456: true, 1763700000123456789: true, 0: false, 4096: false, 1 << 31: true, 1 << 40: false, 1 << 63: false} {
		if IsTime(v) != want {
			t.Errorf("%d: %v", v, !want)
		}
	}
}

func TestIsBytes(t *testing.T) {
	sum := sha256.Sum256([]byte("a blob"))
	for name, c := range map[string]struct {
		b    []byte
		want bool
	}{
		"digest":           {sum[:], true},
		"half of it":       {sum[:16], true},
		"an odd length":    {sum[:17], false},
		"zeroes":           {make([]byte, 32), false},
		"text":             {[]byte("0123456789abcdef"), false},
		"small big-endian": {append(make([]byte, 15), 1), false},
	} {
		if got := IsBytes(c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add("toolu_01Ab3dEf6hIj and 2026-03-01T10:00:00Z")
	f.Add("eyJ.a.b" + strings.Repeat("x", 50))
	f.Fuzz(func(t *testing.T, s string) {
		for i := 0; i < len(s); {
			end := Next(s, i)
			if end == i {
				i++
				continue
			}
			if class, n := Classify(s[i:end]); n > end-i || (class == "") != (n == 0) {
				t.Fatalf("%q: %q of length %d", s[i:end], class, n)
			}
			i = end
		}
		Of(s)
	})
}
