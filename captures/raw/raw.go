// Package raw exports the frames of a capture as one file per frame, for use with other tools. Only package
// formats uses it; nothing reads this format.
//
//	0002-up-0000.bin    exchange 2, client to server, its first frame
//	0002-down-0013.bin
//	index.jsonl         one line per file, in the order in which the frames were recorded
//
// A file contains a frame's payload, decompressed. A line of the index is:
//
//	{"v":1,"file":"0002-up-0000.bin","exchange":2,"dir":"up","seq":0,"t_ms":0.4,"flags":0,"compressed":false,
//	 "encoding":"","end":false,"event":"","len":12,"data_len":12,"method":"POST","url":"…","protocol":"connect-stream",
//	 "service":"…","rpc":"…","codec":"proto","error":""}
//
// For a WebSocket, each file contains one message, and the line also has "transport", "opcode" and "handshake".
// For a connection without HTTP, each direction is one file (0003-up.bin); the line also has "transport" and
// "chunks", which lists the runs of bytes in order of arrival.
//
//	done, err := raw.Export(ctx, "frames", src, 10_000) // src is a transfer.Source, such as a *store.Store
package raw

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"unwire/captures"
	"unwire/captures/transfer"
	"unwire/decode"
)

// indexName is the name of the file that lists all other files of the export.
const indexName = "index.jsonl"

// ErrNotEmpty is wrapped by the error for a folder that contains files already.
var ErrNotEmpty = errors.New("is not empty")

// A TooManyError reports that a capture has more frames than an export may write as files.
type TooManyError struct {
	// Exchange is the number of the exchange whose frames exceed the limit.
	Exchange int64
	// Frames is the number of frames of that exchange, and Before the number of files of the exchanges before it.
	Frames, Before int
	// Most is the maximum number of files.
	Most int
}

// Error names the exchange and the numbers.
func (e *TooManyError) Error() string {
	before := ""
	if e.Before > 0 {
		before = fmt.Sprintf(", and the exchanges before it have %d", e.Before)
	}
	return fmt.Sprintf("exchange %d has %d frames%s; the format raw writes one file per frame, and the maximum number of files is %d", e.Exchange, e.Frames, before, e.Most)
}

// An indexLine describes one exported file as a line of JSON in the index. Times are in milliseconds since the
// exchange began.
type indexLine struct {
	// V is the version of the format of the index, always 1.
	V int `json:"v"`
	// File is the name of the exported file in the folder.
	File string `json:"file"`
	// Exchange is the number of the exchange in the capture, from 1.
	Exchange int64 `json:"exchange"`
	// Dir is the direction of the bytes in the file: "up" from client to server, or "down".
	Dir string `json:"dir"`
	// Seq is the number of the frame in its direction, from 0.
	Seq int `json:"seq"`
	// TMs is the time of the frame, in milliseconds since the exchange began.
	TMs float64 `json:"t_ms"`
	// Flags is the flags byte of the frame's envelope, as in gRPC and Connect; 0 if there is no envelope.
	Flags int `json:"flags"`
	// Compressed means that the payload was compressed on the wire; the file is decompressed.
	Compressed bool `json:"compressed"`
	// Encoding is the name of the compression of the frame, such as "gzip"; "" if there is none.
	Encoding string `json:"encoding"`
	// End is set for the frame that ends the call: end-of-stream message, trailers or error.
	End bool `json:"end"`
	// Event is the event name, if the frame is a server-sent event; "" otherwise.
	Event string `json:"event"`
	// Len is the length of the payload as sent, in bytes.
	Len int `json:"len"`
	// DataLen is the length of the decompressed payload, and thus of the file, in bytes.
	DataLen int `json:"data_len"`
	// Method is the HTTP method; "" if the connection does not carry HTTP.
	Method string `json:"method"`
	// URL is the absolute URL of the exchange.
	URL string `json:"url"`
	// Protocol is the detected RPC protocol or streaming format, such as "connect-stream"; the transport for
	// a connection without HTTP.
	Protocol decode.Protocol `json:"protocol"`
	// Service is the full name of the RPC service; "" if the exchange is not a call.
	Service string `json:"service"`
	// RPC is the name of the called method, without the service; "" if the exchange is not a call.
	RPC string `json:"rpc"`
	// Codec is the encoding of the messages, such as "proto" or "json"; "" if unknown.
	Codec string `json:"codec"`
	// Error describes why the frame could not be decoded; "" if it was.
	Error string `json:"error"`

	// Transport is the protocol whose payload is recorded, such as a WebSocket; "" for HTTP.
	Transport captures.Transport `json:"transport,omitempty"`
	// Opcode is the type of a WebSocket message; "" for other frames.
	Opcode string `json:"opcode,omitempty"`
	// Handshake is the number of the exchange that opened the WebSocket; 0 if unknown or not a WebSocket.
	Handshake int64 `json:"handshake,omitempty"`

	// Chunks lists, for a connection without HTTP, the sizes and times of the chunks that make up the file.
	Chunks []indexChunk `json:"chunks,omitempty"`

	// Rewritten is set if rules changed the exchange before it was forwarded. It says whether the file contains
	// the received or the forwarded bytes.
	Rewritten *captures.Rewritten `json:"rewritten,omitempty"`
}

// An indexChunk describes bytes of a connection that arrived together.
type indexChunk struct {
	// TMs is the time at which the bytes arrived, in milliseconds since the exchange began.
	TMs float64 `json:"t_ms"`
	// Len is the number of bytes that arrived.
	Len int `json:"len"`
}

// A Result contains the counts of an export to files.
type Result struct {
	// Exchanges is the number of exchanges that were written.
	Exchanges int
	// Frames is the number of files that were written, one for each frame, or for each direction of a
	// connection without HTTP.
	Frames int
}

// Export writes the frames of a capture into dir, which it creates; an existing folder must be empty.
//
// Shape: file names contain only numbers and directions, nothing from the traffic. Limits: most files, besides the
// index; the frames of one exchange at a time are in memory; see decode.Options. Errors: ErrNotEmpty, a *TooManyError,
// and those of src and of the file system. Files written before an error stay.
func Export(ctx context.Context, dir string, src transfer.Source, most int) (Result, error) {
	var done Result
	if err := createDir(dir); err != nil {
		return done, fmt.Errorf("raw: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, indexName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return done, fmt.Errorf("raw: %w", err)
	}
	index := bufio.NewWriter(f)
	err = done.writeAll(ctx, dir, index, src, most)
	if err := errors.Join(err, index.Flush(), f.Close()); err != nil {
		return done, fmt.Errorf("raw: the export failed after %d frames: %w", done.Frames, err)
	}
	return done, nil
}

// createDir creates the output folder. An existing folder must be empty.
func createDir(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s %w", dir, ErrNotEmpty)
	}
	return nil
}

// writeAll writes the frames of all exchanges to files in dir, adds their lines to index, and counts them in
// done. It fails before an exchange with which there would be more than most files.
func (done *Result) writeAll(ctx context.Context, dir string, index *bufio.Writer, src transfer.Source, most int) error {
	enc := json.NewEncoder(index)
	enc.SetEscapeHTML(false)
	relations, err := transfer.LoadRelations(ctx, src)
	if err != nil {
		return err
	}
	for rec, err := range src.Exchanges(ctx) {
		if err != nil {
			return err
		}

		// Connections without HTTP have no frames: their bytes are written as they arrived.
		if rec.Transport != captures.HTTP && rec.Transport != captures.WebSocket {
			if err := done.writeConnection(ctx, dir, enc, src, rec); err != nil {
				return err
			}
			continue
		}

		// One frame more than there may be files is enough to know that there are too many, and only then all are
		// counted. Trees and choices are not needed, since only the bytes of frames are written.
		o := decode.Options{NoTrees: true, NoChoices: true}
		left := min(most-done.Frames, math.MaxInt-1)
		o.MaxFrames = left + 1
		ex, err := decode.DecodeRecord(ctx, src, rec, o)
		if err != nil {
			return err
		}
		if len(ex.Frames) > left {
			return done.tooMany(ctx, src, rec.ID, most)
		}
		if err := done.writeFrames(ctx, dir, enc, src, ex, relations.Handshake(rec.ID)); err != nil {
			return err
		}
	}
	return nil
}

// tooMany returns a *TooManyError for the exchange with number id, of which it counts the frames.
func (done *Result) tooMany(ctx context.Context, src transfer.Source, id int64, most int) error {
	frames := 0
	if _, err := decode.EachFrame(ctx, src, id, decode.Options{NoTrees: true}, func(*decode.Exchange, *decode.Frame) error {
		frames++
		return nil
	}); err != nil {
		return err
	}
	return &TooManyError{Exchange: id, Frames: frames, Before: done.Frames, Most: most}
}

// writeFrames writes the frames of an HTTP exchange or a WebSocket to files in dir, and adds their lines to the
// index. handshake is the number of the exchange that opened the WebSocket.
func (done *Result) writeFrames(ctx context.Context, dir string, enc *json.Encoder, src transfer.Source, ex *decode.Exchange, handshake int64) error {
	rewritten, err := src.Rewritten(ctx, ex.ID)
	if err != nil {
		return err
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		l := newIndexLine(ex, f)
		l.Rewritten = rewritten
		if l.Transport = ex.Transport; ex.Transport == captures.WebSocket {
			l.Opcode, l.Handshake = decode.OpcodeName(f.Opcode), handshake
		}
		if err := createFile(filepath.Join(dir, l.File), f.Data); err != nil {
			return err
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
		done.Frames++
	}
	done.Exchanges++
	return nil
}

// writeConnection writes the bytes of a connection without HTTP to one file for each direction, and adds their
// lines to the index.
func (done *Result) writeConnection(ctx context.Context, dir string, enc *json.Encoder, src transfer.Source, ex *captures.Exchange) (err error) {
	var files [2]*os.File
	var lines [2]indexLine
	defer func() {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	}()

	rewritten, err := src.Rewritten(ctx, ex.ID)
	if err != nil {
		return err
	}

	// Open a file at the first chunk of its direction, so that silent directions have none.
	for c, err := range src.Chunks(ctx, ex.ID, 0) {
		if err != nil {
			return err
		}
		l, ms := &lines[c.Dir], float64(c.T.Nanoseconds())/1e6
		if files[c.Dir] == nil {
			*l = indexLine{
				V: 1, File: fmt.Sprintf("%04d-%s.bin", ex.ID, c.Dir), Exchange: ex.ID, Dir: c.Dir.String(), TMs: ms,
				URL: ex.URL, Protocol: decode.Protocol(ex.Transport), Transport: ex.Transport,
				Rewritten: rewritten,
			}
			files[c.Dir], err = os.OpenFile(filepath.Join(dir, l.File), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
		}
		if _, err := files[c.Dir].Write(c.Data); err != nil {
			return err
		}
		l.Len, l.DataLen = l.Len+len(c.Data), l.DataLen+len(c.Data)
		l.Chunks = append(l.Chunks, indexChunk{ms, len(c.Data)})
	}

	// A line lists all chunks of its file, so lines are written last.
	for i, f := range files {
		if f == nil {
			continue
		}
		if err := enc.Encode(lines[i]); err != nil {
			return err
		}
		done.Frames++
	}
	done.Exchanges++
	return nil
}

// newIndexLine returns the line of the index for a frame, without the file's name.
func newIndexLine(ex *decode.Exchange, f *decode.Frame) indexLine {
	l := indexLine{
		V: 1, File: fmt.Sprintf("%04d-%s-%04d.bin", ex.ID, f.Dir, f.Seq), Exchange: ex.ID, Dir: f.Dir.String(), Seq: f.Seq,
		TMs: float64(f.T.Nanoseconds()) / 1e6, Flags: int(f.Flags), Compressed: f.Compressed(), Encoding: f.Encoding, End: f.End != nil,
		Event: f.Event, Len: len(f.Raw), DataLen: len(f.Data),
		Method: ex.Method, URL: ex.URL, Protocol: ex.Protocol, Service: ex.Service, RPC: ex.RPC, Codec: ex.Codec,
	}
	if f.Err != nil {
		l.Error = f.Err.Error()
	}
	return l
}

// createFile writes a new file that only its owner can read.
func createFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
