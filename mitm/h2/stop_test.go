package h2

import (
	"strings"
	"testing"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// dataFrames returns DATA frames of a body that end a stream.
func dataFrames(stream uint32, body []byte) (frames []byte) {
	for len(body) > defaultFrameSize {
		frames = appendFrame(frames, frameData, 0, stream, body[:defaultFrameSize])
		body = body[defaultFrameSize:]
	}
	return appendFrame(frames, frameData, flagEndStream, stream, body)
}

// TestRuleEndsAfterResponse: if a rule ends an exchange at a frame of the request, and the client has already received
// the server's whole response, then nothing but a reset follows that response, and the exchange ends.
func TestRuleEndsAfterResponse(t *testing.T) {
	t.Parallel()
	// A long frame is not examined before it is complete, and goes through an inbox.
	long := strings.Repeat("long", 5000)
	for _, c := range []struct {
		early   string
		verdict rewrite.Verdict
	}{
		{"early", answerWith("tail")},
		{long, answerWith("tail")},
		{"early", rewrite.Verdict{Action: rewrite.Reset, Rule: "resets"}},
		{long, rewrite.Verdict{Action: rewrite.Reset, Rule: "resets"}},
	} {
		k := newScripted(t, map[string]scripted{"/": {framing: envelopes, matched: "stop", verdict: c.verdict}})
		up, down := newBlocks(), newBlocks()
		atClient, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
		k.write(k.client, post(up, 1, "/"))
		await(atServer, "1 HEADERS")
		k.write(k.server, head(down, 1), dataFrames(1, enveloped(c.early)))
		await(atClient, ", end true")
		k.write(k.client, appendFrame(nil, frameData, 0, 1, enveloped("stop")))
		await(atServer, "1 RST_STREAM")
		want := captures.Complete
		if c.verdict.Action == rewrite.Reset {
			want = captures.Reset
		}
		if x := k.capture.one(); x.Outcome != want {
			t.Errorf("%s %s; want %s", x.Outcome, x.Error, want)
		}
		k.write(k.client, post(up, 3, "/other"))
		await(atServer, "3 HEADERS")
		k.write(k.server, head(down, 3))
		for _, f := range await(atClient, "3 HEADERS") {
			if strings.HasPrefix(f, "1 HEADERS") || strings.HasPrefix(f, "1 DATA") {
				t.Errorf("%s follows a complete response", f)
			}
		}
	}
}
