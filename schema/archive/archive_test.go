package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/squashfs"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"unwire/captures/need"
)

// contents are files as tests put them into archives: none, small, and more
// than is read at once.
func contents() map[string]string {
	return map[string]string{
		"empty.js": "", "a/small.js": "x = 1", "a/b/large.js": strings.Repeat("0123456789abcdef\n", 20_000), "../../climbs.js": "up", "/etc/absolute.js": "root",
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tarOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "link.js", Linkname: "/etc/passwd"}))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644}))
		_, err := io.WriteString(w, files[name])
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func zipOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		must(t, err)
		_, err = io.WriteString(f, files[name])
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func compressedBy(t testing.TB, open func(io.Writer) (io.WriteCloser, error), data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := open(&b)
	must(t, err)
	_, err = w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	return compressedBy(t, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, data)
}

func xzOf(t testing.TB, data []byte) []byte {
	return compressedBy(t, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }, data)
}

func zstdOf(t testing.TB, data []byte) []byte {
	return compressedBy(t, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, data)
}

// asarOf writes an archive of Electron.
func asarOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	root := map[string]any{"files": map[string]any{
		"link.js": map[string]any{"link": "a/small.js"}, "beside.node": map[string]any{"size": 3, "unpacked": true},
	}}
	var body bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := root["files"].(map[string]any)
		parts := strings.Split(name, "/")
		for _, dir := range parts[:len(parts)-1] {
			if at[dir] == nil {
				at[dir] = map[string]any{"files": map[string]any{}}
			}
			at = at[dir].(map[string]any)["files"].(map[string]any)
		}
		at[parts[len(parts)-1]] = map[string]any{"size": len(files[name]), "offset": strconv.Itoa(body.Len())}
		body.WriteString(files[name])
	}
	return asarFile(t, root, body.Bytes())
}

// asarFile is an archive of Electron with an index.
func asarFile(t testing.TB, root map[string]any, body []byte) []byte {
	t.Helper()
	index, err := json.Marshal(root)
	must(t, err)
	padded := (len(index) + 3) &^ 3
	var b []byte
	for _, n := range []int{4, padded + 8, padded + 4, len(index)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(b, index...), make([]byte, padded-len(index))...)
	return append(b, body...)
}

// asarWith is an archive of Electron with eight members, of which span returns the ranges in body.
func asarWith(t testing.TB, body string, span func(i int) (offset, size int)) []byte {
	t.Helper()
	members := map[string]any{}
	for i := range 8 {
		offset, size := span(i)
		members[strconv.Itoa(i)+".js"] = map[string]any{"size": size, "offset": strconv.Itoa(offset)}
	}
	return asarFile(t, map[string]any{"files": members}, []byte(body))
}

// arOf writes an archive of ar.
func arOf(members ...string) []byte {
	b := []byte(arMagic)
	for i := 0; i+1 < len(members); i += 2 {
		b = fmt.Appendf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", members[i], 0, 0, 0, "100644", len(members[i+1]), members[i+1])
		if len(members[i+1])%2 == 1 {
			b = append(b, '\n')
		}
	}
	return b
}

// squashOf writes a squashfs with the library that reads it, but for names that
// no filesystem takes.
func squashOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	name := filepath.Join(t.(interface{ TempDir() string }).TempDir(), "image")
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	fs, err := squashfs.Create(file.New(f, false), 0, 0, 4096)
	must(t, err)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out := filepath.Join(fs.Workspace(), filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(out), 0o755))
		must(t, os.WriteFile(out, []byte(files[name]), 0o644))
	}
	must(t, fs.Finalize(squashfs.FinalizeOptions{}))
	data, err := os.ReadFile(name)
	must(t, err)
	return data
}

// appImageOf puts a squashfs after an ELF file that is a header only.
func appImageOf(image []byte) []byte {
	elf := make([]byte, 64)
	copy(elf, "\x7fELF\x02\x01\x01\x00AI\x02")
	binary.LittleEndian.PutUint64(elf[40:], 64)
	return append(elf, image...)
}

// walked are the members that an archive hands out.
func walked(t testing.TB, data []byte, v Visitor) (map[string]string, error) {
	t.Helper()
	return walkedWithin(t, NewBudget(int64(len(data)), nil), data, v)
}

func walkedWithin(t testing.TB, b *Budget, data []byte, v Visitor) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	if v.Limit == nil {
		v.Limit = func(string, []byte) int64 { return 1 << 30 }
	}
	if v.Broken == nil {
		v.Broken = func(name string, err error) { t.Errorf("%s: %v", name, err) }
	}
	v.Member = func(name string, data []byte) error { got[name] = string(data); return nil }
	last := int64(0)
	v.At = func(read int64) {
		if read < last || read > int64(len(data)) {
			t.Errorf("read %d of %d after %d", read, len(data), last)
		}
		last = read
	}
	kind := Detect(data[:min(len(data), HeadBytes)])
	return got, Walk(context.Background(), kind, "x", data, b, v)
}

func within(files map[string]string) map[string]string {
	in := maps.Clone(files)
	maps.DeleteFunc(in, func(name, _ string) bool { return strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") })
	return in
}

func TestKinds(t *testing.T) {
	all := contents()
	in := within(all)
	tarred := tarOf(t, all)
	for _, c := range []struct {
		kind Kind
		data []byte
		want map[string]string
	}{
		{kindTar, tarred, all},
		{kindZip, zipOf(t, all), all},
		{kindAsar, asarOf(t, in), in},
		{kindGzip, gzipOf(t, tarred), all},
		{kindXz, xzOf(t, tarred), all},
		{kindZstd, zstdOf(t, tarred), all},
		{kindSquashfs, squashOf(t, in), in},
		{kindAppImage, appImageOf(squashOf(t, in)), in},
		{
			kindAr, arOf("debian-binary", "2.0\n", "odd/", "123", "//", "a-name-that-is-longer.js/\n", "/0", "long", "#1/8", "bsd.js\x00\x00body"),
			map[string]string{"debian-binary": "2.0\n", "odd": "123", "a-name-that-is-longer.js": "long", "bsd.js": "body"},
		},
		{kindGzip, gzipOf(t, []byte("no tar")), map[string]string{"x": "no tar"}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			if got := Detect(c.data[:min(len(c.data), HeadBytes)]); got != c.kind {
				t.Fatalf("detected as %q", got)
			}
			got, err := walked(t, c.data, Visitor{})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(c.want)))
			}
		})
	}
}

// What other programs write is read too.
func TestForeignWriters(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	must(t, os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "DEBIAN/control"), []byte("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: x\n"), 0o644))
	must(t, os.MkdirAll(filepath.Join(root, "opt"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "opt/app.js"), []byte(contents()["a/b/large.js"]), 0o644))
	for name, argv := range map[string][]string{
		"deb.xz": {"dpkg-deb", "--root-owner-group", "-Zxz", "-b", root}, "deb.gz": {"dpkg-deb", "--root-owner-group", "-Zgzip", "-b", root},
		"bz2": {"tar", "-cjf"}, "squashfs": {"mksquashfs", root},
	} {
		t.Run(name, func(t *testing.T) {
			need.Program(t, argv[0], map[string]string{"dpkg-deb": "dpkg", "tar": "tar", "mksquashfs": "squashfs-tools"}[argv[0]])
			if argv[0] == "tar" {
				need.Program(t, "bzip2", "bzip2")
			}
			out := filepath.Join(dir, "out."+name)
			args := append(argv[1:len(argv):len(argv)], out)
			if argv[0] == "tar" {
				args = append(args, "-C", root, ".")
			}
			if msg, err := exec.Command(argv[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", argv[0], err, msg)
			}
			data, err := os.ReadFile(out)
			must(t, err)
			got, err := walked(t, data, Visitor{})
			must(t, err)
			for member, body := range got { // of a .deb, the tars in it
				if Detect([]byte(body)) == "" || !strings.HasPrefix(member, "data.") {
					continue
				}
				if got, err = walked(t, []byte(body), Visitor{}); err != nil {
					t.Fatal(err)
				}
			}
			found := false
			for member, body := range got {
				found = found || strings.HasSuffix(member, "opt/app.js") && body == contents()["a/b/large.js"]
			}
			if !found {
				t.Error(slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

// What is not wanted is not read, and what is too large is told.
func TestLimit(t *testing.T) {
	for kind, data := range map[Kind][]byte{kindTar: tarOf(t, contents()), kindZip: zipOf(t, contents()), kindAsar: asarOf(t, within(contents()))} {
		broken := map[string]error{}
		got, err := walked(t, data, Visitor{
			Limit: func(name string, _ []byte) int64 {
				if strings.Contains(name, "small") {
					return 0
				}
				return 100
			},
			Broken: func(name string, err error) { broken[name] = err },
		})
		if err != nil || len(broken) != 1 || !errors.Is(broken["a/b/large.js"], errTooLarge) || got["a/small.js"] != "" || len(got) == 0 {
			t.Errorf("%s: %v, %v, %v", kind, err, broken, got)
		}
	}
}

func TestBombs(t *testing.T) {
	if b := NewBudget(1, nil); b.most != maxSmall {
		t.Error(b.most)
	}
	if b := NewBudget(10<<20, nil); b.most != maxRatio*10<<20 {
		t.Error(b.most)
	}
	zeros := make([]byte, 3<<20)
	for name, data := range map[string][]byte{
		"gzip": gzipOf(t, zeros), "zstd": zstdOf(t, zeros), "zip": zipOf(t, map[string]string{"a.js": string(zeros)}),
	} {
		_, err := walkedWithin(t, &Budget{most: 2 << 20, mostRead: 1 << 30}, data, Visitor{})
		if !errors.Is(err, ErrBomb) {
			t.Errorf("%s of %d bytes: %v", name, len(data), err)
		}
	}
	b := NewBudget(1, nil)
	for range maxMembers {
		must(t, b.member())
	}
	if err := b.member(); !errors.Is(err, ErrBomb) {
		t.Error(err)
	}
	big := xzOf(t, []byte("x"))
	i := bytes.Index(big, []byte{0x21, 1})
	big[i+2] = 40
	if _, err := walked(t, big, Visitor{}); err == nil || !strings.Contains(err.Error(), "dictionary") {
		t.Error(err)
	}
}

// What members are read is limited, however well they compress, and the members of an asar archive may not overlap.
func TestMembersInBudget(t *testing.T) {
	if b := NewBudget(1, nil); b.mostRead != maxSmallRead {
		t.Error(b.mostRead)
	}
	if b := NewBudget(10<<20, nil); b.mostRead != maxReadRatio*10<<20 {
		t.Error(b.mostRead)
	}
	text := strings.Repeat("f(a,1);", 1<<17)
	files := map[string]string{"a.js": text, "b.js": text}
	for name, data := range map[string][]byte{
		"tar": tarOf(t, files), "tgz": gzipOf(t, tarOf(t, files)), "zip": zipOf(t, files), "asar": asarOf(t, files), "ar": arOf("a.js", text, "b.js", text),
		"gzip": gzipOf(t, []byte(text+text)),
	} {
		within := &Budget{most: 1 << 30, mostRead: 2 * int64(len(text))}
		if _, err := walkedWithin(t, within, data, Visitor{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := walkedWithin(t, &Budget{most: 1 << 30, mostRead: 2*int64(len(text)) - 1}, data, Visitor{}); !errors.Is(err, ErrBomb) {
			t.Errorf("%s of %d bytes: %v", name, len(data), err)
		}
	}

	// Members of one span are copies of one file.
	shared := asarWith(t, text, func(int) (offset, size int) { return 0, len(text) })
	if got, err := walked(t, shared, Visitor{}); err != nil || len(got) != 8 {
		t.Errorf("%d members, %v", len(got), err)
	}
	overlapping := asarWith(t, text, func(i int) (offset, size int) { return i, len(text) - i })
	if _, err := walked(t, overlapping, Visitor{}); !errors.Is(err, ErrBomb) {
		t.Errorf("overlapping members: %v", err)
	}
}

// Of what is cut short, the whole members are handed out.
func TestCutShort(t *testing.T) {
	for kind, data := range map[Kind][]byte{kindTar: tarOf(t, contents()), kindGzip: gzipOf(t, tarOf(t, contents())), kindAr: arOf("a", "1", "b", "2222"), kindZip: zipOf(t, contents()), kindSquashfs: squashOf(t, within(contents()))} {
		for _, n := range []int{len(data) - 1, len(data) / 2, 300, 60, 9} {
			if n >= len(data) {
				continue
			}
			_, err := walked(t, data[:n:n], Visitor{Broken: func(string, error) {}})
			if err == nil && n < 60 && kind != kindAr {
				t.Errorf("%s: no error for %d of %d bytes", kind, n, len(data))
			}
		}
	}
}

func FuzzWalk(f *testing.F) {
	small := map[string]string{"a.js": "x", "b/c.js": "yy"}
	for _, data := range [][]byte{tarOf(f, small), zipOf(f, small), asarOf(f, small), gzipOf(f, tarOf(f, small)), xzOf(f, []byte("x")), zstdOf(f, []byte("x")), squashOf(f, small), arOf("a", "b")} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := Detect(data)
		if kind == "" {
			return
		}
		_ = Walk(context.Background(), kind, "x", data[:len(data):len(data)], NewBudget(int64(len(data)), nil), Visitor{
			Limit:  func(string, []byte) int64 { return 1 << 20 },
			Member: func(string, []byte) error { return nil },
			Broken: func(string, error) {},
			At:     func(int64) {},
		})
	})
}
