package nodes

import (
	"context"
	"fmt"
	"strings"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// Agent is one of several agents whose sessions a mount shows.
type Agent struct {
	Name string // of its directory in sessions/
	View *View
	// Files are the files in that directory.
	Files storage.Files
}

// AgentsName is sessions/ of a mount of several agents, one directory each. all has their files.
func AgentsName(all storage.Files, agents ...Agent) Name {
	var names fixedNames[*Directory]
	for _, a := range agents {
		names = append(names, Name{a.Name, storage.KindDir, func(d *Directory) Node {
			return newSourceDir(d.below(a.Name).of(a.View), a.Files, a.View.Sessions)
		}, nil})
	}
	return Name{layout.Sessions, storage.KindDir, func(d *Directory) Node {
		return &RootDir{Directory: d.below(layout.Sessions), names: names, source: all}
	}, nil}
}

// viewFor returns the View for a new session of an agent; "" stands for the first possible one.
func (v *View) viewFor(agent string) (*View, error) {
	if len(v.Agents) == 0 && agent == "" {
		return v, v.Frozen
	}
	var can []string
	for _, a := range v.Agents {
		switch {
		case a.Name == agent && a.View.Frozen != nil:
			return nil, ErrForeign
		case a.Name == agent, agent == "" && a.View.Frozen == nil:
			return a.View, nil
		case a.View.Frozen == nil:
			can = append(can, a.Name)
		}
	}
	if agent == "" {
		return nil, ErrForeign
	}
	want := "none, as sessions/ has those of one agent alone"
	if len(v.Agents) > 0 {
		want = "one of: " + strings.Join(can, ", ")
	}
	return nil, &writer.FieldError{Field: "agent", Want: want, Got: fmt.Sprintf("%.80q", agent)}
}

// newSession makes a session for a line of new-session.
func (v *View) newSession(ctx context.Context, line string) (string, error) {
	spec, err := writer.ParseNewSession([]byte(line))
	if err != nil {
		return "", err
	}
	if v, err = v.viewFor(spec.Agent); err != nil {
		return "", err
	}
	file, err := v.Writer.NewSession(ctx, spec)
	if err != nil {
		return "", err
	}
	return v.Listing.PathOf(file), nil
}
