// Package hook asks a program of the user about frames that are on their way. The program runs for as long as the
// recording. It reads one JSON object for each frame from its standard input, a line each, and answers each with a
// line on its standard output:
//
//	{"v":1,"id":1,"exchange":7,"method":"/pkg.Service/Method","url":"…","dir":"down","frame":2,"json":false,"data":"CgVoZWxsbw=="}
//	{"id":1,"action":"replace","messages":["CgVoZWxsbw=="]}
//
// The actions are pass, drop, replace (with messages, in base64) and reset. Answers may come in any order.
//
//	h, err := hook.Start([]string{"./hook.py"}, os.Stderr)
//	verdict, err := h.Decide(ctx, held)
//
// Limits: a frame waits at most 5 s for its answer; an answer has at most 64 MiB. If the program ends or answers
// nonsense, frames pass unchanged, and Decide returns the error.
//
// Source: mitm/README.md#hooks
package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"unwire/mitm/rewrite"
	"unwire/mitm/rules"
)

const (
	// answerTimeout is how long a frame waits for the hook program's decision.
	answerTimeout = 5 * time.Second

	// maxAnswer is the largest size of one response from the program, in bytes: 64 MiB.
	maxAnswer = 64 << 20

	// statusGrace is how long the hook program may take to exit after it has closed its output. Frames wait meanwhile.
	statusGrace = 2 * time.Second

	// endGrace is how long the hook program may take to end after its input was closed.
	endGrace = time.Second
)

// A request is the JSON object that the hook program reads from standard input for each frame.
type request struct {
	// V is the version of the format, always 1.
	V int `json:"v"`
	// ID is the number of the request, which the answer repeats.
	ID int64 `json:"id"`
	// Exchange is the number of the frame's exchange in the capture; 0 if it is not recorded.
	Exchange int64 `json:"exchange"`
	// Method is the RPC method, "/package.Service/Method"; "" if the exchange is not a call.
	Method string `json:"method"`
	// URL is the URL of the HTTP request.
	URL string `json:"url"`
	// Dir is the direction of the frame, "up" (from the client) or "down".
	Dir string `json:"dir"`
	// Frame is the number of the frame in its direction, from 0.
	Frame int `json:"frame"`
	// Flags are the flags of the frame's envelope; 0 without one.
	Flags int `json:"flags"`
	// JSON means that the message is JSON text, not protobuf.
	JSON bool `json:"json"`
	// Data is the message, decompressed; base64 in the JSON.
	Data []byte `json:"data"`
}

// An answer is the JSON object that the hook program writes to standard output for each frame: what to do with
// it.
type answer struct {
	// ID is the number of the request to which this is the answer.
	ID int64 `json:"id"`
	// Action is what happens to the frame: "pass", "drop", "replace" or "reset"; "" means pass.
	Action string `json:"action"`
	// Messages are the messages to forward in place of the frame, if it is replaced; base64 in the JSON.
	Messages [][]byte `json:"messages"`
	// Rule is added to the name "hook" under which the change is recorded; "" adds nothing.
	Rule string `json:"rule"`
}

// A Hook is a running program of the user that decides what happens to each frame before it is forwarded.
type Hook struct {
	// cmd is the running program.
	cmd *exec.Cmd
	// stdin is the program's standard input, to which requests are written.
	stdin io.WriteCloser
	// requests are written to the program by one goroutine, so that a program that does not read blocks no
	// frame for longer than answerTimeout.
	requests chan []byte

	// stderr has the end of the program's standard error.
	stderr *lastLine

	// ended is closed when the program's output has ended, after err was set.
	ended chan struct{}
	// exited is closed when the program has exited.
	exited chan struct{}

	// mu guards last, waiting and err.
	mu sync.Mutex

	// last is the id of the last request.
	last int64
	// waiting are the channels that receive the answers, by the id of the request.
	waiting map[int64]chan answer
	// err is the last error of the program; nil if there was none.
	err error
}

// Start starts a hook program. Its standard error goes to stderr.
func Start(argv []string, stderr io.Writer) (*Hook, error) {
	h := &Hook{
		cmd: exec.Command(argv[0], argv[1:]...), stderr: &lastLine{to: stderr}, requests: make(chan []byte, 16),
		ended: make(chan struct{}), exited: make(chan struct{}), waiting: make(map[int64]chan answer),
	}
	h.cmd.Stderr = h.stderr
	// A process that the program has started may keep its standard error open.
	h.cmd.WaitDelay = endGrace
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the command of --hook did not start: %w", err)
	}
	go h.write()
	go h.read(stdout)
	return h, nil
}

// write writes queued requests to the program's standard input.
func (h *Hook) write() {
	for {
		select {
		case line := <-h.requests:
			if _, err := h.stdin.Write(line); err != nil {
				// If the program has ended, its exit status says more.
				select {
				case <-h.ended:
				case <-time.After(endGrace):
					h.fail(fmt.Errorf("the command of --hook does not read its stdin: %w", err))
				}
				return
			}
		case <-h.ended:
			return
		}
	}
}

// read passes the program's answers to the frames until the program's output ends, and then waits for the program's end.
func (h *Hook) read(stdout io.Reader) {
	err := h.readAnswers(stdout)
	go func() {
		_ = h.cmd.Wait()
		close(h.exited)
	}()
	if err == nil {
		err = h.endError()
	}
	h.fail(err)
	close(h.ended)
}

// readAnswers reads the program's answers, and passes each to the frame that waits for it.
func (h *Hook) readAnswers(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 64<<10), maxAnswer)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			h.fail(fmt.Errorf("the command of --hook answered with invalid JSON: %w", err))
			continue
		}
		h.mu.Lock()
		c := h.waiting[a.ID]
		delete(h.waiting, a.ID)
		h.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	return lines.Err()
}

// endError returns the error for a program whose output has ended: with its exit status, or the signal that ended it,
// and the last line of its standard error.
func (h *Hook) endError() error {
	text := "has closed its stdout"
	select {
	case <-h.exited:
		text = "has ended (" + h.cmd.ProcessState.String() + ")"
	case <-time.After(statusGrace):
	}
	if line := h.stderr.last(); line != "" {
		text += ": " + line
	}
	return errors.New("the command of --hook " + text)
}

// fail stores an error, and releases all waiting frames, which receive it.
func (h *Hook) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	for id, c := range h.waiting {
		close(c)
		delete(h.waiting, id)
	}
}

// Decide asks the program what to do with a frame.
//
// Errors: if the program has ended, has not answered in time, or has answered something invalid.
func (h *Hook) Decide(ctx context.Context, held rules.Held) (rewrite.Verdict, error) {
	// The answer is matched by its ID, because the program may answer frames in any order.
	c := make(chan answer, 1)
	h.mu.Lock()
	h.last++
	q := request{
		V: 1, ID: h.last, Exchange: held.Exchange.ID, URL: held.Exchange.URL, Dir: held.Frame.Dir.String(),
		Frame: held.Frame.Number, Flags: int(held.Frame.Flags), JSON: held.JSON, Data: held.Data,
	}
	if held.Call.RPC != "" {
		q.Method = "/" + held.Call.Service + "/" + held.Call.RPC
	}
	h.waiting[q.ID] = c
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.waiting, q.ID)
		h.mu.Unlock()
	}()
	line, err := json.Marshal(q)
	if err != nil {
		return rewrite.Verdict{}, err
	}

	// One timer limits both phases together: a program that does not read, and one that reads but does
	// not answer.
	timer := time.NewTimer(answerTimeout)
	defer timer.Stop()
	select {
	case h.requests <- append(line, '\n'):
	case <-h.ended:
		return rewrite.Verdict{}, h.lastError()
	// If the exchange ends while the frame waits, there is nothing left to decide.
	case <-ctx.Done():
		return rewrite.Verdict{}, nil
	case <-timer.C:
		return rewrite.Verdict{}, fmt.Errorf("the command of --hook did not read a frame within %s", answerTimeout)
	}
	select {
	case a, ok := <-c:
		if !ok {
			return rewrite.Verdict{}, h.lastError()
		}
		return a.verdict()
	case <-h.ended:
		return rewrite.Verdict{}, h.lastError()
	case <-ctx.Done():
		return rewrite.Verdict{}, nil
	case <-timer.C:
		return rewrite.Verdict{}, fmt.Errorf("the command of --hook did not answer within %s", answerTimeout)
	}
}

// lastError returns the last error of the hook, or nil.
func (h *Hook) lastError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// verdict converts the program's answer to a verdict about the frame.
func (a answer) verdict() (rewrite.Verdict, error) {
	v := rewrite.Verdict{Rule: "hook"}
	if a.Rule != "" {
		v.Rule = "hook: " + a.Rule
	}
	switch a.Action {
	case "", "pass":
		return rewrite.Verdict{}, nil
	case "drop":
		v.Action = rewrite.Replace
	case "replace":
		if v.Action, v.Messages = rewrite.Replace, a.Messages; len(a.Messages) == 0 {
			return rewrite.Verdict{}, errors.New("the command of --hook answered with the action \"replace\" but without messages; to remove a frame, use the action \"drop\"")
		}
	case "reset":
		v.Action = rewrite.Reset
	default:
		return rewrite.Verdict{}, fmt.Errorf("the command of --hook answered with the action %q, which is not pass, drop, replace or reset", a.Action)
	}
	return v, nil
}

// Close closes the program's input, and kills the program if it does not end then.
func (h *Hook) Close() error {
	_ = h.stdin.Close()
	timer := time.AfterFunc(endGrace, func() { _ = h.cmd.Process.Kill() })
	defer timer.Stop()
	<-h.ended
	<-h.exited
	return nil
}
