package server

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"unwire/replay/gateway"
	"unwire/replay/gateway/front"
)

// health responds that the server is running. It does not contact the upstream server, so that health
// checks cost nothing.
func health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	// The client may have left.
	_ = front.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// metrics responds with the statistics of the gateway in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	writeMetrics(w, s.core.Counts())
}

// writeMetrics writes counts in the text format of Prometheus, version 0.0.4.
func writeMetrics(w io.Writer, n gateway.Counts) {
	metric := func(name, kind, help string, value int) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", name, help, name, kind, name, value)
	}
	labelled := func(name, help, label string, values map[string]int) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n", name, help, name)
		for _, value := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(w, "%s{%s=%q} %d\n", name, label, value, values[value])
		}
	}
	metric("unwire_sessions_running", "gauge", "Sessions whose response is being sent.", n.Running)
	metric("unwire_sessions_parked", "gauge", "Sessions that wait for tool results from the client.", n.Waiting)
	labelled("unwire_streams_opened_total", "Streams that were opened to the upstream, by the reason for a new stream.", "cause", n.ColdByCause())
	metric("unwire_requests_resumed_total", "counter", "Requests that continued a session that waited for tool results.", n.Resumed)
	labelled("unwire_responses_total", "Responses, by the way in which they ended.", "end", map[string]int{
		"finished": n.Finished, "tool_calls": n.Parked, "limited": n.Limited, "failed": n.Failed, "client_left": n.Abandoned,
	})
	labelled("unwire_sessions_closed_total", "Sessions that were closed while they waited for tool results.", "cause", map[string]int{"idle": n.Expired, "limit": n.Evicted})
}
