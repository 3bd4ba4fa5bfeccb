package bundle

import (
	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"
)

// es2 extracts the descriptors in the output of protoc-gen-es 2: whole files in base64, fileDesc("…", […]).
// Minification changes the name of the function, so descriptors are recognized by their structure.
func (x *scan) es2() {
	s := x.Script
	for _, at := range s.Anchors[jstree.AnchorDescriptor] {
		// This is a later part of a string.
		if s.Typ(at-1) == js.AddToken {
			continue
		}
		n := s.Expr(at)
		text, ok := s.Str(n)
		if !ok {
			continue
		}
		if !s.ClaimMemory(at, jstree.TextMemory*len(text)) {
			return
		}
		fd := model.FileOf(text)
		if fd == nil {
			continue
		}

		// Imports are dropped, because the merged files get their own.
		if !x.meter.Claim(model.MemoryOf(fd)) {
			return
		}
		x.forms[model.FormES2] = true
		fd.Dependency, fd.PublicDependency, fd.WeakDependency = nil, nil, nil
		x.files = append(x.files, fd)
	}
}
