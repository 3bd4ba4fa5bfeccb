package infer

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// messagesAtOnce is the number of inputs that a worker takes from the queue at a time.
const messagesAtOnce = 64

// MessageOptions configures GatherMessages. Root and Read are required.
type MessageOptions struct {
	// Root is the name of the message type of all inputs.
	Root string
	// Read returns the content of the input called name. It is called concurrently.
	Read func(name string) ([]byte, error)
	// OnProgress, if set, is called during the reading. Calls come from several goroutines, but not
	// concurrently.
	OnProgress func(Progress)
}

// An Input is the outcome of reading one input of GatherMessages. If no field is set, the input was added as a
// message, or was not read because the context ended.
type Input struct {
	// Err is the error of reading the input, or nil.
	Err error
	// Rejected is the reason why the input is not a serialized message.
	Rejected error
	// Evidence is set if the input is stored evidence instead of a message. It was not merged.
	Evidence *Evidence
}

// GatheredMessages is the result of GatherMessages.
type GatheredMessages struct {
	// Evidence summarizes all messages.
	Evidence *Evidence
	// Messages is the number of messages that were added.
	Messages int64
	// Inputs has the outcome for each input, in order.
	Inputs []Input
}

// GatherMessages collects evidence from inputs that have one serialized message each, several of them
// concurrently. names are passed to MessageOptions.Read. Inputs with stored evidence are only read; the caller
// has to merge them.
//
// Errors: the context's error, with the messages that were read before. Errors of a single input are in
// Inputs.
func GatherMessages(ctx context.Context, names []string, o MessageOptions) (*GatheredMessages, error) {
	all := &GatheredMessages{Evidence: NewEvidence(), Inputs: make([]Input, len(names))}
	progress := &progressMeter{report: o.OnProgress}

	//
	var next, added atomic.Int64
	parts := make([]*Evidence, min(runtime.GOMAXPROCS(0), 1+len(names)/messagesAtOnce))
	var wg sync.WaitGroup
	for w := range parts {
		parts[w] = NewEvidence()
		wg.Go(func() {
			// Workers claim batches of inputs, so that they rarely contend for the counter.
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
		all.Evidence.Absorb(part)
	}
	all.Messages = added.Load()
	return all, ctx.Err()
}

// addInput adds the message in the input called name to ev and returns its size in bytes. If ok is false, it
// was not added and the fields of in say why.
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
