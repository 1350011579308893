package main

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/source"
)

// forkOptions are the options of fork.
type forkOptions struct {
	session string // with #ENTRY, or without
	title   string
}

// forkCommand is sessionfs fork.
func forkCommand() *cobra.Command {
	var o forkOptions
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "fork [--name NAME] [-s SOURCE] SESSION[#ENTRY]",
		Short: "Make a new session up to an entry, and print the command that goes on with it",
		Long: "Make a new session of the same agent with the conversation up to an entry: any one, also of a lost or " +
			"rewound branch, or before a compaction. Without #ENTRY it ends where the session stands. The command that " +
			"goes on with the new session is printed. No existing file is changed. " + sessionArgument,
		Example: "  sessionfs fork 019d3d9#6ab2fbe0",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.session = args[0]
		return runFork(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().StringVar(&o.title, "name", "", "the new session's `NAME`, where the agent keeps it in the file")
	return cmd
}

// runFork makes a fork of a session, and prints the command line that goes on with it. The sample store of this
// command alone is refused: it ends with the command.
func runFork(ctx context.Context, o forkOptions, src *sourceTree, c *console) error {
	if src.Demo && src.Mountpoint == "" {
		return refuse(exitUsage, "fork: the sample store of --demo is gone when the command ends; mount it, and write to fork")
	}
	at, err := src.Named(o.session)
	if err != nil {
		return err
	}
	p := &picker{console: c, src: src}
	forked, err := p.fork(ctx, at, o.title)
	if err != nil {
		return err
	}
	r, err := p.resumption(ctx, forked)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, names.VisibleLine(r.String()))
	p.warnOfLoss(forked)
	return err
}

// warnOfLoss says on stderr that the agent will delete a session once it was resumed, where it does.
func (p *picker) warnOfLoss(session string) {
	agent := agents.Find(p.agent(session).Name)
	if agent == nil || !agent.DeletesResumed {
		return
	}
	fmt.Fprintf(p.console.err, "sessionfs: warning: %s deletes a session that was resumed, at its next start; "+
		"'sessionfs keep' before then keeps a copy\n", agent.Title)
}

// forkGarbage is how much garbage there may be for 100 bytes in use while a session is forked: it and its fork are converted,
// one after the other.
const forkGarbage = 120

// fork makes a session with a title, "" for none, that ends at an entry of another one, the leaf if none is named.
// It returns the path of the new session in the tree.
func (p *picker) fork(ctx context.Context, at source.NamedSession, title string) (string, error) {
	p.src.LimitGarbage(forkGarbage)
	err := p.mayImport(ctx, at) // before a session is made in vain
	if err != nil {
		return "", err
	}
	id, err := p.entryID(ctx, at)
	if err != nil {
		return "", err
	}
	line := labelField(id) + "\t" + labelField(title) + "\n"
	var answer bytes.Buffer
	err = p.src.WriteLines(ctx, path.Join(at.Dir, "fork"), strings.NewReader(line), &answer)
	if err != nil {
		return "", err
	}
	return p.src.Resolve(strings.TrimSpace(answer.String()))
}

// mayImport returns an error if a program of the agent must take the fork, and may not be started in the directory
// of the session.
func (p *picker) mayImport(ctx context.Context, at source.NamedSession) error {
	if !agents.ByCommand(p.agent(at.Dir).Name) {
		return nil
	}
	r, err := p.startable(ctx, at.Dir)
	if err != nil {
		return err
	}
	return p.mayStart(ctx, r)
}

// entryID returns the id of an entry, or of the leaf if none is named.
func (p *picker) entryID(ctx context.Context, at source.NamedSession) (string, error) {
	snap, end, err := p.endOf(ctx, at)
	if err != nil {
		return "", err
	}
	defer snap.Release()
	id, ok := snap.ID(end)
	if !ok {
		return "", refuse(exitFailure, "%s: %s has no entry yet", p.console.name, names.Visible(at.Dir))
	}
	return id, nil
}

// endOf returns a session and an entry of it, the leaf if none is named. Callers must release the session.
func (p *picker) endOf(ctx context.Context, at source.NamedSession) (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := p.src.Snapshot(ctx, at.Dir)
	if err != nil {
		return nil, sessioncore.NoEntry, err
	}
	end, err := source.EndOf(snap, at.Entry)
	if err != nil {
		snap.Release()
		return nil, sessioncore.NoEntry, err
	}
	return snap, end, nil
}

// labelField returns a text as a field of a line, with the escapes of the file labels.
func labelField(text string) string { return string(names.TitleLine(text)) }

// resumeOptions are the options of resume.
type resumeOptions struct {
	session string // with #ENTRY, or without
	in      string // another agent, "" for the session's own
}

// resumeSessionCommand is sessionfs resume.
func resumeSessionCommand() *cobra.Command {
	var o resumeOptions
	var next *resumption
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "resume [--in AGENT] [-s SOURCE] SESSION[#ENTRY]",
		Short: "Go on with a session in its agent, from any entry",
		Long: "Start the session's agent with it, in its working directory. With #ENTRY the agent goes on from that " +
			"entry: where the session stands elsewhere, a new session up to the entry is made first, as sessionfs fork " +
			"does. With --in another agent (" + agents.OneOf(fs.Receivers()) + ") goes on with it: a new session of " +
			"that agent is made, with what was said, all calls and their results, and the images. " + sessionArgument,
		Example: "  sessionfs resume 019d3d9#6ab2fbe0\n  sessionfs resume --in " + fs.Receivers()[0] + " 019d3d9",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) (err error) {
		o.session = args[0]
		next, err = runResume(cmd.Context(), o, src, consoleOf(cmd))
		return err
	})
	cmd.Flags().StringVar(&o.in, "in", "", "the `AGENT` that goes on with it in a new session: "+agents.OneOf(fs.Receivers()))
	cmd.PostRunE = func(cmd *cobra.Command, _ []string) error { // SOURCE is closed
		return next.exec(cmd.Name())
	}
	return cmd
}

// runResume returns the command line of the agent that is to go on with a session.
func runResume(ctx context.Context, o resumeOptions, src *sourceTree, c *console) (*resumption, error) {
	at, err := src.Named(o.session)
	if err != nil {
		return nil, err
	}
	p := &picker{console: c, src: src}
	own := p.agent(at.Dir)
	if o.in == "" || o.in == own.Name {
		return p.goOnFrom(ctx, at)
	}
	return p.goOnIn(ctx, o.in, at)
}

// goOnFrom returns the command line of the agent that goes on with a session, in its working directory: from an entry,
// if one is named. If the session stands elsewhere, that is the end of a fork.
func (p *picker) goOnFrom(ctx context.Context, at source.NamedSession) (*resumption, error) {
	r, err := p.startable(ctx, at.Dir)
	if err != nil {
		return nil, err
	}
	err = p.mayStart(ctx, r)
	if err != nil { // before a session is made in vain
		return nil, err
	}
	stands, err := p.standsAt(ctx, at)
	if err != nil {
		return nil, err
	}
	if stands {
		return p.next(ctx, at.Dir)
	}
	forked, err := p.fork(ctx, at, "")
	if err != nil {
		return nil, err
	}
	return p.next(ctx, forked)
}

// standsAt reports whether a session stands at the named entry. It does where none is named.
func (p *picker) standsAt(ctx context.Context, at source.NamedSession) (bool, error) {
	if at.Entry == "" {
		return true, nil
	}
	wanted, err := p.entryID(ctx, at)
	if err != nil {
		return false, err
	}
	leaf, err := p.entryID(ctx, source.NamedSession{Dir: at.Dir})
	return wanted == leaf, err
}
