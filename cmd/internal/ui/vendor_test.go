package ui_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"unwire/captures/need"
)

// TestVendorIsReproducible: the libraries and their licences are what node/vendor.mjs makes of the locked packages.
func TestVendorIsReproducible(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "node")
	made := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, "vendor.mjs", made)
	cmd.Dir = "node"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{"vendor.js", "dagre.js", "vendor.txt"} {
		got, err := os.ReadFile(filepath.Join(made, file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("page/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("page/%s differs: run npm run vendor in node", file)
		}
		if file != "vendor.txt" {
			if !bytes.Contains(want[:300], []byte("Licences: vendor.txt")) {
				t.Errorf("%s does not name its licences", file)
			}
			continue
		}
		for _, notice := range []string{"preact 11.", "htm 3.", "@preact/signals 2.", "@preact/signals-core 1.", "@dagrejs/dagre 3.", "@dagrejs/graphlib 4.", "Apache License", "The MIT License", "Chris Pettitt"} {
			if !strings.Contains(string(want), notice) {
				t.Errorf("vendor.txt lacks %q", notice)
			}
		}
	}
}

// maxPage is how large the page may be, compressed, without the library of graphs, which is loaded for a graph.
const maxPage = 60_000

// TestPageIsSmall: the page with all of its files is small, and asks no other server.
func TestPageIsSmall(t *testing.T) {
	t.Parallel()
	total := 0
	foreign := regexp.MustCompile(`(?i)(src|href|url\(|import|fetch\()\s*[=(]?\s*["'(]?(https?:)?//`)
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function|setTimeout\("`)
	for _, pattern := range []string{"*.html", "*.css", "*.svg", "*.js"} {
		files, err := filepath.Glob("page/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if name != "page/dagre.js" {
				total += b.Len()
			}
			if m := foreign.Find(data); m != nil {
				t.Errorf("%s refers to another server: %s", name, m)
			}
			if m := markup.Find(data); m != nil && !strings.HasSuffix(name, "vendor.js") && name != "page/dagre.js" {
				t.Errorf("%s makes markup or code of text: %s", name, m)
			}
		}
	}
	t.Logf("%d bytes in gzip", total)
	if total > maxPage {
		t.Errorf("the page has %d bytes in gzip, more than %d", total, maxPage)
	}
}
