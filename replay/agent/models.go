package agent

import (
	"context"
	"errors"
	"fmt"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/transport"
	"unwire/replay/agent/turn"
)

// maxModels limits the number of models in the list.
const maxModels = 1000

// modelServices are the services that may have the method for listing models; they are tried in order,
// because sources name both.
var modelServices = []string{"agent.v1.AgentService", "aiserver.v1.AiService"}

// Models returns the models that the server offers.
//
// Errors: a *turn.Error.
func (c *Client) Models(ctx context.Context) ([]turn.Model, error) {
	var answer message.Message
	var err error

	// Try the second service only if the first does not implement the method.
	for _, service := range modelServices {
		answer, err = c.unary(ctx, service, "GetUsableModels")
		var status *transport.StatusError
		if !errors.As(err, &status) || status.Status != 404 && (status.Err == nil || status.Err.Code != "unimplemented") {
			break
		}
	}
	if err != nil {
		return nil, c.failure(err)
	}

	// Models without an id cannot be requested, so they are left out.
	var models []turn.Model
	list := answer.Value("models").List()
	for i := range min(list.Len(), maxModels) {
		m := message.Message{Message: list.Get(i).Message()}
		model := turn.Model{ID: m.Text("model_id"), Name: m.Text("display_name"), Thinking: m.Has("thinking_details")}
		aliases := m.Value("aliases").List()
		for j := range aliases.Len() {
			model.Aliases = append(model.Aliases, aliases.Get(j).String())
		}
		if model.ID != "" {
			models = append(models, model)
		}
	}
	return models, nil
}

// unary calls a method on the backend with an empty request message.
func (c *Client) unary(ctx context.Context, service, rpc string) (answer message.Message, err error) {
	method := c.definitions.Method(service, rpc)
	if method == nil {
		return answer, fmt.Errorf("the definitions have no method %s/%s", service, rpc)
	}
	header, err := c.header(ctx)
	if err != nil {
		return answer, err
	}
	data, err := c.backend.Unary(ctx, service+"/"+rpc, header, nil)
	if err != nil {
		return answer, err
	}
	answer = c.definitions.New(string(method.Output().FullName()))
	if err := answer.Parse(data); err != nil {
		return answer, fmt.Errorf("the upstream's answer cannot be decoded with the definitions: %w", err)
	}
	return answer, nil
}
