package text

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// Bytes as tools and languages print them. Each comes back as it was, and edited as hex.
func TestSources(t *testing.T) {
	const message = "0a0c48656c6c6f20776f726c642112160a126772c3b6c39f657220e697a5e69cace8aa9e100518ac02"
	plain, err := hex.DecodeString(message)
	if err != nil {
		t.Fatal(err)
	}
	zeros := append(append(bytes.Clone(plain), 0x2a, 0x30), make([]byte, 48)...) // an odd number of bytes, and lines that are left out
	for name, c := range map[string]struct {
		in   string
		want []byte
	}{
		"xxd": {`00000000: 0a0c 4865 6c6c 6f20 776f 726c 6421 1216  ..Hello world!..
00000010: 0a12 6772 c3b6 c39f 6572 20e6 97a5 e69c  ..gr....er .....
00000020: ace8 aa9e 1005 18ac 02                   .........
`, plain},
		"xxd -i": {`unsigned char m_bin[] = {
  0x0a, 0x0c, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x77, 0x6f, 0x72, 0x6c,
  0x64, 0x21, 0x12, 0x16, 0x0a, 0x12, 0x67, 0x72, 0xc3, 0xb6, 0xc3, 0x9f,
  0x65, 0x72, 0x20, 0xe6, 0x97, 0xa5, 0xe6, 0x9c, 0xac, 0xe8, 0xaa, 0x9e,
  0x10, 0x05, 0x18, 0xac, 0x02
};
unsigned int m_bin_len = 41;
`, plain},
		"xxd -g 1 -c 8": {`00000000: 0a 0c 48 65 6c 6c 6f 20  ..Hello 
00000008: 77 6f 72 6c 64 21 12 16  world!..
00000010: 0a 12 67 72 c3 b6 c3 9f  ..gr....
00000018: 65 72 20 e6 97 a5 e6 9c  er .....
00000020: ac e8 aa 9e 10 05 18 ac  ........
00000028: 02                       .
`, plain},
		"hexdump": {`0000000 0c0a 6548 6c6c 206f 6f77 6c72 2164 1612
0000010 120a 7267 b6c3 9fc3 7265 e620 a597 9ce6
0000020 e8ac 9eaa 0510 ac18 0002               
0000029
`, plain},
		"hexdump -C": {`00000000  0a 0c 48 65 6c 6c 6f 20  77 6f 72 6c 64 21 12 16  |..Hello world!..|
00000010  0a 12 67 72 c3 b6 c3 9f  65 72 20 e6 97 a5 e6 9c  |..gr....er .....|
00000020  ac e8 aa 9e 10 05 18 ac  02                       |.........|
00000029
`, plain},
		"hexdump -x": {`0000000    0c0a    6548    6c6c    206f    6f77    6c72    2164    1612
0000010    120a    7267    b6c3    9fc3    7265    e620    a597    9ce6
0000020    e8ac    9eaa    0510    ac18    0002                        
0000029
`, plain},
		"od -tx1": {`0000000 0a 0c 48 65 6c 6c 6f 20 77 6f 72 6c 64 21 12 16
0000020 0a 12 67 72 c3 b6 c3 9f 65 72 20 e6 97 a5 e6 9c
0000040 ac e8 aa 9e 10 05 18 ac 02
0000051
`, plain},
		"od -x": {`0000000 0c0a 6548 6c6c 206f 6f77 6c72 2164 1612
0000020 120a 7267 b6c3 9fc3 7265 e620 a597 9ce6
0000040 e8ac 9eaa 0510 ac18 0002
0000051
`, plain},
		"od -Ax -tx1z": {`000000 0a 0c 48 65 6c 6c 6f 20 77 6f 72 6c 64 21 12 16  >..Hello world!..<
000010 0a 12 67 72 c3 b6 c3 9f 65 72 20 e6 97 a5 e6 9c  >..gr....er .....<
000020 ac e8 aa 9e 10 05 18 ac 02                       >.........<
000029
`, plain},
		"hexdump, lines left out": {`0000000 0c0a 6548 6c6c 206f 6f77 6c72 2164 1612
0000010 120a 7267 b6c3 9fc3 7265 e620 a597 9ce6
0000020 e8ac 9eaa 0510 ac18 2a02 0030 0000 0000
0000030 0000 0000 0000 0000 0000 0000 0000 0000
*
0000050 0000 0000 0000 0000 0000 0000          
000005b
`, zeros},
		"hexdump -C, lines left out": {`00000000  0a 0c 48 65 6c 6c 6f 20  77 6f 72 6c 64 21 12 16  |..Hello world!..|
00000010  0a 12 67 72 c3 b6 c3 9f  65 72 20 e6 97 a5 e6 9c  |..gr....er .....|
00000020  ac e8 aa 9e 10 05 18 ac  02 2a 30 00 00 00 00 00  |.........*0.....|
00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
00000050  00 00 00 00 00 00 00 00  00 00 00                 |...........|
0000005b
`, zeros},
		"od -tx1, lines left out": {`0000000 0a 0c 48 65 6c 6c 6f 20 77 6f 72 6c 64 21 12 16
0000020 0a 12 67 72 c3 b6 c3 9f 65 72 20 e6 97 a5 e6 9c
0000040 ac e8 aa 9e 10 05 18 ac 02 2a 30 00 00 00 00 00
0000060 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
*
0000120 00 00 00 00 00 00 00 00 00 00 00
0000133
`, zeros},
		"od -x, lines left out": {`0000000 0c0a 6548 6c6c 206f 6f77 6c72 2164 1612
0000020 120a 7267 b6c3 9fc3 7265 e620 a597 9ce6
0000040 e8ac 9eaa 0510 ac18 2a02 0030 0000 0000
0000060 0000 0000 0000 0000 0000 0000 0000 0000
*
0000120 0000 0000 0000 0000 0000 0000
0000133
`, zeros},
		"Python": {"b'\\n\\x0cHello world!\\x12\\x16\\n\\x12gr\\xc3\\xb6\\xc3\\x9fer \\xe6\\x97\\xa5\\xe6\\x9c\\xac\\xe8\\xaa\\x9e\\x10\\x05\\x18\\xac\\x02'", plain},
		"C": {`const char m[41] = {0x0A, 0x0C, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x20, 0x77, 0x6F, 0x72, 0x6C, 0x64, 0x21, 0x12, 0x16, 0x0A, 0x12, 0x67, 0x72, 0xC3, 0xB6, 0xC3, 0x9F, 0x65, 0x72, 0x20, 0xE6, 0x97, 0xA5, 0xE6, 0x9C, 0xAC, 0xE8, 0xAA, 0x9E, 0x10, 0x05, 0x18, 0xAC, 0x02};
`, plain},
		"C, decimal": {"static const uint8_t m[] = { 10, 12, 72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 33, 18, 22, 10, 18, 103, 114, 195, 182, 195, 159, 101, 114, 32, 230, 151, 165, 230, 156, 172, 232, 170, 158, 16, 5, 24, 172, 2, };", plain},
		"Go":         {"[]byte{0xa, 0xc, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x77, 0x6f, 0x72, 0x6c, 0x64, 0x21, 0x12, 0x16, 0xa, 0x12, 0x67, 0x72, 0xc3, 0xb6, 0xc3, 0x9f, 0x65, 0x72, 0x20, 0xe6, 0x97, 0xa5, 0xe6, 0x9c, 0xac, 0xe8, 0xaa, 0x9e, 0x10, 0x5, 0x18, 0xac, 0x2}", plain},
		"Node": {`Uint8Array(41) [
  10, 12, 72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 33, 18, 22, 10, 18, 103, 114, 195, 182, 195, 159, 101, 114, 32, 230, 151, 165, 230, 156, 172, 232, 170, 158, 16, 5, 24, 172, 2
]
`, plain},
		"Node, a Buffer": {`<Buffer 0a 0c 48 65 6c 6c 6f 20 77 6f 72 6c 64 21 12 16 0a 12 67 72 c3 b6 c3 9f 65 72 20 e6 97 a5 e6 9c ac e8 aa 9e 10 05 18 ac 02>
`, plain},
		"JSON":          {"[10,12,72,101,108,108,111,32,119,111,114,108,100,33,18,22,10,18,103,114,195,182,195,159,101,114,32,230,151,165,230,156,172,232,170,158,16,5,24,172,2]", plain},
		"Java":          {"[10, 12, 72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 33, 18, 22, 10, 18, 103, 114, -61, -74, -61, -97, 101, 114, 32, -26, -105, -91, -26, -100, -84, -24, -86, -98, 16, 5, 24, -84, 2]", plain},
		"Rust":          {"vec![10, 12, 72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 33, 18, 22, 10, 18, 103, 114, 195, 182, 195, 159, 101, 114, 32, 230, 151, 165, 230, 156, 172, 232, 170, 158, 16, 5, 24, 172, 2];", plain},
		"colons":        {"0a:0c:48:65:6c:6c:6f:20:77:6f:72:6c:64:21:12:16:0a:12:67:72:c3:b6:c3:9f:65:72:20:e6:97:a5:e6:9c:ac:e8:aa:9e:10:05:18:ac:02", plain},
		".NET":          {"0A-0C-48-65-6C-6C-6F-20-77-6F-72-6C-64-21-12-16-0A-12-67-72-C3-B6-C3-9F-65-72-20-E6-97-A5-E6-9C-AC-E8-AA-9E-10-05-18-AC-02", plain},
		"octal escapes": {"\"\\012\\014\\110\\145\\154\\154\\157\\040\\167\\157\\162\\154\\144\\041\\022\\026\\012\\022\\147\\162\\303\\266\\303\\237\\145\\162\\040\\346\\227\\245\\346\\234\\254\\350\\252\\236\\020\\005\\030\\254\\002\"", plain},
		"escapes": {`"\x0a\x0c\x48\x65\x6c\x6c\x6f\x20\x77\x6f\x72\x6c\x64\x21\x12\x16\x0a\x12\x67\x72\xc3\xb6\xc3\x9f\x65\x72\x20\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\x10\x05\x18\xac\x02"
`, plain},
	} {
		d, err := Decode([]byte(c.in), Options{})
		if err != nil || !bytes.Equal(d.Data, c.want) {
			t.Errorf("%s is read as %x, %v", name, d.Data, err)
			continue
		}
		var b strings.Builder
		if err := d.Text(&b); err != nil {
			t.Fatal(err)
		}
		if got, err := Parse([]byte(b.String())); err != nil || string(got) != c.in {
			t.Errorf("%s comes back as %q, %v", name, got, err)
		}
		edited := strings.Replace(b.String(), "Hello", "Hullo", 1)
		got, err := Parse([]byte(edited))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(got, Options{})
		if want := bytes.Replace(c.want, []byte("Hello"), []byte("Hullo"), 1); err != nil || !bytes.Equal(again.Data, want) {
			t.Errorf("%s, edited, is %q", name, got)
		}
	}
}

// What looks like bytes in a program, and is none that make sense, stays as it is.
func TestNoSources(t *testing.T) {
	for _, s := range []string{
		"[1, 2, 3]", `"some \\n words"`, "[1,2,300]", "const a = {b: 1, c: 2};", "{\"a\": [8, 1]}", "12:30:45", "<Buffer 08 01 ... 41 more bytes>", "b'open", "{8, 1", "(1, 2, 3)\n(4, 5, 6)\n",
	} {
		d, err := Decode([]byte(s), Options{})
		if err != nil || string(d.Data) != s {
			t.Errorf("%q is read as %x, %v", s, d.Data, err)
		}
	}
}
