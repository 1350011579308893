package transfer

import (
	"context"
	"errors"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// Foreign is a session of another agent for a bundle.
type Foreign struct {
	Agent  *agents.Agent
	Files  storage.Files // of agents.Store, unmasked
	Format agents.Format
	Name   string // in Files
	Path   string // absolute, for people
	// Writer writes the session that is made of it, and Rules find the secrets that are masked in that.
	Writer    *writer.Writer
	Rules     *secrets.Rules
	Temporary string // the directory for sessions that are made
}

// AddForeign adds the masked session of omp that an import would make of another agent's, with the sessions of
// its subagents. The agent's own file has texts in texts, in which rules would miss secrets.
func (b *Bundler) AddForeign(ctx context.Context, of Foreign) error {
	if b.written[of.Path] {
		return nil
	}
	b.wrote(of.Path)
	at, err := b.made(ctx, of, of.Name, "")
	if err != nil {
		return err
	}
	beside := strings.TrimSuffix(of.Name, sessioncore.FileEnding)
	besideBundled := strings.TrimSuffix(at, sessioncore.FileEnding)
	return eachArtifact(of.Files, beside, "", func(name, rel string) error {
		to := path.Join(besideBundled, rel)
		if !of.Format.IsSession(name) {
			return b.other(ctx, to, nil) // it cannot be masked
		}
		_, err := b.made(ctx, of, name, to)
		if errors.Is(err, errEmpty) {
			err = nil
		}
		return err
	})
}

// made adds the session that is made of a file, and returns its path in the bundle: at or, if that is "",
// the one of a new session. The error is errEmpty for a session without a conversation.
func (b *Bundler) made(ctx context.Context, of Foreign, name, at string) (bundled string, err error) {
	im := &Importer{
		Writer: of.Writer,
		Rules:  of.Rules,
		Masked: map[string]int{},
	}
	found := FoundFile{
		files:  of.Files,
		name:   name,
		source: of.Agent.Name,
		how:    of.Format,
		path:   of.Path,
		from:   &Sources{temporary: of.Temporary},
	}
	c, err := im.made(ctx, found, name)
	if err != nil {
		return "", err
	}
	bundled = at
	if at == "" {
		bundled = path.Join(sessions, c.base)
	}
	err = errors.Join(checkName(bundled), im.mask(ctx, c, bundled))
	if err != nil {
		return "", errors.Join(err, c.Close())
	}
	return bundled, b.session(ctx, bundled, c)
}
