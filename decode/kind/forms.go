package kind

// Forms counts the payloads that have a form which tells what they are for.
type Forms struct {
	UUID int64 `json:"uuid,omitempty"`
	URL  int64 `json:"url,omitempty"`
	JSON int64 `json:"json,omitempty"`
	Time int64 `json:"time,omitempty"` // RFC 3339
	Gzip int64 `json:"gzip,omitempty"`
	Zstd int64 `json:"zstd,omitempty"`
}

// zstdMagic starts a frame of zstd. It is also a field 5 and the start of a tag, and
// where the frame's content is not compressed, the whole of it may be a message's.
const zstdMagic = "\x28\xb5\x2f\xfd"

// add looks at a payload that is not empty.
func (f *Forms) add(p []byte) {
	switch c := p[0]; c {
	case 'h':
		if len(p) > 8 && (string(p[:7]) == "http://" || string(p[:8]) == "https://") {
			f.URL++
		}
	case '{', '[':
		if len(p) > 1 && p[len(p)-1] == c+2 {
			f.JSON++
		}
	case 0x1f:
		if len(p) > 10 && p[1] == 0x8b && p[2] == 8 {
			f.Gzip++
		}
	case 0x28:
		if len(p) > 8 && string(p[:4]) == zstdMagic {
			f.Zstd++
		}
	default:
		switch n := len(p); {
		case n == 36 && isUUID(p):
			f.UUID++
		case n >= 20 && n <= 35 && isTime(p):
			f.Time++
		}
	}
}

func isUUID(p []byte) bool {
	for i, c := range p {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

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

func (f *Forms) merge(o *Forms) {
	f.UUID += o.UUID
	f.URL += o.URL
	f.JSON += o.JSON
	f.Time += o.Time
	f.Gzip += o.Gzip
	f.Zstd += o.Zstd
}

func (f *Forms) valid(n int64) bool {
	return countsValid(f.UUID, f.URL, f.JSON, f.Time, f.Gzip, f.Zstd) && f.UUID+f.URL+f.JSON+f.Time+f.Gzip+f.Zstd <= n
}

// Of names the form that all of n payloads have, or returns "".
func (f *Forms) Of(n int64) string {
	for _, form := range [...]struct {
		count int64
		name  string
	}{{f.UUID, "a UUID"}, {f.URL, "a URL"}, {f.JSON, "JSON by its ends"}, {f.Time, "a time as in RFC 3339"}, {f.Gzip, "gzip"}, {f.Zstd, "zstd"}} {
		if n > 0 && form.count == n {
			return form.name
		}
	}
	return ""
}
