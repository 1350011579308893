package main

import (
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/source"
)

// native are the command lines that continue a session in the form in which sessions are shown. pi
// takes any next word as the value of --session.
var native = map[string][]string{"omp": {"omp", "--resume="}, "xcsh": {"xcsh", "--resume="}, "pi": {"pi", "--session"}}

// maxID is the longest id in characters.
const maxID = 128

var anyID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// resumeCommand returns the command line with which an agent goes on with the session that has an
// id, or ok false if there is none. A session file can name any id, which must not become an
// option, a path, or a title to search for: only ids that the agent makes, or lets its user choose,
// are used. To join the id is not enough: omp 14 parses the value of --resume= as a word of its
// own. A name that ends in .jsonl is a path for omp and pi.
func resumeCommand(agent, id string) (command []string, ok bool) {
	command, isID := native[agent], anyID.MatchString
	if a := agents.Find(agent); a != nil {
		command, isID = a.Resume, a.IsID
	}
	if command == nil || len(id) > maxID || !isID(id) || strings.HasSuffix(id, layout.SessionSuffix) {
		return nil, false
	}
	before, last := command[:len(command)-1], command[len(command)-1]
	if strings.HasSuffix(last, "=") {
		return append(slices.Clone(before), last+id), true
	}
	return append(slices.Clone(command), id), true
}

// agent returns the agent of a session, by its path in the tree, and the directory of that agent's
// sessions, "" in a database.
func (p *picker) agent(session string) mountopts.AgentDir {
	if p.agents == nil {
		p.agents = p.src.Agents
		if len(p.agents) == 0 {
			p.agents = []mountopts.AgentDir{source.AgentOf(p.src.Source)}
		}
	}
	for _, a := range p.agents {
		if strings.HasPrefix(session, layout.Sessions+"/"+a.Name+"/") {
			return a
		}
	}
	return p.agents[0]
}

// goOn has the agent started with a session, in its working directory, in the place of this
// process.
func (p *picker) goOn(session string) error {
	h, err := p.header(session)
	if err != nil {
		return err
	}
	of := p.agent(session)
	name, dir := of.Name, of.Source
	command, ok := resumeCommand(name, h.ID)
	switch {
	case h.Type != "session":
		return refuse(exitFailure, "pick: how the agent of %s is started is not known: its id is %s",
			names.Visible(session), names.Visible(h.ID))
	case !ok:
		return refuse(exitFailure, "pick: %s cannot be started with the id %q: it makes no such id; "+
			"read the session before you go on with it", name, h.ID)
	}
	bin, err := exec.LookPath(command[0])
	switch {
	case err != nil:
		return refuse(exitFailure, "pick: %s cannot be started: %s is not in PATH", name, command[0])
	case !strings.HasPrefix(session, layout.Sessions+"/"):
		return refuse(exitFailure, "pick: %s is archived; its agent puts it back", h.ID)
	case strings.ContainsFunc(h.CWD, names.IsControl):
		return refuse(exitFailure, "pick: the working directory of %s has a control character: %q", h.ID, h.CWD)
	case !path.IsAbs(h.CWD):
		return refuse(exitFailure, "pick: the working directory of %s is no absolute path: %q", h.ID, h.CWD)
	case !source.IsDir(h.CWD):
		return refuse(exitFailure, "pick: the working directory of %s is not there any more: %s. "+
			"Write another one to its cwd: "+
			"echo /DIR | sessionfs write %[1]s/cwd", h.ID, h.CWD)
	}
	if owner, err := iofs.ReadFile(p.src, path.Join(session, "owner")); err == nil && len(owner) > 0 {
		text := names.Visible(strings.TrimSpace(string(owner)))
		return refuse(exitFailure, "pick: a running agent has %s open: %s", h.ID, text)
	}
	env := os.Environ()
	usual := func(a mountopts.AgentDir) bool { return a.Name == name && source.IsSame(a.Source, dir) }
	if dir != "" && !slices.ContainsFunc(source.AgentDirs(os.Getenv), usual) {
		variable := "PI_CODING_AGENT_DIR=" + dir
		if a := agents.Find(name); a != nil {
			variable = a.Variable(dir)
		}
		env = append(env, variable)
	}
	p.then = func() error {
		if err := os.Chdir(h.CWD); err != nil {
			return err
		}
		// An ignored signal is ignored by the agent and its programs too; a caught one is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		err := syscall.Exec(bin, command, append(env, "PWD="+h.CWD))
		return fmt.Errorf("pick: starting %s: %w", bin, err)
	}
	return nil
}

// inMount returns where a path of the tree is in a mount of this user's, "" if it is in none.
func (p *picker) inMount(at string) string {
	if p.src.Mountpoint != "" {
		return filepath.Join(p.src.Mountpoint, at)
	}
	for _, m := range p.mounts {
		if m.Redact != p.src.Redact {
			continue
		}
		if m.Source == p.src.Source && m.Source != mountopts.All || m.Source == mountopts.All && p.src.Source == m.Source && !m.Demo && !p.src.Demo {
			return filepath.Join(m.Mountpoint, at)
		}
		for _, a := range m.Agents {
			below, isSession := strings.CutPrefix(at, layout.Sessions+"/")
			if a.Source == p.src.Source && (isSession || at == ".") {
				return filepath.Join(m.Mountpoint, layout.Sessions, a.Name, below)
			}
		}
	}
	return ""
}
