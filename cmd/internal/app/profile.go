package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"unwire/captures/profile"
	"unwire/cmd/internal/project"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/transcript"
	"unwire/proto"
	"unwire/schema"
)

// AutoProfile is the value of --profile that selects a profile by the traffic. NoDefinitions ("none")
// selects no profile.
const AutoProfile = "auto"

// Profiles returns the valid values of --profile.
func Profiles() []string { return []string{AutoProfile, NoDefinitions, proto.Profile().Name} }

// Configure applies the value of --profile ("" if it is not set) and, if withProject is true, the
// unwire.yaml that applies in the working folder. It prints a notice when an unwire.yaml is used for the
// first time.
func (a *App) Configure(profile string, withProject bool) error {
	if profile != "" {
		if err := OneOf("--profile", profile, Profiles()...); err != nil {
			return err
		}
	}
	a.profile = profile
	if !withProject {
		return nil
	}
	path, err := a.ProjectFile()
	if path == "" || err != nil {
		return err
	}
	if a.project, err = ReadProject(path); err != nil {
		return err
	}
	if state, err := ConfigDir(); err == nil {
		project.Announce(a.project, state, func(text string) { a.Say("unwire: %s", term.Clean(text)) })
	}
	if a.profile == "" {
		a.profile = a.project.Profile
	}
	return nil
}

// ProjectFile returns the path of the unwire.yaml that applies in the working folder; "" if there is
// none. A file that belongs to another user is ignored with a warning.
func (a *App) ProjectFile() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", nil // the folder is gone, and with it the file
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	path, foreign, err := project.Find(dir, home)
	if foreign != "" {
		a.Say("unwire: warning: ignoring %s, which belongs to another user", term.Clean(foreign))
	}
	return path, projectError(err)
}

// ReadProject reads and checks an unwire.yaml.
func ReadProject(path string) (*project.File, error) {
	f, err := project.Read(path, Profiles())
	return f, projectError(err)
}

// projectError adds a hint to an error about an unwire.yaml; nil stays nil.
func projectError(err error) error {
	if err == nil {
		return nil
	}
	return Fail(ExitInput, err, "'unwire config schema' prints the allowed content of the file")
}

// Profile returns the profile: the rules about headers, endpoints and secrets of an API. A profile
// applies to the traffic that it recognises; one that the user named applies to all traffic. Its rules
// for secrets are always those of all profiles and of unwire.yaml together: a recorder cannot foresee
// its traffic, and choosing a profile must not disable any redaction.
func (a *App) Profile() *profile.Profile {
	p := proto.Profile()
	switch a.profile {
	case NoDefinitions:
		p = &profile.Profile{Secrets: p.Secrets}
	case p.Name:
		p = p.ForAnyPackage()
	}
	if a.project != nil {
		p.Secrets = joinSecrets(p.Secrets, a.project.Secrets)
	}
	return p
}

// joinSecrets returns the union of two sets of rules for secrets.
func joinSecrets(a, b profile.Secrets) profile.Secrets {
	return profile.Secrets{
		Headers: slices.Concat(a.Headers, b.Headers), Names: slices.Concat(a.Names, b.Names),
		Keys: slices.Concat(a.Keys, b.Keys), Fields: slices.Concat(a.Fields, b.Fields),
	}
}

// NamesProfile reports whether the user chose the built-in profile by name, instead of having it selected
// by the traffic.
func (a *App) NamesProfile() bool { return a.profile == proto.Profile().Name }

// Weights returns the path of the weights file for 'unwire chat': the value of its flag, or else the path
// in unwire.yaml; "" for the built-in weights.
func (a *App) Weights(flag string) string {
	if flag != "" || a.project == nil {
		return flag
	}
	return a.project.Weights
}

// LoadWeights reads a weights file of 'unwire chat'; "" returns the built-in weights.
func (a *App) LoadWeights(name string) (*transcript.Weights, error) {
	if name == "" {
		return transcript.DefaultWeights(), nil
	}
	data, err := a.ReadInput(name)
	if err != nil {
		return nil, err
	}
	w, err := transcript.ParseWeights(data)
	if err != nil {
		return nil, Fail(ExitInput, fmt.Errorf("%s: %w", InputName(name), err), "'unwire chat weights --json' prints a valid weights file")
	}
	return w, nil
}

// CompileDefinitions compiles .proto files that a client of the MCP server sent. texts maps their paths
// to their contents. The well-known services are added for types that the files do not define.
func CompileDefinitions(ctx context.Context, texts map[string]string) (*schema.Schema, error) {
	s, err := schema.FromStored(ctx, texts, nil)
	if err != nil {
		return nil, Fail(ExitUsage, err, "correct the .proto text; imports must be among the given files or below google/protobuf/")
	}
	return withWellKnown(s), nil
}

// LookDefinitions loads the definitions for a command that prints or searches definitions: those that
// LoadDefinitions finds, or else the built-in ones (builtIn is then true), even if no capture has traffic
// to which they apply.
func (a *App) LookDefinitions(ctx context.Context, name string, captures ...string) (s *schema.Schema, builtIn bool, err error) {
	captures = slices.DeleteFunc(slices.Clone(captures), func(c string) bool { return !query.IsCapture(query.ParseAddress(c).File) })
	s, err = a.Remembered(ctx, name, captures...)
	switch {
	case s != nil || err != nil:
		return s, false, err
	case name == NoDefinitions:
		return nil, false, Fail(ExitUsage, errors.New("--proto none cannot be used: this command needs definitions"), "")
	}
	s, err = a.BuiltIn(ctx)
	return s, err == nil, err
}
