package arch

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestReadmeIsShort: README.md introduces unwire on at most 150 lines.
func TestReadmeIsShort(t *testing.T) {
	data, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(data), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, more than 150: move details to the document that they belong to", lines)
	}
}

// TestDocumentsExist checks that citations in sources, such as RESEARCH.md#envelopes, and links
// in Markdown files lead to files and sections that exist.
func TestDocumentsExist(t *testing.T) {
	docs := documents{root: "../../..", anchors: map[string]map[string]bool{}}
	cited, linked := 0, 0
	err := filepath.WalkDir(docs.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == "node_modules" || d.Name() == ".git") {
				return filepath.SkipDir
			}
			return err
		}
		ext := filepath.Ext(path)
		if !slices.Contains([]string{".go", ".md", ".proto", ".cjs"}, ext) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if ext == ".md" {
			for _, target := range links(string(data)) {
				linked++
				if err := docs.checkLink(path, target); err != nil {
					t.Errorf("%s links to %s: %v", path, target, err)
				}
			}
			return nil
		}
		for _, target := range citations(comments(string(data))) {
			cited++
			if err := docs.checkCitation(path, target); err != nil {
				t.Errorf("%s cites %s: %v", path, target, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if cited == 0 || linked == 0 {
		t.Errorf("%d citations and %d links: the check looked at nothing", cited, linked)
	}
}

// TestDocumentChecks checks that TestDocumentsExist finds broken links.
func TestDocumentChecks(t *testing.T) {
	root := t.TempDir()
	text := "# Über A & B: `x` <a id=\"old\"></a>\n\n```\n# no heading\n[no](link.md)\n```\n## Twice\n## Twice\n`[no](link.md)` [a](b.md#c) [b](<d.md>) ![p](p.png)\n"
	if err := os.WriteFile(filepath.Join(root, "DOC.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := links(text), []string{"b.md#c", "d.md", "p.png"}; !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
	// The names are put together, so that TestDocumentsExist does not take them for citations.
	source := "x := 1 // see a/RESULTS" + ".md#x-y.\ny := \"JSON" + ".md\"\n// FORMAT" + ".md\n"
	if got, want := citations(comments(source)), []string{"a/RESULTS" + ".md#x-y", "FORMAT" + ".md"}; !slices.Equal(got, want) {
		t.Errorf("citations %q, want %q", got, want)
	}
	docs := documents{root: root, anchors: map[string]map[string]bool{}}
	for target, ok := range map[string]bool{
		"DOC.md": true, "DOC.md#über-a--b-x": true, "#old": true, "#twice": true, "#twice-1": true, "https://example.com/x": true,
		"#twice-2": false, "#no-heading": false, "other.md": false, "../DOC.md": false, "#": false,
	} {
		if err := docs.checkLink(filepath.Join(root, "DOC.md"), target); (err == nil) != ok {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// documents are the Markdown files of a tree.
type documents struct {
	root string

	// anchors are the sections of the files that were read, by path.
	anchors map[string]map[string]bool
}

// checkLink checks a link in a Markdown file; links to other sites are not followed.
func (d *documents) checkLink(file, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return err
	}
	path := file
	if u.Path != "" {
		path = filepath.Join(filepath.Dir(file), filepath.FromSlash(u.Path))
	}
	if rel, err := filepath.Rel(d.root, path); err != nil || strings.HasPrefix(rel, "..") {
		return fmt.Errorf("outside of the tree")
	}
	if u.Fragment == "" && u.Path != "" {
		_, err := os.Stat(path)
		return err
	}
	return d.checkSection(path, u.Fragment)
}

// checkCitation checks a citation in a source file. Its path begins at the root of the tree; a
// name alone may also be that of a document in the folder of the source or in one above.
func (d *documents) checkCitation(file, target string) error {
	name, anchor, cut := strings.Cut(target, "#")
	path := filepath.Join(d.root, filepath.FromSlash(name))
	if !strings.Contains(name, "/") {
		for dir := filepath.Dir(file); dir != d.root; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				path = filepath.Join(dir, name)
				break
			}
			if dir == filepath.Dir(dir) {
				return fmt.Errorf("%s is outside of the tree", file)
			}
		}
	}
	if !cut {
		_, err := os.Stat(path)
		return err
	}
	return d.checkSection(path, anchor)
}

// checkSection checks that a Markdown file has a section.
func (d *documents) checkSection(path, anchor string) error {
	if d.anchors[path] == nil {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d.anchors[path] = sections(string(data))
	}
	if !d.anchors[path][anchor] {
		return fmt.Errorf("there is no section #%s", anchor)
	}
	return nil
}

// comments returns the comments of a source that begin with two slashes.
func comments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if _, comment, ok := strings.Cut(line, "//"); ok {
			b.WriteString(comment)
		}
	}
	return b.String()
}

// A citation is the path of one of the documents of this tree.
var citation = regexp.MustCompile(`(?:[a-z][a-z0-9_-]*/)*(?:RESEARCH|README|RESULTS|FORMAT|JSON|CLIENTS|PARAMETERS|CONTRIBUTING|CHANGELOG|SECURITY)\.md(?:#[a-z0-9-]*[a-z0-9])?`)

func citations(text string) []string { return citation.FindAllString(text, -1) }

var (
	link = regexp.MustCompile(`\]\(<?([^()\s<>]+)>?\)`)
	span = regexp.MustCompile("`[^`]*`")
	id   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// links returns the targets of the links and images of a Markdown file, without those in code.
func links(text string) []string {
	var out []string
	for _, line := range prose(text) {
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(line, ""), -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// prose returns the lines of a Markdown file that are not in fenced or indented code.
func prose(text string) []string {
	var out []string
	fenced := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced && !strings.HasPrefix(line, "    "):
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// sections returns the anchors of a Markdown file: those of its headings as GitHub makes them,
// and explicit ones.
func sections(text string) map[string]bool {
	anchors := map[string]bool{}
	seen := map[string]int{}
	for _, line := range prose(text) {
		for _, m := range id.FindAllStringSubmatch(line, -1) {
			anchors[m[1]] = true
		}
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		slug := slugOf(id.ReplaceAllString(strings.ReplaceAll(title, "</a>", ""), ""))
		anchor := slug
		if n := seen[slug]; n > 0 {
			anchor = fmt.Sprintf("%s-%d", slug, n)
		}
		seen[slug]++
		anchors[anchor] = true
	}
	return anchors
}

// slugOf returns the anchor of a heading: lower case, blanks as dashes, without punctuation.
func slugOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(title)))
}
