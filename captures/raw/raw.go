// Package raw writes the frames of a capture into a folder, a file a frame:
//
//	0002-up-0000.bin    exchange 2, client to server, its first frame
//	0002-down-0013.bin
//	index.jsonl         a line a file, in the order in which the frames passed
//
// A file holds a frame's payload after decompression. A line of the index is
//
//	{"v":1,"file":"0002-up-0000.bin","exchange":2,"dir":"up","seq":0,"t_ms":0.4,"flags":0,"compressed":false,
//	 "encoding":"","end":false,"event":"","len":12,"data_len":12,"method":"POST","url":"…","protocol":"connect-stream",
//	 "service":"…","rpc":"…","codec":"proto","error":""}
//
// A file has a message of a WebSocket, and the line then "transport", "opcode" and
// "handshake" as well. A connection without HTTP has one file for each direction with all
// of its bytes, 0003-up.bin, whose line has "transport" and the "chunks" in which they came.
//
// Nothing is read in this format. Package formats alone calls this one.
package raw

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"unwire/captures"
	"unwire/captures/transfer"
	"unwire/decode"
)

// indexName is the file that lists the others.
const indexName = "index.jsonl"

// ErrNotEmpty is wrapped where there are files in the folder already.
var ErrNotEmpty = errors.New("is not empty")

// A line is a line of the index.
type line struct {
	V          int             `json:"v"`
	File       string          `json:"file"`
	Exchange   int64           `json:"exchange"`
	Dir        string          `json:"dir"`
	Seq        int             `json:"seq"`
	TMs        float64         `json:"t_ms"`
	Flags      int             `json:"flags"`
	Compressed bool            `json:"compressed"`
	Encoding   string          `json:"encoding"`
	End        bool            `json:"end"`
	Event      string          `json:"event"`
	Len        int             `json:"len"`
	DataLen    int             `json:"data_len"`
	Method     string          `json:"method"`
	URL        string          `json:"url"`
	Protocol   decode.Protocol `json:"protocol"`
	Service    string          `json:"service"`
	RPC        string          `json:"rpc"`
	Codec      string          `json:"codec"`
	Error      string          `json:"error"`

	// Transport is that of an exchange that is not HTTP. The messages of a WebSocket have
	// an opcode, and the handshake that opened it if that is known.
	Transport captures.Transport `json:"transport,omitempty"`
	Opcode    string             `json:"opcode,omitempty"`
	Handshake int64              `json:"handshake,omitempty"`

	// Chunks say when the bytes of a connection without HTTP passed: its file has all of
	// a direction.
	Chunks []chunk `json:"chunks,omitempty"`
}

// A chunk is a run of bytes that passed at once.
type chunk struct {
	TMs float64 `json:"t_ms"`
	Len int     `json:"len"`
}

// Written says what an export wrote.
type Written struct{ Exchanges, Frames int }

// Export writes the frames of a capture into a folder, which it makes, and
// which must be empty if it is there.
//
// Shape: names are made of numbers and directions alone. Limits: it holds one
// exchange's frames at a time; see decode.Options. Errors: ErrNotEmpty; of src
// and of the file system, what had been written by then stays.
func Export(ctx context.Context, dir string, src transfer.Source) (Written, error) {
	var done Written
	if err := createDir(dir); err != nil {
		return done, fmt.Errorf("raw: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, indexName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return done, fmt.Errorf("raw: %w", err)
	}
	index := bufio.NewWriter(f)
	err = done.writeAll(ctx, dir, index, src)
	if err := errors.Join(err, index.Flush(), f.Close()); err != nil {
		return done, fmt.Errorf("raw: after %d frames: %w", done.Frames, err)
	}
	return done, nil
}

// createDir makes the folder.
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

func (done *Written) writeAll(ctx context.Context, dir string, index *bufio.Writer, src transfer.Source) error {
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
		if rec.Transport != captures.HTTP && rec.Transport != captures.WebSocket {
			if err := done.writeConnection(ctx, dir, enc, src, rec); err != nil {
				return err
			}
			continue
		}
		ex, err := decode.Decode(ctx, src, rec.ID, decode.Options{NoTrees: true})
		if err != nil {
			return err
		}
		for i := range ex.Frames {
			l := lineOf(ex, &ex.Frames[i])
			if l.Transport = rec.Transport; rec.Transport == captures.WebSocket {
				l.Opcode, l.Handshake = decode.OpcodeName(ex.Frames[i].Opcode), relations.Handshake(rec.ID)
			}
			if err := writeFile(filepath.Join(dir, l.File), ex.Frames[i].Data); err != nil {
				return err
			}
			if err := enc.Encode(l); err != nil {
				return err
			}
			done.Frames++
		}
		done.Exchanges++
	}
	return nil
}

// writeConnection writes the bytes of a connection without HTTP, a file a direction.
func (done *Written) writeConnection(ctx context.Context, dir string, enc *json.Encoder, src transfer.Source, ex *captures.Exchange) (err error) {
	var files [2]*os.File
	var lines [2]line
	defer func() {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	for c, err := range src.Chunks(ctx, ex.ID, 0) {
		if err != nil {
			return err
		}
		l, ms := &lines[c.Dir], float64(c.T.Nanoseconds())/1e6
		if files[c.Dir] == nil {
			*l = line{
				V: 1, File: fmt.Sprintf("%04d-%s.bin", ex.ID, c.Dir), Exchange: ex.ID, Dir: c.Dir.String(), TMs: ms,
				URL: ex.URL, Protocol: decode.Protocol(ex.Transport), Transport: ex.Transport,
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
		l.Chunks = append(l.Chunks, chunk{ms, len(c.Data)})
	}
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

func lineOf(ex *decode.Exchange, f *decode.Frame) line {
	l := line{
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

func writeFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
