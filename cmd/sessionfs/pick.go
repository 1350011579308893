package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/source"
)

// pickOptions are the options of pick.
type pickOptions struct {
	query   string
	resume  bool // start the agent
	branch  bool // choose a branch too
	here    bool
	mounted bool
	preview string // a session that is shown beside the list; set by ourselves
}

// picker finds a session that a user names or chooses, and the agent that goes on with it.
type picker struct {
	console *console
	src     *sourceTree
	mounts  []mountopts.Options
	agents  []mountopts.AgentDir // the owners of the sessions, the first one where the path does not tell
}

// pickCommand is sessionfs pick.
func pickCommand() *cobra.Command {
	var o pickOptions
	var next *resumption
	cmd := onSource(source.AnyWords, &cobra.Command{
		Use:   "pick [--resume] [--branch] [-s SOURCE] [--here | QUERY...]",
		Short: "Choose a session in the terminal, and go on with it",
		Long: "Choose a session, those modified last first, beside the end of its transcript, by parts of words, as " +
			"with fzf(1), which is used where it is installed. The path of the session in a mount is printed; where " +
			"SOURCE is not mounted, its id. Without -s, SOURCE is that of a mount of all agents, if there is one.\n\n" +
			"QUERY is what is searched for first. If it finds one session alone, or names one, there is no choice, " +
			"and no terminal is needed.\n\n" +
			"Exit status: 0 one is chosen, 1 none is, 2 there is no terminal to choose in.",
		Example: "  cd \"$(sessionfs pick tide sheets)\"\n  sessionfs pick --resume",
	}, func(cmd *cobra.Command, src *sourceTree, args []string) (err error) {
		o.query = strings.Join(args, " ")
		next, err = runPick(cmd.Context(), o, src, consoleOf(cmd))
		return err
	})
	flags := cmd.Flags()
	flags.BoolVar(&o.resume, "resume", false, "start the agent with it, in its working directory")
	flags.BoolVar(&o.branch, "branch", false, "choose one of its branches too, and print its path, or ID#ENTRY")
	flags.BoolVar(&o.here, "here", false, "the last session of this directory, or of the nearest one above")
	flags.BoolVar(&o.mounted, "mounted", false, "only where it is mounted")
	flags.StringVar(&o.preview, "preview", "", "")
	_ = flags.MarkHidden("preview") // the flags exist
	_ = flags.MarkHidden("mounted")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.PostRunE = func(cmd *cobra.Command, _ []string) error { // SOURCE is closed
		return next.exec(cmd.Name())
	}
	return cmd
}

// runPick has a session chosen, and prints where it is. With --resume it returns the command line of the agent, which
// is to go on with it.
func runPick(ctx context.Context, o pickOptions, src *sourceTree, c *console) (*resumption, error) {
	p := &picker{console: c, src: src}
	if o.preview != "" {
		return nil, p.show(ctx, o.preview)
	}
	if !o.resume {
		p.mounts = fs.ShownMounts()
	}
	if o.mounted && p.inMount(".") == "" {
		return nil, refuse(exitFailure, "%s is not mounted: mkdir -p ~/agent-sessions && sessionfs ~/agent-sessions",
			src.TableSource())
	}
	chosen, err := p.choose(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.resume {
		return p.goOnFrom(ctx, chosen)
	}
	return nil, p.print(ctx, chosen)
}

// choose returns the session that the options name, or else the one that the user chooses, with the branch that the
// user chooses if the options ask for it.
func (p *picker) choose(ctx context.Context, o pickOptions) (source.NamedSession, error) {
	if o.here && o.query != "" {
		return source.NamedSession{}, refuse(exitUsage, "pick: --here or QUERY, not both")
	}
	chosen, err := p.chooseSession(ctx, o)
	if err != nil {
		return chosen, err
	}
	if o.branch && chosen.Entry == "" {
		chosen.Entry, err = p.chooseBranch(ctx, chosen.Dir)
	}
	return chosen, err
}

// chooseSession returns the session that the options name, or else the one that the user chooses.
func (p *picker) chooseSession(ctx context.Context, o pickOptions) (chosen source.NamedSession, err error) {
	if o.here {
		chosen.Dir, err = p.lastHere(ctx)
		return chosen, err
	}
	if mayName(o.query) {
		named, err := p.src.Named(o.query)
		if err == nil && named.Dir != "" {
			return named, nil
		}
	}
	at, err := p.fuzzy(ctx, "session", o.query, p.list)
	if err != nil {
		return chosen, err
	}
	chosen.Dir, err = p.src.Resolve(at)
	return chosen, err
}

// mayName reports whether a query may name a session, by its id, which has no blanks, or by a path.
func mayName(query string) bool {
	if query == "" {
		return false
	}
	isPath := strings.Contains(query, "/")
	return isPath || !strings.Contains(query, " ")
}

// print prints where the session is in a mount, else its id.
func (p *picker) print(ctx context.Context, chosen source.NamedSession) error {
	at := p.inMount(chosen.Dir)
	if at != "" && chosen.Entry != "" {
		at = filepath.Join(at, "branches", chosen.Entry)
	}
	if at == "" {
		h, err := p.header(ctx, chosen.Dir)
		if err != nil {
			return err
		}
		at = h.ID
		if names.Visible(at) != at {
			at = names.FileName(at) // it is found by this too
		}
		if chosen.Entry != "" {
			at += "#" + chosen.Entry
		}
	}
	_, err := fmt.Fprintln(p.console.out, at)
	return err
}

// header has the needed members of a session's header.
type header struct{ Type, ID, CWD string }

// header reads the header of a session, which is not converted for it.
func (p *picker) header(ctx context.Context, session string) (h header, err error) {
	text, err := p.src.Header(ctx, session)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}

// lastHere returns the session that was modified last in the working directory, or in the
// nearest directory above it that has some.
func (p *picker) lastHere(ctx context.Context) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	last := map[string]string{}
	for i, err := range p.src.NewestNamed(ctx) {
		if err != nil {
			return "", err
		}
		dir := path.Clean(i.CWD)
		if last[dir] == "" {
			last[dir] = i.Path()
		}
		if dir == here {
			break
		}
	}
	resolved, _ := filepath.EvalSymlinks(here)
	for _, dir := range []string{here, cmp.Or(resolved, here)} { // an agent has either as its working directory
		session := nearestAbove(last, dir)
		if session != "" {
			return session, nil
		}
	}
	return "", refuse(exitFailure, "no session was started in %s or above it", here)
}

// nearestAbove returns the session of a directory, or of the nearest one above it that has some, or "".
func nearestAbove(sessions map[string]string, dir string) string {
	for {
		above := filepath.Dir(dir)
		isRoot := above == dir
		if sessions[dir] != "" || isRoot {
			return sessions[dir]
		}
		dir = above
	}
}

// list sends the lines of all sessions.
func (p *picker) list(ctx context.Context, send sender) error {
	home, _ := os.UserHomeDir()
	now := time.Now()
	var lines []string
	for info, err := range p.src.NewestNamed(ctx) {
		if err != nil {
			return err
		}
		if info.IsSubagent() {
			continue
		}
		lines = append(lines, p.line(info, home, now))
		if len(lines) == sentTogether {
			err := send(lines...)
			if err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
	return send(lines...)
}

// sentTogether is the number of lines that list sends at once, enough for a screen.
const sentTogether = 64

// meant returns the session of an id or a path, else the newest one that has all words of a text;
// of none, the last one here.
func (p *picker) meant(ctx context.Context, text string) (source.NamedSession, error) {
	if text == "" {
		dir, err := p.lastHere(ctx)
		return source.NamedSession{Dir: dir}, err
	}
	_, err := p.src.FindNamed(text)
	if !storage.IsGone(err) || strings.Contains(text, "/") {
		return p.src.Named(text)
	}
	found, err := withWords(ctx, "", text, p.list)
	if err != nil {
		return source.NamedSession{}, err
	}
	if len(found) == 0 {
		return source.NamedSession{}, p.src.NotFound(text, "as its id or path, or in its title, directory or agent")
	}
	n := len(found) - 1
	if n > 0 {
		fmt.Fprintf(p.console.err, "sessionfs: %s: %d more with these words; 'sessionfs pick %s' lists them\n",
			p.console.name, n, names.Visible(text))
	}
	dir, _, _ := strings.Cut(found[0], "\t")
	dir, err = p.src.Resolve(dir)
	if err != nil {
		return source.NamedSession{}, err
	}
	return source.NamedSession{Dir: dir}, nil
}

// line is a session in the list: its path, which is not shown, columns, and its id, which is not
// searched.
func (p *picker) line(i *listing.Info, home string, now time.Time) string {
	dir := i.CWD
	below, isInHome := strings.CutPrefix(dir+"/", home+"/")
	if isInHome && home != "" {
		dir = path.Join("~", below)
	}
	title := names.VisibleLine(i.DisplayName())
	blanks := max(0, titleColumn-uniseg.StringWidth(title))
	title += strings.Repeat(" ", blanks)
	at := i.Path()
	if names.Visible(at) != at { // lines are cut at line breaks and tabs
		at = path.Join("by-id", names.FileName(i.ID))
	}
	elapsed := age(now.Sub(i.Modified()))
	agent := p.agent(i.Path()).Name
	dir = names.VisibleLine(dir)
	id := names.Visible(i.ID)
	return fmt.Sprintf("%s\t%4s  %-6s  %5s  %s  %s\t%s", at, elapsed, agent, sizeOf(i.Size), title, dir, id)
}

// titleColumn is how wide the titles are: display names have 40 characters at most.
const titleColumn = 40

// age returns a time as two to four characters.
func age(d time.Duration) string {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%dm", max(0, d/time.Minute))
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 100*day:
		return fmt.Sprintf("%dd", d/day)
	case d < 2*year:
		return fmt.Sprintf("%dmo", 12*d/year)
	}
	return fmt.Sprintf("%dy", d/year)
}

// sizeOf returns a number of bytes as ls -h does.
func sizeOf(n int64) string {
	for _, unit := range []string{"", "K", "M"} {
		if n < 1<<10 {
			return fmt.Sprintf("%d%s", n, unit)
		}
		n = (n + 1<<9) >> 10
	}
	return fmt.Sprintf("%dG", n)
}

// chooseBranch lets the user choose among the tips of a session, the newest first.
func (p *picker) chooseBranch(ctx context.Context, session string) (entry string, err error) {
	table, err := iofs.ReadFile(p.src, path.Join(session, "branches.tsv"))
	if err != nil {
		return "", err
	}
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")[1:]
	for i, row := range rows {
		columns := strings.SplitN(row, "\t", 6)
		id := columns[0]
		entries := columns[1]
		at, _ := time.Parse(time.RFC3339, columns[2])
		label := names.Visible(columns[3])
		current := columns[4]
		said := names.Visible(columns[5])
		shownTime := at.Local().Format("2006-01-02 15:04")
		rows[i] = fmt.Sprintf("%s#%s\t%s  %5s  %-8s  %-12s  %s\t%s",
			session, id, shownTime, entries, current, label, said, id)
	}
	chosen, err := p.fuzzy(ctx, "branch", "", func(_ context.Context, send sender) error {
		return send(rows...)
	})
	idAt := strings.LastIndexByte(chosen, '#') + 1
	return chosen[idAt:], err
}

// show prints the preview beside the list: a summary of a session or a branch, and the end of the
// transcript.
func (p *picker) show(ctx context.Context, arg string) error {
	at, err := p.src.Named(arg)
	if err != nil {
		return err
	}
	h, err := p.header(ctx, at.Dir)
	if err != nil {
		return err
	}
	type sum struct{ Cost *struct{ Total float64 } }
	var usage struct{ Total, Subagents sum }
	text, err := iofs.ReadFile(p.src, path.Join(at.Dir, "usage.json"))
	if err == nil {
		err = json.Unmarshal(text, &usage)
	}
	if err != nil {
		return err
	}
	cost := "no cost"
	spent := 0.0
	for _, c := range []sum{usage.Total, usage.Subagents} {
		if c.Cost != nil && (c.Cost.Total > 0 || usage.Total.Cost != nil) {
			spent += c.Cost.Total
			cost = fmt.Sprintf("$%.2f", spent)
		}
	}
	var out bytes.Buffer // fzf goes to the end of what comes at once
	fmt.Fprintf(&out, "%s, %s, in %s\n%s\n\n", p.agent(at.Dir).Name, cost, names.Visible(h.CWD), names.Visible(h.ID))
	f, err := p.src.Open(path.Join(at.Branch(), "transcript.md"))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	start := max(info.Size()-previewSize, 0)
	text, err = io.ReadAll(io.NewSectionReader(f.(io.ReaderAt), start, info.Size()-start))
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for _, line := range lines[max(0, len(lines)-previewLines):] {
		fmt.Fprintln(&out, names.VisibleLine(line))
	}
	_, written := out.WriteTo(p.console.out)
	if err != nil {
		return err
	}
	return written
}

// previewLines is how much of the end of a transcript is shown beside the list, and previewSize how
// much of it is read for that, in bytes.
const (
	previewLines = 500
	previewSize  = 1 << 20
)
