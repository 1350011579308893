package main

import (
	"context"
	"fmt"
	"io"
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

// native are the command lines of agents that write session files in the form of the mount. pi
// takes any next word as the value of --session.
var native = map[string][]string{"omp": {"omp", "--resume="}, "xcsh": {"xcsh", "--resume="}, "pi": {"pi", "--session"}}

// maxID is the longest id in characters.
const maxID = 128

var anyID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// resumeCommand returns an agent's command line to go on with the session that has an
// id; ok is false if there is none, or the id is not usable. A session file can name any id, which must not become an
// option, a path, or a title to search for: only ids that the agent makes, or lets its user choose,
// are used. To join the id is not enough: omp 14 parses the value of --resume= as a word of its
// own. A name that ends in .jsonl is a path for omp and pi.
func resumeCommand(agent, id string) (command []string, ok bool) {
	command = resumeProgram(agent)
	if command == nil || !isUsableID(agent, id) {
		return nil, false
	}
	command = slices.Clone(command)
	last := len(command) - 1
	if strings.HasSuffix(command[last], "=") {
		command[last] += id
		return command, true
	}
	return append(command, id), true
}

// isUsableID reports whether an id may become an argument of an agent's command.
func isUsableID(agent, id string) bool {
	isPath := strings.HasSuffix(id, layout.SessionSuffix)
	if isPath || len(id) > maxID {
		return false
	}
	known := agents.Find(agent)
	if known != nil {
		return known.IsID(id)
	}
	return anyID.MatchString(id)
}

// resumeProgram returns an agent's command line to go on with a session, without the id; nil for an unknown agent.
// Callers must not modify it.
func resumeProgram(agent string) []string {
	a := agents.Find(agent)
	if a != nil {
		return a.Resume
	}
	return native[agent]
}

// agent returns the agent of a session, by its path in the tree, with the directory of that agent's
// sessions, "" in a database. The first call fills p.agents.
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

// resumption is a command line that goes on with a session.
type resumption struct {
	agent   string
	id      string
	cwd     string   // the working directory of the session
	command []string // program and arguments
	program string   // the path of the program, set by startable
	home    string   // an assignment of the environment for an unusual agent directory, or ""
	// isUnmade says that the session of the command line does not exist yet, and id is its original.
	isUnmade bool
}

// String returns the command line for a shell.
func (r *resumption) String() string {
	words := []string{"cd", quoteWord(r.cwd), "&&"}
	if r.home != "" {
		variable, dir, _ := strings.Cut(r.home, "=")
		words = append(words, variable+"="+quoteWord(dir))
	}
	for _, word := range r.command {
		words = append(words, quoteWord(word))
	}
	return strings.Join(words, " ")
}

// plainWord matches words that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./=:@%+,-]+$`)

// quoteWord returns a word for a shell.
func quoteWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return quoted(word)
}

// resumption returns the command line that goes on with a session. Neither its program nor its working directory
// need exist.
func (p *picker) resumption(ctx context.Context, session string) (*resumption, error) {
	h, err := p.header(ctx, session)
	if err != nil {
		return nil, err
	}
	if h.Type != "session" { // the file begins with no header
		return nil, refuse(exitFailure, "%s: how the agent of %s is started is not known: its id is %s",
			p.console.name, names.Visible(session), names.Visible(h.ID))
	}
	return p.resumptionBy(p.agent(session), h.ID, h.CWD)
}

// resumptionBy returns an agent's command line for the session of an id, in the working directory cwd. It refuses an
// id that the agent does not make.
func (p *picker) resumptionBy(of mountopts.AgentDir, id, cwd string) (*resumption, error) {
	command, ok := resumeCommand(of.Name, id)
	if !ok {
		return nil, refuse(exitFailure, "%s: %s cannot be started with the id %q: it makes no such id; "+
			"read the session before you go on with it", p.console.name, of.Name, id)
	}
	r := &resumption{
		agent:   of.Name,
		id:      id,
		cwd:     cwd,
		command: command,
	}
	isOwn := func(a mountopts.AgentDir) bool {
		return a.Name == of.Name && source.IsSame(a.Source, of.Source)
	}
	isUsual := of.Source == "" || slices.ContainsFunc(source.AgentDirs(os.Getenv), isOwn)
	if isUsual {
		return r, nil
	}
	known := agents.Find(of.Name)
	if known != nil {
		r.home = known.Variable(of.Source)
	} else {
		r.home = "PI_CODING_AGENT_DIR=" + of.Source
	}
	return r, nil
}

// checkCWD refuses to start an agent in a working directory that is not there.
func (p *picker) checkCWD(r *resumption) error {
	switch {
	case strings.ContainsFunc(r.cwd, names.IsControl):
		return refuse(exitFailure, "%s: the working directory of %s has a control character: %q", p.console.name, r.id, r.cwd)
	case !path.IsAbs(r.cwd):
		return refuse(exitFailure, "%s: the working directory of %s is no absolute path: %q", p.console.name, r.id, r.cwd)
	case !source.IsDir(r.cwd):
		return refuse(exitFailure, "%s: the working directory of %s is not there any more: %s. Write another one to its cwd: "+
			"echo /DIR | sessionfs write %[2]s/cwd", p.console.name, r.id, r.cwd)
	}
	return nil
}

// startable returns the command line of a session, with the path of its program. It is an error if the agent
// cannot be started here.
func (p *picker) startable(ctx context.Context, session string) (*resumption, error) {
	r, err := p.resumption(ctx, session)
	if err != nil {
		return nil, err
	}
	err = p.findProgram(r)
	if err != nil {
		return nil, err
	}
	isArchived := !strings.HasPrefix(session, layout.Sessions+"/")
	if isArchived {
		return nil, refuse(exitFailure, "%s: %s is archived; its agent puts it back", p.console.name, r.id)
	}
	return r, p.checkCWD(r)
}

// findProgram sets the path of a command line's program. It is an error if the program is not in PATH.
func (p *picker) findProgram(r *resumption) error {
	program, err := exec.LookPath(r.command[0])
	if err != nil {
		return refuse(exitFailure, "%s: %s cannot be started: %s is not in PATH", p.console.name, r.agent, r.command[0])
	}
	r.program = program
	return nil
}

// next returns the command line of a session. It is an error if a running agent has the session open. It warns of an
// agent that will delete the session.
func (p *picker) next(ctx context.Context, session string) (*resumption, error) {
	r, err := p.startable(ctx, session)
	if err != nil {
		return nil, err
	}
	owner, err := iofs.ReadFile(p.src, path.Join(session, "owner"))
	if err == nil && len(owner) > 0 {
		text := names.Visible(strings.TrimSpace(string(owner)))
		return nil, refuse(exitFailure, "%s: a running agent has %s open: %s", p.console.name, r.id, text)
	}
	p.warnOfLoss(session)
	return r, nil
}

// mayStart returns an error unless the agent may be started in the directory that the session names.
// An agent obeys files there; where others can change them, the user is asked, at a terminal.
func (p *picker) mayStart(ctx context.Context, r *resumption) error {
	why := source.CheckOwn(r.cwd)
	if why == nil {
		return nil
	}
	agent := r.command[0]
	hint := ""
	if !r.isUnmade {
		hint = ". If you trust them, type: " + names.VisibleLine(r.String())
	}
	return p.ask(ctx, &question{
		said:     fmt.Sprintf("%s, and %s obeys files in %s", names.Visible(why.Error()), agent, names.Visible(r.cwd)),
		question: fmt.Sprintf("Start %s there?", agent),
		unasked:  "it is not started there" + hint,
		refused:  agent + " is not started",
	})
}

// question is a danger that the user is asked about.
type question struct {
	said     string // the danger
	question string
	unasked  string // the end of the refusal without a terminal
	refused  string // the refusal after another answer than yes
}

// ask returns an error unless the user says yes. Nobody is asked without a terminal.
func (p *picker) ask(ctx context.Context, q *question) error {
	in, _ := p.console.in.(io.Writer) // a terminal is a file, which can be written too
	canAsk := isTerminal(in) && isTerminal(p.console.err)
	if !canAsk {
		return refuse(exitFailure, "%s: %s; without a terminal to ask, %s", p.console.name, q.said, q.unasked)
	}
	fmt.Fprintf(p.console.err, "sessionfs: %s.\n%s [y/N] ", q.said, q.question)
	answer, err := readAnswer(ctx, p.console.in)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refuse(exitFailure, "%s: %s", p.console.name, q.refused)
}

// maxAnswer bounds an answer in bytes.
const maxAnswer = 1024

// readAnswer reads a line, and nothing behind it, which is for the agent. The end of the input ends the line. When
// ctx is done, a read may go on, and takes the next line.
func readAnswer(ctx context.Context, in io.Reader) (string, error) {
	read := make(chan string, 1)
	go func() {
		var line []byte
		b := make([]byte, 1)
		for len(line) < maxAnswer {
			n, err := in.Read(b)
			line = append(line, b[:n]...)
			isEnd := n > 0 && b[0] == '\n'
			if err != nil || isEnd {
				break
			}
		}
		read <- string(line)
	}()
	select {
	case line := <-read:
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// exec replaces this process, a command of a name, by the agent, and does not return unless that fails. For nil it
// does nothing.
func (r *resumption) exec(name string) error {
	if r == nil {
		return nil
	}
	err := os.Chdir(r.cwd)
	if err != nil {
		return err
	}
	env := os.Environ()
	if r.home != "" {
		env = append(env, r.home)
	}
	// An ignored signal is ignored by the agent and its programs too; a caught one is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	env = append(env, "PWD="+r.cwd) // Chdir does not set it
	err = syscall.Exec(r.program, r.command, env)
	return fmt.Errorf("%s: starting %s: %w", name, r.program, err)
}

// inMount returns where a path of the tree is in a mount of this user's, "" if it is in none. A mount shows it if it
// has the same SOURCE, or the directory among the ones of several agents.
func (p *picker) inMount(name string) string {
	if p.src.Mountpoint != "" {
		return filepath.Join(p.src.Mountpoint, name)
	}
	below, isInSessions := strings.CutPrefix(name, layout.Sessions+"/")
	for _, m := range p.mounts {
		if m.Redact != p.src.Redact {
			continue
		}
		hasSamples := m.Demo || p.src.Demo // which lie in another directory each time
		isSample := m.Source == mountopts.All && hasSamples
		if m.Source == p.src.Source && !isSample {
			return filepath.Join(m.Mountpoint, name)
		}
		isShared := isInSessions || name == "." // other paths are not ones of an agent
		if !isShared {
			continue
		}
		for _, agent := range m.Agents {
			if agent.Source == p.src.Source {
				return filepath.Join(m.Mountpoint, layout.Sessions, agent.Name, below)
			}
		}
	}
	return ""
}
