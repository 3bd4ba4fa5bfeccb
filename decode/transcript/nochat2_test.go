package transcript

import (
	"fmt"
	"strings"

	"unwire/captures"
)

// moreTraffic is traffic of well-known services with JSON and gRPC, written after their public documentation. Nothing
// was corrected on it.
var moreTraffic = []otherStyle{
	{"Kubernetes: pods listed", false, kubePods},
	{"Kubernetes: events watched", false, kubeWatch},
	{"Prometheus: range query", false, promRange},
	{"Loki: lines pushed and queried", false, lokiLines},
	{"Elasticsearch: search", false, elasticSearch},
	{"Elasticsearch: bulk", false, elasticBulk},
	{"Qdrant: search with payloads", false, qdrantSearch},
	{"Weaviate: GraphQL", false, weaviateQuery},
	{"Pinecone: upsert", false, pineconeUpsert},
	{"GitHub: comments", false, gitHubComments},
	{"GitHub: pull request created", false, gitHubPull},
	{"Slack: history of a channel", false, slackHistory},
	{"helpdesk: conversation of people", false, helpdesk},
	{"Stripe: customer created", false, stripeCustomer},
	{"Jira: issue", false, jiraIssue},
	{"OTLP: spans as JSON", false, otlpSpans},
	{"Sentry: event", false, sentryEvent},
	{"OpenAI: embeddings", false, openAIEmbeddings},
	{"OpenAI: moderation", false, openAIModeration},
	{"OpenAI: models", false, openAIModels},
	{"Cohere: rerank", false, cohereRerank},
	{"users with roles", false, usersWithRoles},
	{"language server: completion and hover", false, languageServer},
	{"translation", false, translation},
	{"CI: log streamed", false, ciLog},
	{"feature flags", false, featureFlags},
	{"Docker: image pulled", false, dockerPull},
	{"SSE: build status", false, buildStatus},
	{"MCP: tools listed", false, mcpTools},
	{"Firestore: documents", false, firestoreDocs},
}

// address sets the address of an exchange.
func (m *maker) address(method, path string) {
	m.ex.Method, m.ex.URL = method, "https://api.example"+path
}

func (m *maker) objectMeta() object {
	return object{"name": "shop-" + m.padding(), "namespace": "default", "uid": m.uuid(), "resourceVersion": fmt.Sprint(m.r.IntN(1e6)), "labels": object{"app": "shop", "role": pick(m, []string{"user", "agent", "worker"})}, "annotations": object{"description": m.paragraph(about, 1)}}
}

func kubePods(m *maker) {
	m.address("GET", "/api/v1/namespaces/default/pods")
	var items []any
	for range 1 + m.r.IntN(9) {
		items = append(items, object{"metadata": m.objectMeta(), "spec": object{"containers": []any{object{"name": "app", "image": "shop:1.2", "args": []any{"--port", "80"}, "command": []any{"run"}, "env": []any{object{"name": "ROLE", "value": "assistant"}}}}}, "status": object{"phase": "Running", "message": "The node was low on memory.", "reason": "Evicted"}})
	}
	m.rest(nil, object{"kind": "PodList", "apiVersion": "v1", "metadata": object{"resourceVersion": "1"}, "items": items})
}

func kubeWatch(m *maker) {
	m.address("GET", "/api/v1/events?watch=true")
	for range 3 + m.r.IntN(20) {
		m.emit(captures.Down, "", object{"type": pick(m, []string{"ADDED", "MODIFIED"}), "object": object{"kind": "Event", "metadata": m.objectMeta(), "reason": pick(m, []string{"Pulled", "Scheduled", "BackOff"}), "message": pick(m, []string{"Successfully assigned default/shop to node-3", "Container image is already present on machine", "Back-off restarting failed container"}), "type": "Normal", "source": object{"component": "kubelet"}}})
	}
}

func promRange(m *maker) {
	m.address("GET", "/api/v1/query_range?query=up")
	var result []any
	for range 1 + m.r.IntN(5) {
		var values []any
		for i := range 10 {
			values = append(values, []any{1763700000 + i, fmt.Sprint(m.r.Float64())})
		}
		result = append(result, object{"metric": object{"__name__": "tokens_total", "job": "shop", "model": "x1"}, "values": values})
	}
	m.rest(nil, object{"status": "success", "data": object{"resultType": "matrix", "result": result}})
}

func (m *maker) logLine() string {
	return pick(m, []string{"GET /cart 200 in 12ms", "connection to the database was lost, retrying in 5s", "user 4411 has logged in", "slow query: select * from orders", "assistant service started"})
}

func lokiLines(m *maker) {
	m.address("POST", "/loki/api/v1/push")
	var values []any
	for i := range 2 + m.r.IntN(20) {
		values = append(values, []any{fmt.Sprint(1763700000000000000 + i), m.logLine()})
	}
	streams := []any{object{"stream": object{"app": "shop", "level": "info"}, "values": values}}
	if m.chance(0.5) {
		m.rest(object{"streams": streams}, object{})
	} else {
		m.rest(nil, object{"status": "success", "data": object{"resultType": "streams", "result": streams, "stats": object{"summary": object{"bytesProcessedPerSecond": 3e6, "totalLinesProcessed": 20}}}})
	}
}

func elasticSearch(m *maker) {
	m.address("POST", "/articles/_search")
	var hits []any
	for i := range 1 + m.r.IntN(6) {
		hits = append(hits, object{"_index": "articles", "_id": m.padding(), "_score": 1.5, "_source": object{"title": m.title(languages[0]), "content": m.paragraph(about, 1+m.r.IntN(4)), "author": "jo"}, "sort": []any{i}})
	}
	m.rest(object{"query": object{"match": object{"content": m.question(m.speech())}}, "size": 10}, object{"took": 3, "timed_out": false, "hits": object{"total": object{"value": len(hits), "relation": "eq"}, "max_score": 1.5, "hits": hits}})
}

func elasticBulk(m *maker) {
	m.address("POST", "/_bulk")
	var b strings.Builder
	var items []any
	for range 1 + m.r.IntN(6) {
		b.WriteString(`{"index":{"_index":"logs"}}` + "\n" + string(compactJSON(object{"message": m.logLine(), "level": "info"})) + "\n")
		items = append(items, object{"index": object{"_index": "logs", "_id": m.padding(), "result": "created", "status": 201}})
	}
	m.line(b.String())
	m.ex.Frames[0].Dir = captures.Up
	m.rest(nil, object{"took": 9, "errors": false, "items": items})
}

func qdrantSearch(m *maker) {
	m.address("POST", "/collections/articles/points/search")
	var result []any
	for i := range 1 + m.r.IntN(5) {
		result = append(result, object{"id": i, "version": 3, "score": 0.8, "payload": object{"text": m.paragraph(about, 2), "role": "user", "source": "faq.md"}, "vector": nil})
	}
	m.rest(object{"vector": []any{0.1, 0.2}, "limit": 5, "with_payload": true, "filter": object{"must": []any{object{"key": "role", "match": object{"value": "user"}}}}}, object{"result": result, "status": "ok", "time": 0.001})
}

func weaviateQuery(m *maker) {
	m.address("POST", "/v1/graphql")
	var list []any
	for range 1 + m.r.IntN(4) {
		list = append(list, object{"title": m.title(languages[0]), "content": m.paragraph(about, 2), "_additional": object{"distance": 0.2, "id": m.uuid()}})
	}
	m.rest(object{"query": `{ Get { Article(nearText: {concepts: ["` + pick(m, goods) + `"]}, limit: 3) { title content _additional { distance id } } }`}, object{"data": object{"Get": object{"Article": list}}})
}

func pineconeUpsert(m *maker) {
	m.address("POST", "/vectors/upsert")
	var vectors []any
	for range 1 + m.r.IntN(5) {
		vectors = append(vectors, object{"id": m.padding(), "values": []any{0.1, 0.2, 0.3}, "metadata": object{"text": m.paragraph(about, 2), "speaker": "assistant"}})
	}
	m.rest(object{"vectors": vectors, "namespace": "faq"}, object{"upsertedCount": len(vectors)})
}

func (m *maker) login() object {
	return object{"login": "octo-" + m.padding(), "id": m.r.IntN(1e6), "type": pick(m, []string{"User", "Bot"}), "site_admin": false}
}

func gitHubComments(m *maker) {
	m.address("GET", "/repos/o/r/issues/12/comments")
	var list []any
	for range 1 + m.r.IntN(8) {
		list = append(list, object{"id": m.r.IntN(1e9), "user": m.login(), "body": m.paragraph(said, 1+m.r.IntN(4)), "author_association": "MEMBER", "created_at": "2026-11-02T10:12:13Z", "reactions": object{"total_count": 2}})
	}
	m.rest(nil, list)
}

func gitHubPull(m *maker) {
	m.address("POST", "/repos/o/r/pulls")
	title, body := m.title(languages[0]), m.paragraph(about, 2)
	m.rest(object{"title": title, "body": body, "head": "fix", "base": "main"}, object{"id": m.r.IntN(1e9), "number": 7, "state": "open", "title": title, "body": body, "user": m.login(), "head": object{"ref": "fix", "sha": m.padding()}, "requested_reviewers": []any{m.login()}, "draft": false, "commits": 3})
}

func slackHistory(m *maker) {
	m.address("GET", "/api/conversations.history?channel=C1")
	var list []any
	for i := range 1 + m.r.IntN(9) {
		v := object{"type": "message", "user": pick(m, []string{"U061F7AUR", "U0G9QF9C6"}), "text": m.paragraph(said, 1+m.r.IntN(2)), "ts": fmt.Sprintf("17637000%02d.000200", i), "team": "T1"}
		if m.chance(0.2) {
			v["subtype"], v["bot_id"] = "bot_message", "B1"
		}
		list = append(list, v)
	}
	m.rest(nil, object{"ok": true, "messages": list, "has_more": false, "pin_count": 0, "response_metadata": object{"next_cursor": ""}})
}

func helpdesk(m *maker) {
	m.address("GET", "/tickets/4411/comments.json")
	var list []any
	for range 1 + m.r.IntN(6) {
		list = append(list, object{"id": m.r.IntN(1e9), "type": "Comment", "author_id": m.r.IntN(1e6), "body": m.paragraph(said, 2), "html_body": "<p>" + m.paragraph(said, 1) + "</p>", "public": true, "created_at": "2026-11-02T10:12:13Z"})
	}
	m.rest(nil, object{"comments": list, "count": len(list), "users": []any{object{"id": 1, "name": "Jo", "role": "agent"}, object{"id": 2, "name": "Lee", "role": "end-user"}}})
}

func stripeCustomer(m *maker) {
	m.address("POST", "/v1/customers")
	m.line("name=Jo+Meyer&email=jo%40example.org&description=" + strings.ReplaceAll(pick(m, goods), " ", "+"))
	m.ex.Frames[0].Dir = captures.Up
	m.rest(nil, object{"id": "cus_" + m.padding(), "object": "customer", "name": "Jo Meyer", "description": m.paragraph(about, 1), "email": "jo@example.org", "balance": 0, "created": 1763700000, "invoice_settings": object{"footer": nil}, "livemode": false})
}

func jiraIssue(m *maker) {
	m.address("GET", "/rest/api/3/issue/SHOP-7")
	text := func() object {
		return object{"type": "doc", "version": 1, "content": []any{object{"type": "paragraph", "content": []any{object{"type": "text", "text": m.paragraph(about, 2)}}}}}
	}
	m.rest(nil, object{"id": "10002", "key": "SHOP-7", "fields": object{"summary": m.title(languages[0]), "description": text(), "status": object{"name": "To Do"}, "comment": object{"comments": []any{object{"author": object{"displayName": "Jo"}, "body": text()}}, "total": 1}}})
}

func otlpSpans(m *maker) {
	m.address("POST", "/v1/traces")
	attr := func(k, v string) object { return object{"key": k, "value": object{"stringValue": v}} }
	var spans []any
	for range 1 + m.r.IntN(9) {
		spans = append(spans, object{"traceId": m.padding(), "spanId": m.padding(), "name": "GET /cart", "kind": 2, "attributes": []any{attr("http.route", "/cart"), attr("gen_ai.request.model", "x1"), attr("message", m.logLine())}, "status": object{"message": m.logLine()}})
	}
	m.rest(object{"resourceSpans": []any{object{"resource": object{"attributes": []any{attr("service.name", "shop")}}, "scopeSpans": []any{object{"spans": spans}}}}}, object{"partialSuccess": object{"rejectedSpans": "1", "errorMessage": "One span was too old."}})
}

func sentryEvent(m *maker) {
	m.address("POST", "/api/1/store/")
	m.rest(object{"event_id": m.padding(), "platform": "python", "level": "error", "message": m.logLine(), "exception": object{"values": []any{object{"type": "ValueError", "value": "The amount must be positive.", "stacktrace": object{"frames": []any{object{"function": "pay", "context_line": "raise ValueError(text)"}}}}}}, "user": object{"id": "7"}, "breadcrumbs": []any{object{"message": m.logLine(), "category": "query"}}}, object{"id": m.padding()})
}

func openAIEmbeddings(m *maker) {
	m.address("POST", "/v1/embeddings")
	n := 5 + m.r.IntN(90)
	m.rest(object{"model": "text-embedding-3-small", "input": m.paragraph(about, 2), "encoding_format": "float"}, object{"object": "list", "data": []any{object{"object": "embedding", "index": 0, "embedding": []any{0.1, -0.2, 0.3}}}, "model": "text-embedding-3-small", "usage": object{"prompt_tokens": n, "total_tokens": n}})
}

func openAIModeration(m *maker) {
	m.address("POST", "/v1/moderations")
	m.rest(object{"model": "omni-moderation-latest", "input": m.paragraph(said, 2)}, object{"id": "modr-1", "model": "omni-moderation-latest", "results": []any{object{"flagged": false, "categories": object{"violence": false, "hate": false}, "category_scores": object{"violence": 0.01, "hate": 0.02}}}})
}

func openAIModels(m *maker) {
	m.address("GET", "/v1/models")
	var list []any
	for range 2 + m.r.IntN(5) {
		list = append(list, object{"id": pick(m, models), "object": "model", "created": 1763700000, "owned_by": "system", "description": m.paragraph(about, 1)})
	}
	m.rest(nil, object{"object": "list", "data": list})
}

func cohereRerank(m *maker) {
	m.address("POST", "/v2/rerank")
	var docs, results []any
	for i := range 2 + m.r.IntN(5) {
		text := m.paragraph(about, 2)
		docs = append(docs, text)
		results = append(results, object{"index": i, "relevance_score": m.r.Float64(), "document": object{"text": text}})
	}
	m.rest(object{"model": "rerank-v3.5", "query": m.question(m.speech()), "documents": docs, "top_n": 3}, object{"results": results, "id": m.uuid(), "meta": object{"api_version": object{"version": "2"}, "billed_units": object{"search_units": 1}}})
}

func usersWithRoles(m *maker) {
	m.address("GET", "/v1/organization/users")
	var list []any
	for range 1 + m.r.IntN(6) {
		list = append(list, object{"id": m.uuid(), "role": pick(m, []string{"user", "agent", "owner", "system"}), "name": "Jo", "email": "jo@example.org", "bio": m.paragraph(said, 1), "message": pick(m, []string{"", "On leave until Monday."})})
	}
	m.rest(nil, object{"object": "list", "data": list, "first_id": "a", "has_more": false})
}

func languageServer(m *maker) {
	m.address("POST", "/lsp")
	m.rest(object{"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": object{"textDocument": object{"uri": "file:///a.go"}, "position": object{"line": 3, "character": 7}}}, object{"jsonrpc": "2.0", "id": 1, "result": object{"contents": object{"kind": "markdown", "value": "```go\nfunc F()\n```\n\n" + m.paragraph(about, 1)}}})
}

func translation(m *maker) {
	m.address("POST", "/v2/translate")
	var texts, out []any
	for range 2 + m.r.IntN(3) {
		texts = append(texts, m.paragraph(about, 1))
		out = append(out, object{"detected_source_language": "EN", "text": m.text(languages[1], 1)})
	}
	m.rest(object{"text": texts, "target_lang": "DE"}, object{"translations": out})
}

func ciLog(m *maker) {
	m.address("GET", "/jobs/7/trace")
	for i := range 4 + m.r.IntN(30) {
		m.emit(captures.Down, "log", object{"n": i, "t": "2026-11-02T10:12:13Z", "text": pick(m, []string{"$ go test ./...\n", "ok  \tshop/cart\t0.4s\n", "FAIL: TestPay expected 3, got 4\n", "Downloading dependencies, please wait.\n"})})
	}
}

func featureFlags(m *maker) {
	m.address("GET", "/sdk/evalx/contexts")
	flags := object{}
	for i := range 2 + m.r.IntN(9) {
		flags[fmt.Sprintf("%s-%d", pick(m, []string{"assistant", "thinking", "new-cart", "tool-calls"}), i)] = object{"value": pick(m, []any{true, "on", "Try the new assistant today!"}), "version": i, "trackEvents": false, "reason": object{"kind": "FALLTHROUGH"}}
	}
	m.rest(nil, flags)
}

func dockerPull(m *maker) {
	m.address("POST", "/v1.45/images/create?fromImage=shop")
	for i := range 3 + m.r.IntN(20) {
		m.emit(captures.Down, "", object{"status": pick(m, []string{"Pulling fs layer", "Downloading", "Verifying Checksum", "Download complete"}), "progressDetail": object{"current": i * 1000, "total": 90000}, "progress": "[==>   ]", "id": m.padding()})
	}
}

func buildStatus(m *maker) {
	m.address("GET", "/builds/7/events")
	for i := range 3 + m.r.IntN(9) {
		m.emit(captures.Down, "status", object{"type": "status", "step": i, "message": pick(m, []string{"Installing dependencies", "Compiling 12 files", "Running the tests", "Deploying to production"}), "done": false})
	}
}

func mcpTools(m *maker) {
	m.address("POST", "/mcp")
	var tools []any
	for _, name := range toolNames[:3] {
		tools = append(tools, object{"name": name, "description": m.paragraph(about, 1), "inputSchema": object{"type": "object", "properties": object{"path": object{"type": "string"}}}})
	}
	m.rest(object{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": object{}}, object{"jsonrpc": "2.0", "id": 2, "result": object{"tools": tools}})
}

func firestoreDocs(m *maker) {
	m.address("POST", "/v1/projects/p/databases/(default)/documents:runQuery")
	var list []any
	for range 1 + m.r.IntN(6) {
		list = append(list, object{"document": object{"name": "projects/p/documents/reviews/" + m.padding(), "fields": object{"text": object{"stringValue": m.paragraph(said, 2)}, "role": object{"stringValue": "user"}, "stars": object{"integerValue": "4"}}, "createTime": "2026-11-02T10:12:13Z"}, "readTime": "2026-11-02T10:12:13Z"})
	}
	m.rest(object{"structuredQuery": object{"from": []any{object{"collectionId": "reviews"}}, "limit": 10}}, list)
}
