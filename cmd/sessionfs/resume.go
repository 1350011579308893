package main

import (
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
)

// resuming are the command lines, less the id, with which agents go on with a session, and the variable that names their
// directory.
var resuming = map[string]struct {
	command  []string
	variable string
}{
	"omp":    {[]string{"omp", "--resume"}, "PI_CODING_AGENT_DIR"},
	"xcsh":   {[]string{"xcsh", "--resume"}, "PI_CODING_AGENT_DIR"},
	"pi":     {[]string{"pi", "--session"}, "PI_CODING_AGENT_DIR"},
	"claude": {[]string{"claude", "--resume"}, "CLAUDE_CONFIG_DIR"},
	"codex":  {[]string{"codex", "resume"}, "CODEX_HOME"},
}

// agent returns whose a session is, by its path in the tree, and where that agent's sessions are, "" in a database.
func (p *picker) agent(session string) mountopts.AgentDir {
	if p.agents == nil {
		p.agents = p.src.Agents
		if len(p.agents) == 0 {
			name, dir := agentOf(p.src.Source)
			p.agents = []mountopts.AgentDir{{Name: name, Source: dir}}
		}
	}
	for _, a := range p.agents {
		if strings.HasPrefix(session, layout.Sessions+"/"+a.Name+"/") {
			return a
		}
	}
	return p.agents[0]
}

// agentOf returns whose sessions a SOURCE has, and the agent directory, "" for a database.
func agentOf(source string) (name, dir string) {
	dir = source
	switch {
	case mountopts.IsDatabase(dir):
		return "omp", ""
	case fs.AgentOf(dir) != "":
		return string(fs.AgentOf(dir)), dir
	case fs.IsPi(dir):
		return "pi", dir
	case strings.HasSuffix(dir, "/.xcsh/agent"):
		return "xcsh", dir
	}
	return "omp", dir
}

// goOn has the agent started with a session, in its working directory, in the place of this process.
func (p *picker) goOn(session string) error {
	h, err := p.header(session)
	if err != nil {
		return err
	}
	of := p.agent(session)
	name, dir := of.Name, of.Source
	agent := resuming[name]
	bin, err := exec.LookPath(agent.command[0])
	switch {
	case err != nil:
		return refuse(exitFailure, "pick: %s cannot be started: %s is not in PATH", name, agent.command[0])
	case h.Type != "session":
		return refuse(exitFailure, "pick: how the agent of %s is started is not known: its id is %s", session, h.ID)
	case !strings.HasPrefix(session, layout.Sessions+"/"):
		return refuse(exitFailure, "pick: %s is archived; its agent puts it back", h.ID)
	case !isDir(h.CWD):
		return refuse(exitFailure, "pick: the working directory of %s is not there any more: %s. Write another one to its cwd: "+
			"echo /DIR | sessionfs write %[1]s/cwd", h.ID, h.CWD)
	}
	if owner, err := iofs.ReadFile(p.src, path.Join(session, "owner")); err == nil && len(owner) > 0 {
		return refuse(exitFailure, "pick: a running agent has %s open: %s", h.ID, strings.TrimSpace(string(owner)))
	}
	env := os.Environ()
	usual := func(a mountopts.AgentDir) bool { return a.Name == name && isSame(a.Source, dir) }
	if dir != "" && !slices.ContainsFunc(agentDirs(os.Getenv), usual) {
		env = append(env, agent.variable+"="+dir)
	}
	p.then = func() error {
		if err := os.Chdir(h.CWD); err != nil {
			return err
		}
		// What is ignored is ignored by the agent too, and by all that it starts; what is caught is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		err := syscall.Exec(bin, append(slices.Clone(agent.command), h.ID), append(env, "PWD="+h.CWD))
		return fmt.Errorf("pick: starting %s: %w", bin, err)
	}
	return nil
}

// inMount returns where a path of the tree is in a mount of this user's, "" if it is in none.
func (p *picker) inMount(at string) string {
	if p.src.mountpoint != "" {
		return filepath.Join(p.src.mountpoint, at)
	}
	for _, m := range p.mounts {
		if m.Redact != p.src.Redact {
			continue
		}
		if m.Source == p.src.Source && m.Source != mountopts.All || m.Source == mountopts.All && p.src.Source == m.Source && !m.Demo && !p.src.Demo {
			return filepath.Join(m.mountpoint, at)
		}
		for _, a := range m.Agents {
			below, isSession := strings.CutPrefix(at, layout.Sessions+"/")
			if a.Source == p.src.Source && (isSession || at == ".") {
				return filepath.Join(m.mountpoint, layout.Sessions, a.Name, below)
			}
		}
	}
	return ""
}
