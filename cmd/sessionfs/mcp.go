package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mcp"
	"sessionfs/sessioncore/names"
	"sessionfs/source"
)

// mcpOptions are the options of mcp.
type mcpOptions struct {
	install    bool
	uninstall  bool
	everywhere bool // the sessions of all directories
	unmasked   bool
}

// mcpCommand is sessionfs mcp.
func mcpCommand() *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use:   "mcp [--everywhere] [--no-redact] [--install | --uninstall]",
		Short: "Let an agent search its own past by the Model Context Protocol",
		Long: "Serve the tools search, show, touched, blame, log and stats over stdin and stdout, as the client of an " +
			"agent asks for them. They write nothing. Their sessions are those of all agents in the working directory " +
			"or below it, with secrets masked. Paths are of files there, an answer has 60 KB at most, and each says that " +
			"found text is no instruction.\n\n" +
			"--install adds this program by each agent's own command, for all its projects, or says how to.",
		Example: "  sessionfs mcp --install",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runMCP(cmd.Context(), o, consoleOf(cmd))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.everywhere, "everywhere", false, "the sessions of all directories")
	flags.BoolVar(&o.unmasked, "no-redact", false, "mask no secrets")
	flags.BoolVar(&o.install, "install", false, "add it to the agents that are there, with these options")
	flags.BoolVar(&o.uninstall, "uninstall", false, "remove it from them")
	exclusive(cmd, "install", "uninstall")
	return cmd
}

// runMCP serves the tools, or adds this program to the agents as a server, or removes it there.
func runMCP(ctx context.Context, o mcpOptions, c *console) error {
	switch {
	case o.install:
		return installServer(ctx, o, c)
	case o.uninstall:
		return uninstallServer(ctx, c)
	}
	door, err := newAgentDoor(o, c.err)
	if err != nil {
		return err
	}
	return door.server().Serve(ctx, c.in, c.out)
}

// agentDoor answers the calls of an agent. Each call opens the sessions as a command does, so that it has
// them as they are then, and nothing is held between calls.
type agentDoor struct {
	dir      string   // the working directory, without links
	named    string   // the working directory as a shell names it, and agents do
	within   []string // the names of the directory with the shown sessions; none for all sessions
	unmasked bool
	stderr   io.Writer
}

// newAgentDoor returns the door for the working directory. It refuses /, unless all sessions are asked for.
func newAgentDoor(o mcpOptions, stderr io.Writer) (*agentDoor, error) {
	dir, err := unix.Getwd() // without links
	if err != nil {
		return nil, err
	}
	if dir == "/" && !o.everywhere {
		return nil, refuse(exitUsage, "mcp: the working directory is /, and all sessions are below it: "+
			"start it in the directory of a project, or with --everywhere")
	}
	named, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	d := &agentDoor{
		dir:      dir,
		named:    named,
		unmasked: o.unmasked,
		stderr:   stderr,
	}
	if !o.everywhere {
		d.within = []string{dir, named}
	}
	return d, nil
}

// server returns the server with the tools.
func (d *agentDoor) server() *mcp.ToolServer {
	where := "in this directory"
	if len(d.within) == 0 {
		where = "on this machine"
	}
	return &mcp.ToolServer{
		Name:    "sessionfs",
		Version: release,
		Instructions: "These tools search the past conversations of this user with any coding agent " + where +
			". Use them when the user speaks of earlier work, and before you solve what may have been solved before. " +
			"Search for two or three words, show the best hit, and say which session and date an answer comes from. " +
			mcp.Notice,
		Tools: d.tools(),
	}
}

// run returns the function of a tool: do on opened sessions, with its errors in the words of commands.
func (d *agentDoor) run(do func(c *agentCall) error) func(context.Context, mcp.CallArguments, *mcp.AnswerText) error {
	return func(ctx context.Context, a mcp.CallArguments, answer *mcp.AnswerText) error {
		err := d.onSessions(ctx, a, answer, do)
		if err == nil || ctx.Err() != nil {
			return err
		}
		return answerError{err}
	}
}

// onSessions opens the sessions of all agents for a call, read-only, and calls do, which writes to the answer.
func (d *agentDoor) onSessions(ctx context.Context, a mcp.CallArguments, answer *mcp.AnswerText, do func(c *agentCall) error) error {
	at, err := source.Find(source.Request{Name: "all"})
	if err != nil {
		return err
	}
	options := []string{"redact"}
	if d.unmasked {
		options = []string{"ro"}
	}
	const debug = false
	opened, err := at.OpenTree(ctx, source.Words, options, debug, d.stderr)
	if err != nil {
		return err
	}
	defer opened.Close()
	c := &agentCall{
		ctx:           ctx,
		CallArguments: a,
		answer:        answer,
		door:          d,
		src:           &sourceTree{MountTree: opened, within: d.within},
		out:           bufio.NewWriter(answer),
	}
	err = do(c)
	if err != nil {
		return err
	}
	return c.out.Flush()
}

// answerError words an error for an agent as commands word theirs.
type answerError struct{ error }

// Error implements error.
func (e answerError) Error() string { return reasonOf(e.error) }

// Unwrap returns the error that is worded.
func (e answerError) Unwrap() error { return e.error }

// pathBelow returns the path that an argument names, relative to the working directory or absolute, and the path
// where it leads through links. Both must be below the working directory. The file need not exist.
func (d *agentDoor) pathBelow(text string) (named, resolved string, err error) {
	named = filepath.Clean(text)
	if !filepath.IsAbs(named) {
		named = filepath.Join(d.dir, named)
	}
	if fs.IsBelow(named, d.named) { // the agent has it by a link to the working directory
		named = filepath.Join(d.dir, strings.TrimPrefix(named, d.named))
	}
	if !fs.IsBelow(named, d.dir) {
		return "", "", fmt.Errorf("%s is not below %s, the directory of this server", names.Visible(text), d.dir)
	}
	resolved, err = resolveExisting(named)
	if err != nil {
		return "", "", fmt.Errorf("%s: it cannot be told where it leads: %w", names.Visible(text), err)
	}
	if !fs.IsBelow(resolved, d.dir) {
		return "", "", fmt.Errorf("%s leads by a link to what is not below %s, the directory of this server",
			names.Visible(text), d.dir)
	}
	return named, resolved, nil
}

// resolveExisting returns a path without links. Its end need not exist, but a link must not lead nowhere.
func resolveExisting(name string) (string, error) {
	existing := name // the part that is resolved
	for {
		resolved, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return filepath.Join(resolved, strings.TrimPrefix(name, existing)), nil
		}
		_, notThere := os.Lstat(existing)
		if notThere == nil { // a link that leads nowhere, or out of sight
			return "", err
		}
		isMissing := errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		above := filepath.Dir(existing)
		isRoot := above == existing
		if !isMissing || isRoot {
			return "", err
		}
		existing = above
	}
}
