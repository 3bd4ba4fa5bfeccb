package project

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"unwire/captures/profile"
)

// maxFaults is the largest number of errors that are reported for a file.
const maxFaults = 10

// A parser reads the YAML nodes of an unwire.yaml and collects the errors in them.
type parser struct {
	// file is the result.
	file *File

	// folder is the folder of the unwire.yaml, below which all paths must be.
	folder string

	// profiles are the valid names of profiles.
	profiles []string

	// faults are the errors found so far.
	faults []error
}

// forbidden maps settings that users may expect in unwire.yaml, but that are not allowed there, to what
// to use instead. If they were allowed, an unwire.yaml in a folder from somebody else could send
// requests, trust a CA, reveal secrets or run commands.
var forbidden = map[string]string{
	"host": "--allow-host", "hosts": "--allow-host", "allow-host": "--allow-host", "allow-hosts": "--allow-host", "allow": "--allow-host",
	"live": "--live", "to": "--to", "upload": "a flag",
	"ca": "--upstream-ca", "upstream-ca": "--upstream-ca", "insecure": "a flag", "upstream-insecure": "a flag", "upstream-proxy": "a flag",
	"keep-secrets": "--keep-secrets", "credentials": "--credentials", "token": "UNWIRE_TOKEN",
	"command": "a flag", "commands": "a flag", "run": "a flag", "exec": "a flag", "header-from": "--header-from", "edit": "--edit", "editor": "EDITOR",
}

// fault records an error at a YAML node, with the line number.
func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, fmt.Errorf("%s:%d: %s", p.file.Path, n.Line, fmt.Sprintf(format, args...)))
	}
}

// document parses the top-level mapping of the file.
func (p *parser) document(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // nothing but comments
	}
	p.members(n, map[string]func(*yaml.Node){
		"definitions": func(n *yaml.Node) {
			for _, text := range p.textOrList(n) {
				if path := p.path(text); path != "" {
					p.file.Definitions = append(p.file.Definitions, path)
				}
			}
		},
		"profile": func(n *yaml.Node) {
			if p.file.Profile = p.text(n); p.file.Profile != "" && !slices.Contains(p.profiles, p.file.Profile) {
				p.fault(n, "profile must be one of %s, not %q", strings.Join(p.profiles, ", "), p.file.Profile)
			}
		},
		"weights": func(n *yaml.Node) {
			if text := p.textNode(n); text != nil {
				p.file.Weights = p.path(text)
			}
		},
		"redact": p.redact,
	})
}

// The syntax of elements of lists: names of HTTP headers, full names of message fields, prefixes of API
// keys, and names of query parameters or JSON members.
var (
	headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") })
	fieldName  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$`)
	})
	keyPrefix  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]+$`) })
	memberName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`) })
)

// redact parses the additional rules for secrets.
func (p *parser) redact(n *yaml.Node) {
	s := &p.file.Secrets
	p.members(n, map[string]func(*yaml.Node){
		"headers": func(n *yaml.Node) {
			for _, name := range p.list(n, headerName(), "a valid header name") {
				s.Headers = append(s.Headers, strings.ToLower(name))
			}
		},
		"names": func(n *yaml.Node) {
			s.Names = p.list(n, memberName(), "a valid name of a query parameter or a JSON member")
		},
		"fields": func(n *yaml.Node) {
			s.Fields = p.list(n, fieldName(), "a full field name, such as shop.v1.Session.token")
		},
		"keys": func(n *yaml.Node) {
			for _, item := range p.items(n) {
				if key := p.key(item); key.Prefix != "" {
					s.Keys = append(s.Keys, key)
				}
			}
		},
	})
}

// key parses the description of one kind of API key.
func (p *parser) key(n *yaml.Node) profile.KeyShape {
	k := profile.KeyShape{MinLength: 16}
	p.members(n, map[string]func(*yaml.Node){
		"prefix": func(n *yaml.Node) {
			if k.Prefix = p.text(n); k.Prefix != "" && (len(k.Prefix) < minPrefix || !keyPrefix().MatchString(k.Prefix)) {
				p.fault(n, "prefix must have at least %d letters, digits, underscores, hyphens and dots, and cannot be %q", minPrefix, k.Prefix)
			}
		},
		"min-length": func(n *yaml.Node) {
			var err error
			if k.MinLength, err = strconv.Atoi(n.Value); err != nil || n.Tag != "!!int" || k.MinLength < 8 || k.MinLength > maxText {
				p.fault(n, "min-length must be a number from 8 to %d, not %q", maxText, n.Value)
			}
		},
	})
	if k.Prefix == "" && n.Kind == yaml.MappingNode {
		p.fault(n, "each entry of keys needs a prefix")
	}
	return k
}

// members parses a mapping. known has a function for each valid key, which parses the key's value; other
// keys are errors.
func (p *parser) members(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if !p.plain(n, yaml.MappingNode, "a mapping, such as 'definitions: proto/'") {
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if !p.plain(name, yaml.ScalarNode, "a name") {
			continue
		}

		// A forbidden setting gets an explanation instead of "unknown name".
		read, flag := known[name.Value], forbidden[strings.ReplaceAll(strings.ToLower(name.Value), "_", "-")]
		switch {
		case seen[name.Value]:
			p.fault(name, "the setting %s is given twice", name.Value)
		case read != nil:
			read(value)
		case flag != "":
			p.fault(name, "%s cannot be set in unwire.yaml, because somebody else may have written the file: use %s instead", name.Value, flag)
		default:
			var names []string
			for k := range known {
				names = append(names, k)
			}
			slices.Sort(names)
			p.fault(name, "unknown name %q; the valid names are %s", name.Value, strings.Join(names, ", "))
		}
		seen[name.Value] = true
	}
}

// plain reports whether a node has the wanted kind, and no alias, anchor or tag. Otherwise it records an
// error; want describes the expected value.
func (p *parser) plain(n *yaml.Node, kind yaml.Kind, want string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.fault(n, "unwire.yaml must not contain anchors or aliases")
	case n.Style&yaml.TaggedStyle != 0:
		p.fault(n, "unwire.yaml must not contain tags")
	case n.Kind != kind || kind == yaml.ScalarNode && n.Tag != "!!str":
		p.fault(n, "expected %s", want)
	default:
		return true
	}
	return false
}

// textNode returns n if it is a non-empty string of at most maxText bytes; otherwise it records an error
// and returns nil.
func (p *parser) textNode(n *yaml.Node) *yaml.Node {
	if !p.plain(n, yaml.ScalarNode, "a text") {
		return nil
	}
	if n.Value == "" || len(n.Value) > maxText {
		p.fault(n, "a text must have 1 to %d bytes", maxText)
		return nil
	}
	return n
}

// text returns the value of a string node; "" after an error.
func (p *parser) text(n *yaml.Node) string {
	if n = p.textNode(n); n == nil {
		return ""
	}
	return n.Value
}

// items returns the elements of a list node; nil after an error, for instance if the list is too long.
func (p *parser) items(n *yaml.Node) []*yaml.Node {
	if !p.plain(n, yaml.SequenceNode, "a list, such as [one, two]") {
		return nil
	}
	if len(n.Content) > maxList {
		p.fault(n, "a list must have at most %d elements", maxList)
		return nil
	}
	return n.Content
}

// list returns the strings in a list node. It records an error for each that does not match form; want
// describes the expected form.
func (p *parser) list(n *yaml.Node, form *regexp.Regexp, want string) (texts []string) {
	for _, item := range p.items(n) {
		text := p.text(item)
		if text != "" && !form.MatchString(text) {
			p.fault(item, "%q is not %s", text, want)
		}
		texts = append(texts, text)
	}
	return texts
}

// textOrList returns the nodes of a list of strings, or of a single string.
func (p *parser) textOrList(n *yaml.Node) (nodes []*yaml.Node) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = p.items(n)
	}
	for _, item := range items {
		if text := p.textNode(item); text != nil {
			nodes = append(nodes, text)
		}
	}
	return nodes
}

// path returns the path in a node, joined to the file's folder. A path outside that folder is an error,
// for which it returns "".
func (p *parser) path(n *yaml.Node) string {
	if strings.HasPrefix(n.Value, "reflect:") {
		p.fault(n, "this file cannot name %s, because unwire sends no requests when it reads this file: give it with --proto, or store its definitions with 'unwire schema extract -o DIR %s'", n.Value, n.Value)
		return ""
	}
	local := filepath.FromSlash(n.Value)
	if strings.ContainsRune(n.Value, 0) || !filepath.IsLocal(local) {
		p.fault(n, "%q is not a path below the folder of unwire.yaml", n.Value)
		return ""
	}
	path := filepath.Join(p.folder, local)
	folder, err := filepath.EvalSymlinks(p.folder)
	if real, rerr := filepath.EvalSymlinks(path); err == nil && rerr == nil {
		if rel, err := filepath.Rel(folder, real); err != nil || !filepath.IsLocal(rel) {
			p.fault(n, "%q is a symbolic link to a path outside the folder of unwire.yaml", n.Value)
			return ""
		}
	}
	return path
}
