package app

import (
	"os"
	"slices"

	"unwire/captures/profile"
	"unwire/cmd/internal/project"
	"unwire/cmd/internal/term"
	"unwire/proto"
)

// AutoProfile is the value of --profile that chooses by the traffic. NoDefinitions chooses
// no profile.
const AutoProfile = "auto"

// Profiles are the values of --profile.
func Profiles() []string { return []string{AutoProfile, NoDefinitions, proto.Profile().Name} }

// Configure takes what --profile chooses, "" if it is not given, and unless the command does
// without, what the unwire.yaml of the working folder says. The first use of a file is
// announced.
//
// Errors: a file that cannot be used.
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

// ProjectFile is the path of the unwire.yaml that applies in the working folder; "" if there
// is none. That of another user is reported and does not apply.
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
		a.Say("unwire: warning: %s is not used: it belongs to another user", term.Clean(foreign))
	}
	return path, projectError(err)
}

// ReadProject reads an unwire.yaml.
func ReadProject(path string) (*project.File, error) {
	f, err := project.Read(path, Profiles())
	return f, projectError(err)
}

func projectError(err error) error {
	if err == nil {
		return nil
	}
	return Fail(ExitInput, err, "'unwire config schema' prints what the file may have")
}

// Profile is what is known of services beyond their messages. It says itself to which traffic
// it applies; if a user named it, to all. Its secrets are always those of every profile and of
// unwire.yaml, since a recorder does not know the traffic that will come, and a choice of the
// user must not uncover any.
func (a *App) Profile() *profile.Profile {
	p := proto.Profile()
	switch a.profile {
	case NoDefinitions:
		p = &profile.Profile{Secrets: p.Secrets}
	case p.Name:
		p = p.Everywhere()
	}
	if a.project != nil {
		p.Secrets = joinSecrets(p.Secrets, a.project.Secrets)
	}
	return p
}

// joinSecrets are the rules of two.
func joinSecrets(a, b profile.Secrets) profile.Secrets {
	return profile.Secrets{
		Headers: slices.Concat(a.Headers, b.Headers), Names: slices.Concat(a.Names, b.Names),
		Keys: slices.Concat(a.Keys, b.Keys), Fields: slices.Concat(a.Fields, b.Fields),
	}
}

// NamesProfile reports whether the user named a profile, rather than have it chosen.
func (a *App) NamesProfile() bool { return a.profile == proto.Profile().Name }

// Weights are the path of the weights of 'unwire chat': what its flag names, or else those of
// unwire.yaml; "" for none.
func (a *App) Weights(flag string) string {
	if flag != "" || a.project == nil {
		return flag
	}
	return a.project.Weights
}
