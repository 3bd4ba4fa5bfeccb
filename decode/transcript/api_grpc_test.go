package transcript

// tokens makes the numbers of tokens fit the texts, since without names nothing else says what they are.
func (g *apiCall) tokens() {
	g.input = 20 + (len(g.system)+len(g.question))/4
	g.output = 2 + (len(g.answer)+len(g.thinking))/4
	for _, u := range g.calls {
		g.output += 8 + len(u.json())/4
	}
}

// googleFields are the numbers of the fields that Vertex AI and the Generative Language API have in common.
type googleFields struct {
	candidates, usage, version, content, finish, role, parts, text, call, response, thought int
	contents, model, system                                                                 int
}

func googleContent(g *apiCall, method string, f googleFields) {
	g.tokens()
	part := func(fields ...[]byte) []byte { return pbMsg(f.parts, fields...) }
	content := func(n int, role string, parts ...[]byte) []byte {
		fields := [][]byte{pbText(f.role, role)}
		if f.role > f.parts {
			fields = append(parts, fields...)
		} else {
			fields = append(fields, parts...)
		}
		return pbMsg(n, fields...)
	}
	request := pbText(f.model, "models/"+g.model)
	if g.system != "" {
		request = append(request, content(f.system, "user", part(pbText(f.text, g.system)))...)
	}
	request = append(request, content(f.contents, "user", part(pbText(f.text, g.question)))...)
	if len(g.earlier) > 0 {
		var calls, results [][]byte
		for _, u := range g.earlier {
			calls = append(calls, part(pbMsg(f.call, pbText(1, u.name), pbMsg(2, pbStruct(u.args)))))
			results = append(results, part(pbMsg(f.response, pbText(1, u.name), pbMsg(2, pbStruct(object{"output": u.result})))))
		}
		request = append(append(request, content(f.contents, "model", calls...)...), content(f.contents, "user", results...)...)
	}
	g.grpc(method, request)
	send := func(finish int, parts ...[]byte) {
		candidate := [][]byte{content(f.content, "model", parts...)}
		if finish > 0 {
			candidate = append(candidate, num(f.finish, finish))
		}
		usage := pbMsg(f.usage, num(1, g.input), num(3, g.input))
		if finish > 0 {
			usage = pbMsg(f.usage, num(1, g.input), num(2, g.output), num(3, g.input+g.output))
		}
		g.message(append(append(pbMsg(f.candidates, candidate...), usage...), pbText(f.version, g.model)...))
	}
	for _, p := range g.parts(g.thinking) {
		send(0, part(pbText(f.text, p), num(f.thought, 1)))
	}
	for _, p := range g.parts(g.answer) {
		send(0, part(pbText(f.text, p)))
	}
	var calls [][]byte
	for _, u := range g.calls {
		calls = append(calls, part(pbMsg(f.call, pbText(1, u.name), pbMsg(2, pbStruct(u.args)))))
	}
	send(1, calls...)
}

func vertexGRPC(g *apiCall) {
	googleContent(g, "google.cloud.aiplatform.v1.PredictionService/StreamGenerateContent", googleFields{
		candidates: 2, usage: 4, version: 11, content: 2, finish: 3, role: 1, parts: 2, text: 1, call: 5, response: 6, thought: 10, contents: 2, model: 5, system: 8,
	})
}

func xAIChat(g *apiCall) {
	g.tokens()
	message := func(role int, fields ...[]byte) []byte {
		return pbMsg(1, append(fields, num(2, role))...)
	}
	text := func(s string) []byte { return pbMsg(1, pbText(1, s)) }
	call := func(n int, u toolUse) []byte {
		return pbMsg(n, pbText(1, u.id), num(2, 1), pbMsg(10, pbText(1, u.name), pbText(2, u.json())))
	}
	var request []byte
	if g.system != "" {
		request = append(request, message(3, text(g.system))...)
	}
	request = append(request, message(1, text(g.question))...)
	if len(g.earlier) > 0 {
		var calls [][]byte
		for _, u := range g.earlier {
			calls = append(calls, call(4, u))
		}
		request = append(request, message(2, append([][]byte{text("")}, calls...)...)...)
		for _, u := range g.earlier {
			request = append(request, message(5, text(u.result), pbText(7, u.id))...)
		}
	}
	g.grpc("xai_api.Chat/GetCompletionChunk", append(request, pbText(2, g.model)...))
	id := g.uuid()
	send := func(delta ...[]byte) {
		chunk := append(pbText(1, id), pbMsg(2, pbMsg(1, append(delta, num(2, 2))...))...)
		chunk = append(chunk, pbMsg(3, num(1, 1763700000+g.r.IntN(9)), num(2, g.r.IntN(1e9)))...)
		chunk = append(append(chunk, pbText(4, g.model)...), pbText(5, "fp_"+g.padding())...)
		g.message(append(chunk, pbMsg(6, num(1, g.output), num(2, g.input), num(3, g.input+g.output), num(4, g.input))...))
	}
	for _, p := range g.parts(g.thinking) {
		send(pbText(4, p))
	}
	for _, p := range g.parts(g.answer) {
		send(pbText(1, p))
	}
	for _, u := range g.calls {
		send(call(3, u))
	}
	send()
}
