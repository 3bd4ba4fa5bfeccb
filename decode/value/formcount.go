package value

import "slices"

// Forms counts the payloads that have a form which tells what they are for.
type Forms struct {
	UUID int64 `json:"uuid,omitempty"`
	URL  int64 `json:"url,omitempty"`
	JSON int64 `json:"json,omitempty"`
	Time int64 `json:"time,omitempty"` // RFC 3339

	// Files counts by their file format those that have one; nil where none has.
	Files map[string]int64 `json:"files,omitempty"`
}

// Count looks at a payload that is not empty, and reports whether it is a file.
func (f *Forms) Count(p []byte) (file bool) {
	switch c := p[0]; c {
	case 'h':
		if len(p) > 8 && (string(p[:7]) == "http://" || string(p[:8]) == "https://") {
			f.URL++
		}
	case '{', '[':
		if len(p) > 1 && p[len(p)-1] == c+2 {
			f.JSON++
		}
	default:
		switch n := len(p); {
		case n == 36 && isUUID(p):
			f.UUID++
		case n >= 20 && n <= 35 && isTime(p):
			f.Time++
		}
	}
	if format := FileFormat(p); format != "" {
		if f.Files == nil {
			f.Files = map[string]int64{}
		}
		f.Files[format]++
		return true
	}
	return false
}

func isUUID(p []byte) bool {
	if p[8] != '-' || p[13] != '-' || p[18] != '-' || p[23] != '-' {
		return false
	}
	digits := true
	for _, part := range [...][]byte{p[:8], p[9:13], p[14:18], p[19:23], p[24:36]} {
		for _, c := range part {
			digits = digits && isHex[c]
		}
	}
	return digits
}

// isHex is set for hexadecimal digits.
var isHex = func() (t [256]bool) {
	for _, c := range "0123456789abcdefABCDEF" {
		t[c] = true
	}
	return t
}()

// isTime looks at the form of 2006-01-02T15:04:05Z, with anything behind the seconds.
func isTime(p []byte) bool {
	const form = "0000-00-00T00:00:00"
	for i := range form {
		if digit := p[i] >= '0' && p[i] <= '9'; (form[i] == '0') != digit || !digit && p[i] != form[i] {
			return false
		}
	}
	return true
}

// Merge adds the counts of o.
func (f *Forms) Merge(o *Forms) {
	f.UUID += o.UUID
	f.URL += o.URL
	f.JSON += o.JSON
	f.Time += o.Time
	if len(o.Files) > 0 && f.Files == nil {
		f.Files = map[string]int64{}
	}
	for format, n := range o.Files {
		f.Files[format] += n
	}
}

// FileCount is how many payloads are of a format.
func (f *Forms) FileCount() (sum int64) {
	for _, n := range f.Files {
		sum += n
	}
	return sum
}

// Valid reports whether the counts can be those of n payloads.
func (f *Forms) Valid(n int64) bool {
	for format, count := range f.Files {
		if count < 1 || count > n || !slices.ContainsFunc(fileFormats[:], func(x fileFormat) bool { return x.name == format }) {
			return false
		}
	}
	for _, count := range [...]int64{f.UUID, f.URL, f.JSON, f.Time} {
		if count < 0 || count > n {
			return false
		}
	}
	return f.UUID+f.URL+f.JSON+f.Time <= n && f.FileCount() <= n
}

// Of names the form that all of n payloads have, or returns "".
func (f *Forms) Of(n int64) string {
	for _, form := range [...]struct {
		count int64
		name  string
	}{{f.UUID, "a UUID"}, {f.URL, "a URL"}, {f.JSON, "JSON by its ends"}, {f.Time, "a time as in RFC 3339"}} {
		if n > 0 && form.count == n {
			return form.name
		}
	}
	for format, count := range f.Files {
		if n > 0 && count == n {
			return format
		}
	}
	return ""
}
