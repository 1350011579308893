package main

import (
	"bytes"
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

// forkCommand is sessionfs fork.
func forkCommand() *cobra.Command {
	var title string
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "fork [--name NAME] [-s SOURCE] SESSION[#ENTRY]",
		Short: "Make a new session up to an entry, and print the command that goes on with it",
		Long: "Make a new session of the same agent with the conversation up to an entry: any one, also of a lost or " +
			"rewound branch, or before a compaction. Without #ENTRY it ends where the session stands. The command that " +
			"goes on with the new session is printed. No existing file is changed. " + sessionArgument,
		Example: "  sessionfs fork 019d3d9#6ab2fbe0",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *tree, args []string) error {
		if src.Demo && src.Mountpoint == "" {
			return refuse(exitUsage, "fork: the sample store of --demo is gone when the command ends; mount it, and write to fork")
		}
		at, err := src.Named(args[0])
		if err != nil {
			return err
		}
		p := &picker{cmd: cmd, src: src}
		forked, err := p.fork(at, title)
		if err != nil {
			return err
		}
		r, err := p.resumption(forked)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), names.VisibleLine(r.String()))
		p.warnOfLoss(forked)
		return err
	})
	cmd.Flags().StringVar(&title, "name", "", "the new session's `NAME`, where the agent keeps it in the file")
	return cmd
}

// warnOfLoss says that the agent will delete a session once it was resumed, where it does.
func (p *picker) warnOfLoss(session string) {
	agent := agents.Find(p.agent(session).Name)
	if agent == nil || !agent.DeletesResumed {
		return
	}
	fmt.Fprintf(p.cmd.ErrOrStderr(), "sessionfs: warning: %s deletes a session that was resumed, at its next start; "+
		"'sessionfs keep' before then keeps a copy\n", agent.Title)
}

// forkGarbage is how much garbage there may be for 100 bytes in use while a session is forked: it and its fork are converted,
// one after the other.
const forkGarbage = 120

// fork makes a session that ends at an entry of another one, the leaf if none is named, and returns
// its path in the tree.
func (p *picker) fork(at source.NamedSession, title string) (string, error) {
	p.src.LimitGarbage(forkGarbage)
	err := p.mayImport(at)
	if err != nil {
		return "", err
	}
	id, err := p.entryID(at)
	if err != nil {
		return "", err
	}
	line := labelField(id) + "\t" + labelField(title) + "\n"
	var answer bytes.Buffer
	err = p.src.WriteLines(p.cmd.Context(), path.Join(at.Dir, "fork"), strings.NewReader(line), &answer)
	if err != nil {
		return "", err
	}
	return p.src.Resolve(strings.TrimSpace(answer.String()))
}

// mayImport returns an error unless a program that takes forks may be started in the directory of a session,
// where the agent has one.
func (p *picker) mayImport(at source.NamedSession) error {
	if !agents.ByCommand(p.agent(at.Dir).Name) {
		return nil
	}
	r, err := p.startable(at.Dir)
	if err != nil {
		return err
	}
	return p.mayStart(r)
}

// entryID returns the id of an entry, or of the leaf if none is named.
func (p *picker) entryID(at source.NamedSession) (string, error) {
	snap, end, err := p.endOf(at)
	if err != nil {
		return "", err
	}
	defer snap.Release()
	id, ok := snap.ID(end)
	if !ok {
		return "", refuse(exitFailure, "%s: %s has no entry yet", p.cmd.Name(), names.Visible(at.Dir))
	}
	return id, nil
}

// endOf returns a session and an entry of it, the leaf if none is named. Callers must release the session.
func (p *picker) endOf(at source.NamedSession) (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := p.src.Snapshot(p.cmd.Context(), at.Dir)
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

// resumeSessionCommand is sessionfs resume.
func resumeSessionCommand() *cobra.Command {
	p := &picker{}
	in := ""
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "resume [--in AGENT] [-s SOURCE] SESSION[#ENTRY]",
		Short: "Go on with a session in its agent, from any entry",
		Long: "Start the session's agent with it, in its working directory. With #ENTRY the agent goes on from that " +
			"entry: where the session stands elsewhere, a new session up to the entry is made first, as sessionfs fork " +
			"does. With --in another agent (" + agents.OneOf(fs.Receivers()) + ") goes on with it: a new session of " +
			"that agent is made, with what was said, all calls and their results, and the images. " + sessionArgument,
		Example: "  sessionfs resume 019d3d9#6ab2fbe0\n  sessionfs resume --in " + fs.Receivers()[0] + " 019d3d9",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *tree, args []string) error {
		p.cmd = cmd
		p.src = src
		at, err := src.Named(args[0])
		if err != nil {
			return err
		}
		if in == "" || in == p.agent(at.Dir).Name {
			return p.goOnFrom(at)
		}
		return p.goOnIn(in, at)
	})
	cmd.Flags().StringVar(&in, "in", "", "the `AGENT` that goes on with it in a new session: "+agents.OneOf(fs.Receivers()))
	cmd.PostRunE = func(*cobra.Command, []string) error { // SOURCE is closed
		if p.then == nil {
			return nil
		}
		return p.then()
	}
	return cmd
}

// goOnFrom has the agent started with a session, in its working directory, in the place of this
// process: from an entry, if one is named. If the session stands elsewhere, that is the end of a fork.
func (p *picker) goOnFrom(at source.NamedSession) error {
	r, err := p.startable(at.Dir)
	if err != nil {
		return err
	}
	err = p.mayStart(r)
	if err != nil { // before a session is made in vain
		return err
	}
	stands, err := p.standsAt(at)
	if err != nil {
		return err
	}
	if stands {
		return p.start(at.Dir)
	}
	forked, err := p.fork(at, "")
	if err != nil {
		return err
	}
	return p.start(forked)
}

// standsAt reports whether a session stands at the named entry. It does where none is named.
func (p *picker) standsAt(at source.NamedSession) (bool, error) {
	if at.Entry == "" {
		return true, nil
	}
	wanted, err := p.entryID(at)
	if err != nil {
		return false, err
	}
	leaf, err := p.entryID(source.NamedSession{Dir: at.Dir})
	return wanted == leaf, err
}
