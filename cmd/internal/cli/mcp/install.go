package mcpcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/mcp/clientconfig"
	"unwire/cmd/internal/term"
)

// installFlags are the values of the flags of 'unwire mcp install'.
type installFlags struct {
	// clients are the names of the programs to configure; empty for all that are installed.
	clients []string

	// scope is "project" or "user".
	scope string

	// name is the name of the MCP server in the configuration.
	name string

	// proto names the definitions with which the server is started; "" for none.
	proto string

	// yes does not ask for confirmation.
	yes bool

	// dryRun only shows the changes.
	dryRun bool
}

// installCommand returns the command 'unwire mcp install', which adds 'unwire mcp' to the configuration
// of MCP clients.
func installCommand(a *app.App) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install F.uwc…",
		Short: "Configure AI programs so that they start 'unwire mcp'",
		Long: `install configures AI programs so that they start the server 'unwire mcp' with the given
captures. The programs are ` + strings.Join(clientconfig.Names(), ", ") + `. install shows the change of each configuration file, and asks before it writes the file.
Without --client, install configures all of these programs that it finds on this machine.

With --scope project, install writes a configuration file in the working folder. A
program then offers the captures to its agent only in this folder. --scope project works
only for programs that support a configuration file for each project. With --scope user,
the captures are available in all folders. install keeps the other settings and the
comments in a configuration file, and replaces an earlier entry with the same name. If
install cannot parse a file, it does not change the file.`,
		Example: `  # Configure all AI programs that install finds on this machine
  unwire mcp install F.uwc
  # Configure two programs, and offer all captures in a folder
  unwire mcp install --client claude-code --client cursor captures/
  # Print the change for one program without making it
  unwire mcp install --client codex --dry-run F.uwc
  # Offer the capture in all folders, and do not ask for confirmation
  unwire mcp install --client vscode --scope user --yes F.uwc`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire mcp install: missing argument F.uwc"), "usage: "+cmd.UseLine()+"; F.uwc can be a folder of captures")
			}
			return install(cmd.Context(), a, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.clients, "client", nil, "AI program that install configures: "+strings.Join(clientconfig.Names(), ", ")+"; can be repeated (default: all of these that are on this machine)")
	flags.StringVar(&f.scope, "scope", string(clientconfig.Project), "where the captures are available: project (only in the working folder) or user (in all folders)")
	flags.StringVar(&f.name, "name", "unwire", "name of the server in the configuration files")
	flags.StringVar(&f.proto, "proto", "", ".proto definitions with which the server decodes messages")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the changes, but do not write them")
	if err := cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(clientconfig.Names(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was added above
	}
	return cmd
}

// install executes 'unwire mcp install' for the given captures.
func install(ctx context.Context, a *app.App, f installFlags, captures []string) error {
	if err := app.OneOf("--scope", f.scope, string(clientconfig.Project), string(clientconfig.User)); err != nil {
		return err
	}
	if f.name == "" || strings.Trim(f.name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return app.Usagef("--name must consist of letters, digits, - and _, not %q", f.name)
	}
	env, err := environment()
	if err != nil {
		return err
	}
	server, err := serverOf(f, captures)
	if err != nil {
		return err
	}
	for _, name := range captures {
		warnUnreadable(a, name)
	}
	clients, err := chosenClients(f.clients, env)
	if err != nil {
		return err
	}

	// One file that cannot be edited does not keep the others from being edited.
	var failed error
	for _, c := range clients {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := configure(a, f, c, env, server); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// environment returns the folders of the user in which clients keep their configurations.
func environment() (clientconfig.Environment, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return clientconfig.Environment{}, err
	}
	work, err := os.Getwd()
	if err != nil {
		return clientconfig.Environment{}, err
	}
	config, err := os.UserConfigDir()
	return clientconfig.Environment{Home: home, Work: work, Config: config, Getenv: os.Getenv}, err
}

// serverOf returns the command line with which clients start the server. Its paths are absolute, because
// clients start it in any folder.
func serverOf(f installFlags, captures []string) (clientconfig.Server, error) {
	s := clientconfig.Server{Name: f.name, Args: []string{"mcp"}}
	var err error
	if s.Command, err = os.Executable(); err != nil {
		return s, err
	}
	// A name that a PATH finds survives an update into another folder.
	if found, err := exec.LookPath("unwire"); err == nil && sameFile(found, s.Command) {
		if found, err = filepath.Abs(found); err == nil {
			s.Command = found
		}
	}
	if f.proto != "" {
		proto := f.proto
		if _, err := os.Stat(proto); err == nil {
			if proto, err = filepath.Abs(proto); err != nil {
				return s, err
			}
		}
		s.Args = append(s.Args, "--proto", proto)
	}
	for _, name := range captures {
		path, err := filepath.Abs(name)
		if err != nil {
			return s, err
		}
		s.Args = append(s.Args, path)
	}
	return s, nil
}

// sameFile reports whether two paths lead to the same existing file.
func sameFile(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

// chosenClients returns the MCP clients with the given names or, if names is empty, those installed on
// this machine.
func chosenClients(names []string, env clientconfig.Environment) ([]clientconfig.Client, error) {
	hint := "name the program with --client: " + strings.Join(clientconfig.Names(), ", ")
	var list []clientconfig.Client
	for _, name := range names {
		c, err := clientconfig.Find(name)
		if err != nil {
			return nil, app.Fail(app.ExitUsage, err, hint)
		}
		list = append(list, c)
	}
	if len(names) > 0 {
		return list, nil
	}
	for _, c := range clientconfig.Clients() {
		if slices.ContainsFunc(c.Folders(env), isFolder) || hasClaudeFile(c, env) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, app.Fail(app.ExitUsage, errors.New("unwire found no program on this machine that uses MCP servers"), hint)
	}
	return list, nil
}

// isFolder reports whether a path is an existing folder.
func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// hasClaudeFile reports whether the client's configuration file exists, for a client that keeps it
// directly in the home folder.
func hasClaudeFile(c clientconfig.Client, env clientconfig.Environment) bool {
	path, _ := c.Path(env, clientconfig.User)
	_, err := os.Stat(path)
	return err == nil
}

// configure adds the server to the configuration file of one MCP client.
func configure(a *app.App, f installFlags, c clientconfig.Client, env clientconfig.Environment, s clientconfig.Server) error {
	path, _ := c.Path(env, clientconfig.Scope(f.scope))
	old, mode, err := readConfiguration(path)
	if err != nil {
		return err
	}

	// The edit keeps everything else in the file, and fails instead of guessing if the file cannot be
	// parsed.
	text, err := c.Edit(old, s)
	if err != nil {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %s: %w", c.Title, path, err), "unwire did not change the file: correct it, or add an MCP server to it yourself; the command of the server is "+s.Command+" "+strings.Join(s.Args, " "))
	}
	if bytes.Equal(old, text) {
		a.Say("%s: %s is up to date", c.Title, term.Clean(path))
		return nil
	}

	// Show the change before asking, because the file belongs to another program.
	a.Say("%s: changes to %s:", c.Title, term.Clean(path))
	writeChange(a.Out, old, text)
	if f.dryRun {
		return nil
	}
	if !f.yes {
		if err := a.Confirm(fmt.Sprintf("Write this to %s?", term.Clean(path))); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}

	// The other program may have written its configuration while the user was thinking.
	if now, _, err := readConfiguration(path); err != nil || !bytes.Equal(now, old) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s was changed by another program in the meantime", path), "run the command again")
	}
	if err := app.WholeFile(path, mode, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	a.Say("%s is configured; restart it if it is running", c.Title)
	return nil
}

// readConfiguration returns the content and the permissions of a configuration file. For a missing file,
// the content is nil and the permissions are those of a new file.
func readConfiguration(path string) (text []byte, mode os.FileMode, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, app.ForOwner, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, app.Fail(app.ExitInput, fmt.Errorf("%s is not a regular file", path), "add the server to the configuration by hand")
	}
	if info.Size() > clientconfig.MaxSize {
		return nil, 0, app.Fail(app.ExitInput, fmt.Errorf("the file %s has %d bytes; the limit is %d", path, info.Size(), clientconfig.MaxSize), "add the server to the configuration by hand")
	}
	text, err = os.ReadFile(path)
	return text, info.Mode().Perm(), err
}

// contextLines is the number of unchanged lines that are printed before and after a change.
const contextLines = 2

// writeChange prints, like a diff, the one region of lines in which two texts differ.
func writeChange(w io.Writer, before, after []byte) {
	old, new := lines(before), lines(after)
	first := 0
	for first < len(old) && first < len(new) && old[first] == new[first] {
		first++
	}
	last := 0
	for last < len(old)-first && last < len(new)-first && old[len(old)-1-last] == new[len(new)-1-last] {
		last++
	}
	show := func(mark string, list []string) {
		for _, line := range list {
			// What cannot be written is noticed by whoever reads the terminal.
			_, _ = fmt.Fprintf(w, "%s%s\n", mark, term.Clean(line))
		}
	}
	from, to := max(0, first-contextLines), len(old)-last
	show("  ", old[from:first])
	show("- ", old[first:to])
	show("+ ", new[first:len(new)-last])
	show("  ", old[to:min(len(old), to+contextLines)])
}

// lines splits a text into lines, without their line ends.
func lines(text []byte) []string {
	var list []string
	for line := range strings.Lines(string(text)) {
		list = append(list, strings.TrimRight(line, "\r\n"))
	}
	return list
}
