package event

import (
	"bytes"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/jsontree"
)

// leastJSON is the minimum share, in percent, of the messages in a reassembled stream that are JSON.
const leastJSON = 90

// Reassemble returns ex with the server's messages split again if they were cut anywhere: a service that forwards the
// bytes of another one in events of its own, as AWS does with its event "PayloadPart", sends server-sent events or
// lines of JSON in pieces. If there is no such stream, ex is returned.
func Reassemble(ex *decode.Exchange) *decode.Exchange {
	frames := ex.Frames
	count := make(map[string]int)
	name := ""
	for i := range frames {
		if f := &frames[i]; mayCarry(f) {
			if count[f.Event]++; count[f.Event] > count[name] {
				name = f.Event
			}
		}
	}
	var parts []int
	for i := range frames {
		if f := &frames[i]; mayCarry(f) && f.Event == name {
			parts = append(parts, i)
		}
	}
	if len(parts) == 0 {
		return ex
	}
	whole := split(frames, parts)
	if whole == nil {
		return ex
	}

	var out []decode.Frame
	for i := range frames {
		if len(parts) > 0 && parts[0] == i {
			out, parts = append(out, whole[i]...), parts[1:]
		} else {
			out = append(out, frames[i])
		}
	}
	again := *ex
	again.Frames = out
	return &again
}

// mayCarry reports whether f is an event of the server that may have bytes of another stream.
func mayCarry(f *decode.Frame) bool {
	return f.Dir == captures.Down && f.Event != "" && f.End == nil && f.Tree == nil
}

// split splits the joined data of the frames in list into messages. It returns them by the index of the frame in
// which each ends, or nil if the data is not a stream of messages that are JSON.
func split(frames []decode.Frame, list []int) map[int][]decode.Frame {
	cut := 0
	for _, i := range list {
		if _, err := jsontree.Parse(bytes.TrimSpace(frames[i].Data)); err != nil {
			cut++
		}
	}
	first := bytes.TrimSpace(frames[list[0]].Data)
	isEvents := bytes.HasPrefix(first, []byte("data:")) || bytes.HasPrefix(first, []byte("event:"))
	if 2*cut <= len(list) || !isEvents && !bytes.HasPrefix(first, []byte("{")) {
		return nil
	}
	d := envelope.NewDecoder(envelope.Options{Events: isEvents, Values: envelope.ValuesDeclared})
	out, all, parsed := make(map[int][]decode.Frame), 0, 0
	add := func(i int, messages []envelope.Frame) {
		for _, m := range messages {
			if _, err := jsontree.Parse(bytes.TrimSpace(m.Data)); err == nil || string(m.Data) == EndMark {
				parsed++
			}
			all++
			f := frames[i]
			f.Frame = m
			out[i] = append(out[i], f)
		}
	}
	for _, i := range list {
		messages, err := d.Feed(frames[i].Data)
		if err != nil {
			return nil
		}
		add(i, messages)
	}
	rest, _ := d.Close()
	add(list[len(list)-1], rest)
	if 100*parsed < leastJSON*all || all < 2 {
		return nil
	}
	return out
}
