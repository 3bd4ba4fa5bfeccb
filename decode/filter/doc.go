// Package filter implements the language in which users select exchanges and frames. Text goes in, and a condition
// comes out. The list of exchanges, the search, the rules of the proxy and the query interfaces use it:
//
//	f, err := filter.Parse("host:api.* code:!ok", time.Now())
//	if f.Exchange(&filter.Exchange{Exchange: record, Call: call, Code: code}) == filter.Yes {
//		fmt.Println(record.URL)
//	}
//
// Parse returns a Filter. Filter.Frame evaluates it for a frame, Filter.Exchange for an exchange whose frames are
// not read, and a Scan for an exchange while its frames are read. Filter.Needs returns which facts it depends on.
// Complete returns what may be written at a position. The rest of this comment specifies the language.
//
//	host:api.* method:Run            both terms must match
//	dir:down text:"rate limit"       a frame from the server with this text
//	code:!ok size>1KB                failed calls with more than 1,000 bytes of bodies
//	duration>2s or is:failed         slow or failed
//	path:1.7="x*" not path:1.9       a field, by its path and value
//	status>=400 (host:a.* or host:b.*)
//
// # Grammar
//
// In the notation of Go's specification. Operands are separated by white
// space; within a term there is none, except in quotes.
//
//	Filter      = [ Or ] .
//	Or          = And { "or" And } .
//	And         = Not { [ "and" ] Not } .
//	Not         = [ "not" ] Operand .
//	Operand     = "(" Or ")" | Term | Text .
//
//	Term        = WordTerm | NumberTerm | PathTerm | HeaderTerm .
//	WordTerm    = WordKey ":" Alternatives .
//	NumberTerm  = NumberKey ( ":" Numbers | Comparison Number ) .
//	PathTerm    = "path" ":" Path [ ":" Alternatives | Equality Pattern | Comparison Number ] .
//	HeaderTerm  = "header" ":" Pattern [ Equality Pattern ] .
//	Text        = Pattern .
//
//	Alternatives = [ "!" ] Pattern { "," Pattern } .
//	Numbers     = [ "!" ] Number { "," Number } .
//	Equality    = "=" | "!=" .
//	Comparison  = "=" | "!=" | "<" | "<=" | ">" | ">=" .
//
//	Pattern     = bare | quoted .
//	Number      = [ "-" ] digit { digit } [ "." digit { digit } ] [ Unit ] | time .
//	Unit        = letter { letter } .
//
// A bare pattern has none of white space ( ) " , : = ! < >, except that it may have
// a colon and digits at its end after a host name (localhost:8080). A quoted pattern
// is in double quotes. In it, \" \\ \n \r \t \xNN and \uNNNN have the meaning
// that they have in Go.
//
// In both, * matches any text, including none, and ? matches any one character. \* and \? match
// the characters themselves.
//
// Path is a pattern of package fieldpath, in which * is any one step and ** any
// number of steps. It ends before the first : = != < > parenthesis or white space outside
// quotes. It has no layers: what a field holds in another form, such as gzip, is looked
// into anyway. Its steps may be names of fields where there are definitions.
//
// The words and, or and not are operators where an operand could begin or end. To
// search for them as text, quote them.
//
// # Precedence
//
// not binds most tightly, then adjacency and and, which mean the same, then or.
// So "a b or not c d" is "(a and b) or ((not c) and d)".
//
// # Terms of exchanges
//
//	id        number    the number of the exchange
//	host      words     the host of the URL; with a port if the pattern has one
//	url       words     the whole URL
//	verb      words     the method of HTTP: GET, POST
//	method    words     the remote procedure: Run, Service/Run or package.Service/Run
//	protocol  words     connect, grpc, grpc-web, sse, http, websocket, tcp, tls, …;
//	                    connect is each of connect-unary, connect-get, connect-stream
//	codec     words     proto, json, …
//	http      words     the version of HTTP: 1.1, 2
//	status    number    the HTTP status
//	code      words     the status of the call: ok, unavailable, …
//	outcome   words     complete, reset, canceled, incomplete, failed
//	source    words     what recorded the exchange: proxy, reverse, import har, …
//	client    words     the client's address, process name or product
//	size      size      the body bytes of both directions together
//	up, down  size      the body bytes of one direction
//	frames    number    the frames of both directions together
//	duration  duration  from the start to the end, or to now
//	started   time      when the exchange began
//	header    name      a header or trailer field, of either direction, and its value
//	note      words     the text of a note on the exchange or anything in it
//	mark      words     a mark on the exchange or anything in it
//	is        word      edited: a rule changed what was forwarded
//	                    failed: the code is not ok, the status is 400 or more, or the
//	                    exchange did not complete
//	                    open: in flight
//	                    shortened: a part of a body was not stored
//	                    replay: sent by a replay
//
// # Terms of frames
//
//	dir       word      up, down
//	frame     number    the number of the frame in its direction, from 0
//	type      words     the full name of the message's type
//	len       size      the length of the payload after decompression
//	path      path      a field of the message, and its value
//	text      words     a text in the message, in its JSON, or in what these contain
//	is        word      compressed, end (of the stream), malformed
//
// # Values
//
// words compare a text with a pattern. Upper and lower case are the same, except for
// text, path and the values of header. The pattern must match the whole text; that of
// text, note and of a bare Text needs to match a part only.
//
// The value of a field at a path is compared as text: a number in decimal, a bool as
// true or false, an enum by name or number, bytes in lower-case hex. Without a definition,
// it matches if one of the types that its bytes allow does: a varint of 1 is 1 and true,
// bytes that are UTF-8 are a text, too. The operators < <= > >= compare it as a number,
// and do not match what is none. A path without a value matches if the field is there.
//
// number is an integer or a decimal fraction without a unit, size one with the unit
// B (the default), K, KB, M, MB, G, GB, T, TB (powers of 1,000), KiB, MiB, GiB, TiB
// (powers of 1,024). duration has one of the units ns, us, ms, s, m, h; there is no
// default. Units are spelt as here.
//
// time is 2026-11-22, 2026-11-22T10:00 or 2026-11-22T10:00:05, in local time, with Z
// or an offset (+01:00) in that zone; or a duration with a minus sign, which counts
// back from now: started>-10m. A date stands for its first moment.
//
// Several patterns or numbers, separated by commas, match if one of them does; with
// an exclamation mark before the first, if none of them does: code:!ok,canceled.
// "key:!v" is short for "not key:v".
//
// A Text is short for text: the filter limit is text:limit.
//
// # Meaning
//
// Where frames are selected, a filter is evaluated for each frame; the terms of
// exchanges have the same value for all frames of an exchange.
//
// Where exchanges are selected, the terms of frames that stand next to each other in
// one And match if one frame of the exchange matches all of them: dir:down text:x is a
// frame from the server that contains x. Anything in parentheses, and what follows a
// not, is evaluated on its own: "dir:down not text:x" selects exchanges with a frame
// from the server of which no frame contains x, and "not (dir:down text:x)" those
// of which no frame from the server contains x.
//
// A term can be unknown: a rule sees a frame before the code and the size of its
// exchange are known. "not" of unknown is unknown, "and" is false if one side is false,
// "or" is true if one side is true; otherwise they are unknown. A filter selects what
// it is true for. The empty filter is true.
//
// A value that does not exist matches no pattern. Since code:!ok is short for "not
// code:ok", it also selects exchanges that have no code; "code:* code:!ok" does not.
//
// # Errors
//
// An error names the column, counted in characters from 1, and what is expected there:
//
//	column 1: no term is called "hots"; did you mean "host"?
//	column 6: code is one of ok, canceled, …, not "bad"
//	column 6: size wants a number of bytes, such as 4096, 64KB or 64KiB, not "big"
//	column 10: duration wants a unit: 2s, 150ms
//	column 14: the quote is not closed
//	column 5: ")" without "("
//
// A filter with an error selects nothing: no part of it is used.
//
// Limits: 4 KiB of text, 100 terms, 20 nested parentheses. Matching takes time linear
// in what is searched: patterns are no regular expressions.
//
// # Completion
//
// For a text and a position in it, completion returns the range that a candidate
// replaces, and candidates with a short description, best first:
//
//   - where a term can begin: the keys, with their operator, then and, or, not and (
//   - behind a key of words: its fixed words, or for an open set the values that the
//     capture at hand has (hosts, methods, types, marks), most frequent first, quoted
//     where needed
//   - behind a key with a number: the operators; behind these, the units
//   - behind path: the paths that the capture at hand has, or the names of fields where
//     there are definitions
//
// Candidates begin with what stands before the position, without regard to case. The
// text before the term that is completed has to be valid; the text behind it does not
// matter.
package filter
