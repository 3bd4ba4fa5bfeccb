// Package clientconfig edits the configurations of programs that use MCP servers, so that they
// start unwire: Claude Code, Claude Desktop, Cursor, VS Code, Codex, opencode, Gemini and Windsurf.
//
//	c, err := clientconfig.Find("cursor")
//	path, err := c.Path(environment, clientconfig.Project)
//	text, err := c.Edit(old, clientconfig.Server{Name: "unwire", Command: "unwire", Args: []string{"mcp", "F.uwc"}})
//
// The text of a configuration goes in, and the text with the server in it comes out: everything
// else in it stays as it is, with its comments. A text that cannot be parsed is refused, and so is
// an edit after which anything else would have changed. The package reads and writes no files.
package clientconfig

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
)

// MaxSize is the largest configuration file that is edited, in bytes.
const MaxSize = 8 << 20

// A Scope is where an MCP server is configured: for one project, or for the user.
type Scope string

// The scopes: in the working folder, or everywhere for the user.
const (
	Project Scope = "project"
	User    Scope = "user"
)

// A Server is the command line with which an MCP client starts a server.
type Server struct {
	// Name is the name of the server in the configuration.
	Name string

	// Command is the program that the client starts. A client may start it in any folder, so the path should be absolute.
	Command string

	// Args are the command-line arguments of the server's program.
	Args []string
}

// An Environment has the folders that determine the paths of configuration files.
type Environment struct {
	// Home is the user's home folder.
	Home string

	// Work is the working folder.
	Work string

	// Config is the user's configuration folder; see os.UserConfigDir.
	Config string

	// Getenv returns the value of an environment variable.
	Getenv func(string) string
}

// A Client is a program that uses MCP servers.
type Client struct {
	// Name identifies the client on the command line.
	Name string

	// Title is the name of the product.
	Title string

	// paths has, for each scope that the client supports, a function that returns the path of the
	// configuration file.
	paths map[Scope]func(Environment) string

	// edit returns the content of a configuration file with the server added or replaced.
	edit func(old []byte, s Server) ([]byte, error)
}

// inHome returns a function for the path that consists of the home folder and elements.
func inHome(elements ...string) func(Environment) string {
	return func(e Environment) string { return filepath.Join(append([]string{e.Home}, elements...)...) }
}

// inWork returns a function for the path that consists of the working folder and elements.
func inWork(elements ...string) func(Environment) string {
	return func(e Environment) string { return filepath.Join(append([]string{e.Work}, elements...)...) }
}

// inConfig returns a function for the path that consists of the user's configuration folder and elements.
func inConfig(elements ...string) func(Environment) string {
	return func(e Environment) string { return filepath.Join(append([]string{e.Config}, elements...)...) }
}

// underHome returns a function for the path of a file in the folder that an environment variable names
// or, if it is not set, in a folder in the home folder.
func underHome(variable, folder, file string) func(Environment) string {
	return func(e Environment) string {
		if dir := e.Getenv(variable); dir != "" {
			return filepath.Join(dir, file)
		}
		return filepath.Join(e.Home, folder, file)
	}
}

// Clients returns the supported MCP clients.
func Clients() []Client {
	xdg := func(elements ...string) func(Environment) string {
		return func(e Environment) string {
			dir := e.Getenv("XDG_CONFIG_HOME")
			if dir == "" {
				dir = filepath.Join(e.Home, ".config")
			}
			return filepath.Join(append([]string{dir}, elements...)...)
		}
	}
	standard := jsonEditor("mcpServers", func(s Server) any { return commandAndArgs{s.Command, s.Args} })
	return []Client{
		{"claude-code", "Claude Code", map[Scope]func(Environment) string{Project: inWork(".mcp.json"), User: inHome(".claude.json")}, standard},
		{"claude-desktop", "Claude Desktop", map[Scope]func(Environment) string{User: inConfig("Claude", "claude_desktop_config.json")}, standard},
		{"codex", "Codex", map[Scope]func(Environment) string{User: underHome("CODEX_HOME", ".codex", "config.toml")}, editTOML},
		{"cursor", "Cursor", map[Scope]func(Environment) string{Project: inWork(".cursor", "mcp.json"), User: inHome(".cursor", "mcp.json")}, standard},
		{"gemini", "Gemini CLI", map[Scope]func(Environment) string{Project: inWork(".gemini", "settings.json"), User: inHome(".gemini", "settings.json")}, standard},
		{"opencode", "opencode", map[Scope]func(Environment) string{Project: inWork("opencode.json"), User: xdg("opencode", "opencode.json")}, jsonEditor("mcp", func(s Server) any {
			return localCommand{"local", append([]string{s.Command}, s.Args...), true}
		})},
		{"vscode", "VS Code", map[Scope]func(Environment) string{Project: inWork(".vscode", "mcp.json"), User: inConfig("Code", "User", "mcp.json")}, jsonEditor("servers", func(s Server) any {
			return typedCommand{"stdio", s.Command, s.Args}
		})},
		{"windsurf", "Windsurf", map[Scope]func(Environment) string{User: inHome(".codeium", "windsurf", "mcp_config.json")}, standard},
	}
}

// commandAndArgs, typedCommand and localCommand are how clients write a server.
type (
	// commandAndArgs, typedCommand and localCommand are the forms in which different clients store a
	// server.
	commandAndArgs struct {
		// Command is the path of the program that the client starts.
		Command string `json:"command"`
		// Args are the arguments of the program.
		Args []string `json:"args"`
	}
	typedCommand struct {
		// Type is the kind of the server, such as "stdio".
		Type string `json:"type"`
		// Command is the path of the program that the client starts.
		Command string `json:"command"`
		// Args are the arguments of the program.
		Args []string `json:"args"`
	}
	localCommand struct {
		// Type is the kind of the server, such as "local".
		Type string `json:"type"`
		// Command is the path of the program that the client starts, followed by its arguments.
		Command []string `json:"command"`
		// Enabled means that the client uses the server.
		Enabled bool `json:"enabled"`
	}
)

// Names returns the command-line names of all supported clients.
func Names() []string {
	var list []string
	for _, c := range Clients() {
		list = append(list, c.Name)
	}
	return list
}

// Find returns the supported client with a command-line name.
func Find(name string) (Client, error) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, fmt.Errorf("unknown client %q", name)
	}
	return all[i], nil
}

// Path returns the path of the client's configuration file for a scope. If the client does not support
// that scope, it returns the path for the other one; actual is the scope of the path.
func (c *Client) Path(e Environment, scope Scope) (path string, actual Scope) {
	for _, s := range []Scope{scope, User, Project} {
		if at := c.paths[s]; at != nil {
			return at(e), s
		}
	}
	return "", scope
}

// Folders returns the folders of the client's configuration files, except the home and working folders.
// If one exists, the client is in use.
func (c *Client) Folders(e Environment) (list []string) {
	for scope, at := range c.paths {
		if dir := filepath.Dir(at(e)); scope == User && dir != e.Home || scope == Project && dir != e.Work {
			list = append(list, dir)
		}
	}
	return list
}

// Edit returns the content old of a configuration file with the server s added or replaced. If old is
// empty, the result is a new file.
//
// Errors: syntaxError, and conflictError if the file has something else in the server's place.
func (c *Client) Edit(old []byte, s Server) ([]byte, error) {
	if len(old) > MaxSize {
		return nil, &syntaxError{fmt.Errorf("the file has %d bytes; the limit is %d", len(old), MaxSize)}
	}
	return c.edit(old, s)
}

// A syntaxError reports a configuration file that cannot be parsed and is therefore not edited.
type syntaxError struct {
	// err is the error of the parser.
	err error
}

// Error returns the text.
func (e *syntaxError) Error() string { return "the file cannot be parsed: " + e.err.Error() }

// Unwrap returns the error of the parser.
func (e *syntaxError) Unwrap() error { return e.err }

// A conflictError reports a configuration file to which the server cannot be added without changing other
// settings.
type conflictError struct {
	// text describes the conflict.
	text string
}

// Error returns the text.
func (e *conflictError) Error() string { return e.text }

// lineEnd returns the line end that a text uses: "\r\n" or "\n".
func lineEnd(text []byte) string {
	for i, b := range text {
		if b == '\n' {
			if i > 0 && text[i-1] == '\r' {
				return "\r\n"
			}
			return "\n"
		}
	}
	if len(text) == 0 && runtime.GOOS == "windows" {
		return "\r\n"
	}
	return "\n"
}
