package eval

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What ships real protobuf besides Go modules.
const (
	packageTiles  = "@mapbox/mvt-fixtures@4.0.0"
	packageGlyphs = "@mapbox/glyph-pbf-composite@0.0.3"
)

// Modules that ship real protobuf.
const (
	moduleCAR        = "github.com/ipld/go-car/v2@v2.17.0"
	moduleBoxo       = "github.com/ipfs/boxo@v0.43.0"
	moduleExposition = "github.com/prometheus/common@v0.73.1"
)

// shippedCorpora is real data that packages ship with their tests: models and tensors of
// ONNX and blocks of IPFS to tune on; tiles, glyphs, profiles of CPUs and metrics
// for validation.
func shippedCorpora(t testing.TB, only string) (out []corpus) {
	for _, s := range []struct {
		name string
		read func(testing.TB) []corpus
	}{
		{"onnx", onnxCorpora},
		{"ipfs", ipfsCorpora},
		{"tiles", tileCorpora},
		{"glyphs", glyphCorpora},
		{"cpu profiles", cpuCorpora},
		{"exposition", expositionCorpora},
	} {
		if strings.HasPrefix(s.name, only) || only == "shipped" {
			out = append(out, s.read(t)...)
		}
	}
	return out
}

// parted shuffles samples and divides them into corpora of a hundred, of which it returns so many.
func parted(c corpus, samples [][]byte, most int) (out []corpus) {
	r := rand.New(rand.NewPCG(uint64(len(samples)), 6))
	r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	for part := range slices.Chunk(samples, 100) {
		if len(out) < most && (len(out) == 0 || len(part) == 100) {
			c.samples = part
			out = append(out, c)
		}
	}
	return out
}

// filesIn reads the files below dir that a pattern of base names matches.
func filesIn(t testing.TB, dir, pattern string) (out [][]byte) {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ok, err := filepath.Match(pattern, d.Name()); !ok || err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".gz") && err == nil {
			data, err = unzipped(data)
		}
		out = append(out, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func unzipped(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// npmDir returns where the files of a package are that npm downloads, or "".
func npmDir(t testing.TB, name string) string {
	dir := t.TempDir()
	run := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Dir = dir
		return c.Run()
	}
	if err := run("npm", "pack", name); err != nil {
		t.Logf("no %s: %v", name, err)
		return ""
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 || run("tar", "xzf", files[0]) != nil {
		t.Fatalf("%s: %v %v", name, files, err)
	}
	return filepath.Join(dir, "package")
}

// debianDir returns where the files of Debian packages are, or "".
func debianDir(t testing.TB, names ...string) string {
	dir := t.TempDir()
	get := exec.Command("apt-get", append([]string{"download"}, names...)...)
	get.Dir = dir
	if err := get.Run(); err != nil {
		t.Logf("no %v: %v", names, err)
		return ""
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := exec.Command("dpkg-deb", "-x", f, dir).Run(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// onnxCorpora is the models and tensors of ONNX's own tests.
func onnxCorpora(t testing.TB) []corpus {
	dir := debianDir(t, "libonnx-testdata", "libonnx-dev")
	if dir == "" {
		return nil
	}
	const file = "usr/include/onnx/onnx.proto"
	data := filepath.Join(dir, "usr/share/libonnx-testdata/data")
	model, tensor := compiledIn(t, dir, file, "ModelProto"), compiledIn(t, dir, file, "TensorProto")
	out := parted(corpus{group: "onnx models", name: "ModelProto", truth: model}, typed(filesIn(t, data, "*.onnx"), model), 4)
	return append(out, parted(corpus{group: "onnx tensors", name: "TensorProto", truth: tensor}, typed(filesIn(t, data, "*put_*.pb"), tensor), 4)...)
}

// typed keeps what is of the type, by all of its fields.
func typed(samples [][]byte, md protoreflect.MessageDescriptor) [][]byte {
	return slices.DeleteFunc(samples, func(p []byte) bool {
		m := dynamicpb.NewMessage(md)
		return len(p) == 0 || len(p) > 1<<20 || proto.Unmarshal(p, m) != nil || len(m.GetUnknown()) > 0
	})
}

// ipfsCorpora is blocks of archives of IPFS, and the files and directories in them.
func ipfsCorpora(t testing.TB) []corpus {
	boxo := moduleDir(t, moduleBoxo)
	node, data := compiledIn(t, boxo, "ipld/merkledag/pb/merkledag.proto", "PBNode"), compiledIn(t, boxo, "ipld/unixfs/pb/unixfs.proto", "Data")
	var nodes, files [][]byte
	seen := map[string]bool{}
	for _, archive := range append(filesIn(t, moduleDir(t, moduleCAR), "sample-v1.car"), filesIn(t, boxo, "*.car")...) {
		for _, block := range carBlocks(archive) {
			if seen[string(block)] {
				continue
			}
			seen[string(block)] = true
			nodes = append(nodes, block)
			if p := part(block, 1); len(p) > 0 {
				files = append(files, p)
			}
		}
	}
	out := parted(corpus{group: "ipfs nodes", name: "PBNode", truth: node}, typed(nodes, node), 2)
	return append(out, parted(corpus{group: "ipfs files", name: "Data", truth: data}, typed(files, data), 2)...)
}

// carBlocks returns the blocks of dag-pb of an archive of version 1.
func carBlocks(data []byte) (out [][]byte) {
	next := func() []byte {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			data = nil
			return nil
		}
		section := data[n:][:size]
		data = data[n:][size:]
		return section
	}
	next() // the header
	for {
		s := next()
		if len(s) < 34 {
			return out
		}
		if s[0] == 0x12 && s[1] == 0x20 { // a content identifier of version 0
			out = append(out, s[34:])
			continue
		}
		codec, n := binary.Uvarint(s[1:])
		if s[0] != 1 || n <= 0 || codec != 0x70 {
			continue
		}
		rest := s[1+n:]
		_, n = binary.Uvarint(rest)
		size, m := binary.Uvarint(rest[max(n, 0):])
		if n > 0 && m > 0 && size <= uint64(len(rest)-n-m) {
			out = append(out, rest[n+m:][size:])
		}
	}
}

// tileCorpora is tiles of maps, with packed numbers.
func tileCorpora(t testing.TB) []corpus {
	dir := npmDir(t, packageTiles)
	if dir == "" {
		return nil
	}
	md := compiledIn(t, dir, "vector-tile-spec/2.1/vector_tile.proto", "Tile")
	var out []corpus
	for _, place := range []string{"bangkok", "norway", "osm-qa-montevideo", "uruguay"} {
		tiles := slices.DeleteFunc(typed(filesIn(t, filepath.Join(dir, "real-world", place), "*.mvt"), md), func(p []byte) bool { return len(p) > 50_000 })
		c := parted(corpus{group: "tiles", held: true, name: place, truth: md}, tiles, 1)
		for i := range c {
			c[i].samples = c[i].samples[:min(len(c[i].samples), 20)]
		}
		out = append(out, c...)
	}
	return out
}

// glyphCorpora is fonts as pictures of their characters.
func glyphCorpora(t testing.TB) []corpus {
	dir := npmDir(t, packageGlyphs)
	if dir == "" {
		return nil
	}
	md := compiledIn(t, dir, "proto/glyphs.proto", "glyphs")
	return parted(corpus{group: "glyphs", held: true, name: "glyphs", truth: md}, typed(filesIn(t, dir, "*.pbf"), md), 1)
}

// cpuCorpora is the profiles that Go's compiler ships.
func cpuCorpora(t testing.TB) []corpus {
	md := compiled(t, "github.com/google/pprof@v0.0.0-20260906184651-6331bc6350fe", "proto/profile.proto", "Profile")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src/cmd/compile")
	var samples [][]byte
	for _, p := range append(filesIn(t, dir, "*.pprof"), filesIn(t, dir, "default.pgo")...) {
		data, err := unzipped(p)
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, data)
	}
	return []corpus{{group: "cpu profiles", held: true, name: "Profile", truth: md, samples: samples}}
}

// expositionCorpora is metrics as a program of Prometheus' showed them.
func expositionCorpora(t testing.TB) []corpus {
	dir := moduleDir(t, moduleExposition)
	data, err := os.ReadFile(filepath.Join(dir, "expfmt/testdata/protobuf"))
	if err != nil {
		t.Fatal(err)
	}
	c := corpus{group: "exposition", held: true, name: "MetricFamily"}
	for len(data) > 0 {
		p, n := protowire.ConsumeBytes(data)
		if n < 0 {
			t.Fatal("no delimited metrics")
		}
		c.samples, data = append(c.samples, p), data[n:]
	}
	raw := descriptorsIn(t, moduleDir(t, "github.com/prometheus/client_model@v0.6.3"), 20)
	for _, md := range typesOf(t, raw) {
		if md.FullName() == "io.prometheus.client.MetricFamily" {
			c.truth = md
		}
	}
	return []corpus{c}
}
