package classfile

// maxAnnotationDepth is the maximum nesting of annotations and arrays in an annotation.
const maxAnnotationDepth = 16

// annotations parses the annotations attribute of a field or method, as far as it is well-formed.
func annotations(f *File, body []byte) (list []Annotation) {
	r := &reader{data: body}
	for n := r.uint(2); n > 0 && r.ok(); n-- {
		a := r.annotation(f, 0)
		if !r.ok() {
			break
		}
		list = append(list, a)
	}
	return list
}

// annotation parses one annotation, which is nested in depth others.
func (r *reader) annotation(f *File, depth int) Annotation {
	a := Annotation{Type: string(f.at(r.uint(2)).utf8)}
	for n := r.uint(2); n > 0 && r.ok(); n-- {
		name := f.at(r.uint(2)).utf8
		if value, ok := r.element(f, depth); ok {
			if a.Elements == nil {
				a.Elements = map[string]string{}
			}
			a.Elements[string(name)] = value
		}
	}
	return a
}

// element parses the value of an annotation's element. ok is false if it is not a text, class or enum constant.
func (r *reader) element(f *File, depth int) (value string, ok bool) {
	if depth > maxAnnotationDepth {
		r.at = len(r.data) + 1
		return "", false
	}
	switch tag := r.uint(1); tag {
	case 's', 'c':
		return string(f.at(r.uint(2)).utf8), true
	// An enum constant: its class, and its name.
	case 'e':
		r.bytes(2)
		return string(f.at(r.uint(2)).utf8), true
	case '@':
		r.annotation(f, depth+1)
	case '[':
		for n := r.uint(2); n > 0 && r.ok(); n-- {
			r.element(f, depth+1)
		}
	// Numbers.
	default:
		r.bytes(2)
	}
	return "", false
}
