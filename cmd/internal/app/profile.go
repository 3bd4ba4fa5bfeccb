package app

import (
	"unwire/captures/profile"
	"unwire/proto"
)

// AutoProfile is the value of --profile that chooses by the traffic. NoDefinitions chooses
// no profile.
const AutoProfile = "auto"

// SetProfile sets what --profile chooses.
func (a *App) SetProfile(name string) error {
	if err := OneOf("--profile", name, AutoProfile, NoDefinitions, proto.Profile().Name); err != nil {
		return err
	}
	a.profile = name
	return nil
}

// Profile is what is known of services beyond their messages. It says itself to which traffic
// it applies; if a user named it, to all. Its secrets are always those of every profile, since
// a recorder does not know the traffic that will come, and a choice of the user must not
// uncover any.
func (a *App) Profile() *profile.Profile {
	p := proto.Profile()
	switch a.profile {
	case NoDefinitions:
		return &profile.Profile{Secrets: p.Secrets}
	case p.Name:
		return p.Everywhere()
	}
	return p
}

// NamesProfile reports whether the user named a profile, rather than have it chosen.
func (a *App) NamesProfile() bool { return a.profile == proto.Profile().Name }
