package infer

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// messagesAtOnce is how many inputs one worker takes at a time.
const messagesAtOnce = 64

// MessageOptions are options of GatherMessages.
type MessageOptions struct {
	// Root is the name of the messages' type.
	Root string
	// Read returns the content of the input of a name. It is called from several
	// goroutines at once.
	Read func(name string) ([]byte, error)
	// OnProgress, if set, is called while inputs are read. Calls come from several
	// goroutines, and do not overlap.
	OnProgress func(Progress)
}

// An Input is what became of one input of GatherMessages. Without a field set it is
// a message, or was not read, as the context had ended.
type Input struct {
	// Err is why the input could not be read.
	Err error
	// Rejected is why the input is not a serialized message.
	Rejected error
	// Evidence is the evidence that the input holds instead of a message.
	Evidence *Evidence
}

// GatheredMessages is what GatherMessages made of its inputs.
type GatheredMessages struct {
	// Evidence is of all messages.
	Evidence *Evidence
	// Messages is how many there were.
	Messages int64
	// Inputs has an element for each input, in their order.
	Inputs []Input
}

// GatherMessages makes evidence of inputs that hold one serialized message of a type
// each, many at the same time. An input that holds evidence is read as such, and
// left for the caller to merge.
//
// Errors: ctx's own, with what was read until then. What is wrong with an input is
// in Inputs.
func GatherMessages(ctx context.Context, names []string, o MessageOptions) (*GatheredMessages, error) {
	all := &GatheredMessages{Evidence: NewEvidence(), Inputs: make([]Input, len(names))}
	progress := &progressMeter{report: o.OnProgress}
	var next, added atomic.Int64
	parts := make([]*Evidence, min(runtime.GOMAXPROCS(0), 1+len(names)/messagesAtOnce))
	var wg sync.WaitGroup
	for w := range parts {
		parts[w] = NewEvidence()
		wg.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(messagesAtOnce)) - messagesAtOnce
				if from >= len(names) {
					return
				}
				for i := from; i < min(from+messagesAtOnce, len(names)) && ctx.Err() == nil; i++ {
					size, ok := addInput(parts[w], names[i], o, &all.Inputs[i])
					if ok {
						added.Add(1)
						progress.advance(1, size)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, part := range parts {
		all.Evidence.Merge(part)
	}
	all.Messages = added.Load()
	return all, ctx.Err()
}

// addInput enters the message that an input holds, of size bytes, or sets in's fields.
func addInput(ev *Evidence, name string, o MessageOptions, in *Input) (size int64, ok bool) {
	data, err := o.Read(name)
	if err != nil {
		in.Err = err
		return 0, false
	}
	if in.Evidence, in.Err = parseEvidence(name, data); in.Err != nil || in.Evidence != nil {
		return 0, false
	}
	if in.Rejected = ev.Add(o.Root, data); in.Rejected != nil {
		return 0, false
	}
	ev.sources.Add(fileHash(name, data))
	return int64(len(data)), true
}
