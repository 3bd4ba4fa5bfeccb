package classfile

import "encoding/binary"

// A reader reads the bytes of a class file in order. After the end it returns zeros; ok reports that
// afterwards.
type reader struct {
	// data is the content of the class file.
	data []byte
	// at is the current offset; it is greater than len(data) if more was read than there is.
	at int
}

// bytes reads the next n bytes. After the end it returns nil.
func (r *reader) bytes(n int) []byte {
	if n < 0 || r.at > len(r.data)-n {
		r.at = len(r.data) + 1
		return nil
	}
	b := r.data[r.at : r.at+n]
	r.at += n
	return b
}

// uint reads a big-endian number of n bytes.
func (r *reader) uint(n int) int {
	v := 0
	for _, b := range r.bytes(n) {
		v = v<<8 | int(b)
	}
	return v
}

// ok reports whether all that was read was within the file.
func (r *reader) ok() bool { return r.at <= len(r.data) }

// constants parses the constant pool.
func (r *reader) constants() []constant {
	n := r.uint(2)
	pool := make([]constant, n)
	for i := 1; i < n && r.ok(); i++ {
		c := constant{tag: byte(r.uint(1))}
		switch c.tag {
		case constantUTF8:
			c.utf8 = r.bytes(r.uint(2))
		// These have one operand; the last three are method types, modules and packages.
		case constantClass, constantString, 16, 19, 20:
			c.a = r.uint(2)
		// A method handle.
		case 15:
			r.bytes(3)
		// Numbers, references, pairs of name and type, and dynamic constants have four bytes.
		case constantInteger, 4, constantField, constantMethod, constantOfIface, constantPair, 17, 18:
			c.a, c.b = r.uint(2), r.uint(2)
		case constantLong, constantDouble:
			r.bytes(8)
		default:
			return pool
		}
		pool[i] = c
		if c.tag == constantLong || c.tag == constantDouble {
			// The specification lets these two take two entries.
			i++
		}
	}
	return pool
}

// members parses the table of fields or that of methods, which have the same format.
func (r *reader) members(f *File) (list []Member) {
	for n := r.uint(2); n > 0 && r.ok(); n-- {
		r.bytes(2) // the access flags
		m := Member{Name: string(f.at(r.uint(2)).utf8), Descriptor: string(f.at(r.uint(2)).utf8)}
		for attrs := r.uint(2); attrs > 0 && r.ok(); attrs-- {
			name := f.at(r.uint(2)).utf8
			body := r.bytes(r.uint(4))
			switch {
			case string(name) == "RuntimeVisibleAnnotations", string(name) == "RuntimeInvisibleAnnotations":
				m.Annotations = append(m.Annotations, annotations(f, body)...)
			case string(name) == "ConstantValue" && len(body) == 2:
				m.Constant = int(binary.BigEndian.Uint16(body))
			// The code has a header of eight bytes: stack, locals, length.
			case string(name) == "Code" && len(body) > 8:
				code := body[8:]
				m.Code = code[:min(len(code), int(binary.BigEndian.Uint32(body[4:])))]
			}
		}
		list = append(list, m)
	}
	return list
}
