package eval

// A style is one kind of traffic: what its schemas and values are like. Values
// are drawn by role: every field has one, drawn once.
type style struct {
	name     string
	held     bool // for validation: nothing was tuned on it
	schemas  int
	types    map[fieldType]int
	repeated int // of 100 fields
	maps     int
	optional int
	oneof    int // of 100 messages
	known    int // of 100 message fields
	messages [2]int
	fields   [2]int
	jump     int // how far apart field numbers are, at most
	strings  []string
	bytes    []string
	ints     []string
	reals    []string
	langs    []string
	many     []int // lengths of lists
	sorted   bool  // maps are written by key
}

var styles = []style{
	{
		name: "chat", schemas: 24,
		types:    map[fieldType]int{typeString: 40, typeMessage: 24, typeInt32: 8, typeInt64: 6, typeBool: 8, typeEnum: 7, typeBytes: 4, typeUint32: 2, typeUint64: 2, typeDouble: 2, typeFloat: 1, typeSint32: 1, typeFixed64: 1},
		repeated: 18, maps: 3, optional: 12, known: 12, oneof: 35, messages: [2]int{4, 9}, fields: [2]int{1, 9}, jump: 3,
		strings: []string{"sentence", "sentence", "paragraph", "uuid", "toolid", "path", "model", "code", "json", "word", "delta", "delta", "empty", "url"},
		bytes:   []string{"sha256", "image", "nested", "text", "random", "gzip"},
		ints:    []string{"enum", "count", "size", "ms", "s", "seq", "one", "id64", "negative"},
		reals:   []string{"unit", "decimal", "whole"},
		langs:   []string{"en", "en", "de", "zh", "ru", "emoji", "ja"},
		many:    []int{1, 2, 4}, sorted: false,
	},
	{
		name: "telemetry", schemas: 20,
		types:    map[fieldType]int{typeString: 18, typeMessage: 16, typeInt32: 12, typeInt64: 12, typeBool: 4, typeEnum: 6, typeBytes: 5, typeUint32: 8, typeUint64: 8, typeDouble: 10, typeFloat: 10, typeSint32: 5, typeSint64: 4, typeFixed32: 4, typeFixed64: 6, typeSfixed32: 2, typeSfixed64: 2},
		repeated: 45, maps: 4, optional: 8, known: 15, oneof: 15, messages: [2]int{3, 7}, fields: [2]int{2, 10}, jump: 4,
		strings: []string{"word", "ident", "path", "version", "hex", "number", "host"},
		bytes:   []string{"trace", "span", "random", "short", "sha256"},
		ints:    []string{"enum", "count", "count", "size", "ms", "ns", "us", "seq", "wide", "negative", "id64", "ascending"},
		reals:   []string{"unit", "decimal", "gauss", "whole", "big"},
		langs:   []string{"en"},
		many:    []int{1, 3, 8, 30}, sorted: false,
	},
	{
		name: "records", schemas: 20,
		types:    map[fieldType]int{typeString: 34, typeMessage: 20, typeInt32: 9, typeInt64: 9, typeBool: 9, typeEnum: 7, typeBytes: 7, typeUint32: 3, typeUint64: 2, typeDouble: 4, typeFloat: 3, typeFixed64: 2, typeFixed32: 1, typeSint64: 1},
		repeated: 22, maps: 8, optional: 20, known: 25, oneof: 20, messages: [2]int{3, 8}, fields: [2]int{2, 12}, jump: 8,
		strings: []string{"name", "word", "email", "date", "phone", "uuid", "base64", "sentence", "number", "letter", "csv", "constant"},
		bytes:   []string{"md5", "sha256", "image", "utf16", "zeros", "nested", "short"},
		ints:    []string{"enum", "count", "id64", "s", "ms", "one", "negative", "money", "wide"},
		reals:   []string{"decimal", "geo", "unit", "whole"},
		langs:   []string{"en", "de", "ru", "ar", "zh"},
		many:    []int{1, 2, 5}, sorted: true,
	},
	// What follows was held back.
	{
		name: "short words", held: true, schemas: 16,
		types:    map[fieldType]int{typeString: 50, typeMessage: 26, typeInt32: 6, typeBool: 6, typeEnum: 6, typeBytes: 3, typeUint32: 2, typeInt64: 1},
		repeated: 15, maps: 4, optional: 10, oneof: 25, messages: [2]int{4, 8}, fields: [2]int{1, 6}, jump: 2,
		strings: []string{"word", "word", "letter", "letters", "delta", "ident", "two", "upper", "number"},
		bytes:   []string{"short", "md5", "random"},
		ints:    []string{"enum", "one", "count", "bit"},
		reals:   []string{"unit"},
		langs:   []string{"en", "de"},
		many:    []int{1, 3}, sorted: false,
	},
	{
		name: "cjk", held: true, schemas: 16,
		types:    map[fieldType]int{typeString: 45, typeMessage: 20, typeInt32: 8, typeInt64: 8, typeBool: 8, typeEnum: 6, typeBytes: 4, typeDouble: 3, typeFloat: 2},
		repeated: 20, maps: 5, optional: 15, known: 15, oneof: 25, messages: [2]int{3, 8}, fields: [2]int{2, 8}, jump: 3,
		strings: []string{"sentence", "sentence", "rune", "runes", "paragraph", "name", "delta", "path", "bom"},
		bytes:   []string{"sha256", "utf16", "image", "gbk", "random"},
		ints:    []string{"enum", "count", "ms", "id64", "one", "size"},
		reals:   []string{"decimal", "geo"},
		langs:   []string{"zh", "ja", "zh", "ko", "emoji", "th", "hi", "el"},
		many:    []int{1, 2, 4}, sorted: false,
	},
	{
		name: "binary", held: true, schemas: 16,
		types:    map[fieldType]int{typeString: 14, typeMessage: 20, typeInt32: 8, typeInt64: 5, typeBool: 4, typeEnum: 4, typeBytes: 32, typeUint32: 5, typeUint64: 6, typeFixed32: 4, typeFixed64: 6, typeFloat: 4, typeSfixed64: 1},
		repeated: 22, maps: 4, optional: 10, known: 8, oneof: 20, messages: [2]int{3, 8}, fields: [2]int{2, 9}, jump: 5,
		strings: []string{"hex", "base64", "ident", "url", "word"},
		bytes:   []string{"sha256", "md5", "random", "short", "image", "gzip", "der", "zeros", "utf16", "ulid", "floats", "uint16s", "nested", "block"},
		ints:    []string{"wide", "id64", "count", "enum", "size", "bit"},
		reals:   []string{"gauss", "unit"},
		langs:   []string{"en"},
		many:    []int{1, 2, 6}, sorted: false,
	},
	{
		name: "sensors", held: true, schemas: 16,
		types:    map[fieldType]int{typeString: 12, typeMessage: 14, typeInt32: 14, typeInt64: 10, typeBool: 5, typeEnum: 8, typeBytes: 3, typeUint32: 10, typeUint64: 6, typeDouble: 12, typeFloat: 14, typeSint32: 8, typeSint64: 6, typeFixed32: 3, typeFixed64: 3, typeSfixed32: 2},
		repeated: 60, maps: 2, optional: 6, known: 15, oneof: 10, messages: [2]int{2, 6}, fields: [2]int{2, 9}, jump: 2,
		strings: []string{"ident", "host", "uuid", "letters"},
		bytes:   []string{"random", "floats", "span"},
		ints:    []string{"ascending", "count", "wide", "negative", "bit", "ms", "small", "adc"},
		reals:   []string{"gauss", "geo", "unit", "decimal", "small"},
		langs:   []string{"en"},
		many:    []int{1, 2, 5, 16, 60}, sorted: false,
	},
	{
		name: "config", held: true, schemas: 16,
		types:    map[fieldType]int{typeString: 38, typeMessage: 26, typeInt32: 9, typeInt64: 4, typeBool: 14, typeEnum: 5, typeBytes: 2, typeDouble: 3, typeUint32: 3},
		repeated: 24, maps: 18, optional: 25, known: 20, oneof: 30, messages: [2]int{4, 10}, fields: [2]int{1, 10}, jump: 6,
		strings: []string{"ident", "path", "url", "host", "version", "word", "duration", "template", "constant", "empty", "yaml"},
		bytes:   []string{"text", "sha256", "der", "nested"},
		ints:    []string{"port", "count", "small", "ms", "bit", "one", "size"},
		reals:   []string{"unit", "decimal", "whole"},
		langs:   []string{"en"},
		many:    []int{1, 2, 4}, sorted: true,
	},
}
