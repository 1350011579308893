package main

import (
	"bytes"
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

// chooseSession returns the session that the options name, or else the one that the user chooses. A query that
// names none is searched for.
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

// print prints where the chosen session, or its branch, is in a mount, else its id.
func (p *picker) print(ctx context.Context, chosen source.NamedSession) error {
	dir := p.inMount(chosen.Dir)
	if dir == "" {
		return p.printID(ctx, chosen)
	}
	if chosen.Entry != "" {
		dir = filepath.Join(dir, "branches", chosen.Entry)
	}
	_, err := fmt.Fprintln(p.console.out, dir)
	return err
}

// printID prints the id of a chosen session, as ID#ENTRY if it is a branch.
func (p *picker) printID(ctx context.Context, chosen source.NamedSession) error {
	h, err := p.header(ctx, chosen.Dir)
	if err != nil {
		return err
	}
	id := h.ID
	if names.Visible(id) != id {
		id = names.FileName(id) // it is found by this too
	}
	if chosen.Entry != "" {
		id += "#" + chosen.Entry
	}
	_, err = fmt.Fprintln(p.console.out, id)
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
	session := nearestAbove(last, here)
	resolved, err := filepath.EvalSymlinks(here)
	if session == "" && err == nil { // an agent has either as its working directory
		session = nearestAbove(last, resolved)
	}
	if session == "" {
		return "", refuse(exitFailure, "no session was started in %s or above it", here)
	}
	return session, nil
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

// list sends the lines of all sessions, those modified last first, but for subagents.
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

// meant returns the session that a text means: the session of an id or a path, else the newest one that has all
// words of it. No text means the last session of the working directory, or of one above it.
func (p *picker) meant(ctx context.Context, text string) (source.NamedSession, error) {
	if text == "" {
		dir, err := p.lastHere(ctx)
		return source.NamedSession{Dir: dir}, err
	}
	_, err := p.src.FindNamed(text)
	isName := !storage.IsGone(err) || strings.Contains(text, "/")
	if isName {
		return p.src.Named(text)
	}
	found, err := withWords(ctx, text, p.list)
	if err != nil {
		return source.NamedSession{}, err
	}
	if len(found) == 0 {
		return source.NamedSession{}, p.src.NotFound(text, "as its id or path, or in its title, directory or agent")
	}
	more := len(found) - 1
	if more > 0 {
		fmt.Fprintf(p.console.err, "sessionfs: %s: %d more with these words; 'sessionfs pick %s' lists them\n",
			p.console.name, more, names.Visible(text))
	}
	dir, _, _ := strings.Cut(found[0], "\t")
	dir, err = p.src.Resolve(dir)
	if err != nil {
		return source.NamedSession{}, err
	}
	return source.NamedSession{Dir: dir}, nil
}

// line returns a session as a line of the list: its path, which is not shown, columns, and its id, which is not
// searched. home is the user's home directory, "" if it is not known.
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

// age returns an elapsed time, of less than 100 years, as two to four characters.
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

// sizeOf returns a number of bytes in the largest unit that it reaches, rounded.
func sizeOf(n int64) string {
	const unitSize = 1 << 10
	for _, unit := range []string{"", "K", "M"} {
		if n < unitSize {
			return fmt.Sprintf("%d%s", n, unit)
		}
		n = (n + unitSize/2) / unitSize
	}
	return fmt.Sprintf("%dG", n)
}

// chooseBranch lets the user choose among the tips of a session, the newest first, and returns the id of the entry.
func (p *picker) chooseBranch(ctx context.Context, session string) (entry string, err error) {
	table, err := iofs.ReadFile(p.src, path.Join(session, "branches.tsv"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")
	rows := lines[1:] // behind the names of the columns
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
	cost, err := p.costOf(at.Dir)
	if err != nil {
		return err
	}
	var out bytes.Buffer // fzf goes to the end of what comes at once
	agent := p.agent(at.Dir).Name
	fmt.Fprintf(&out, "%s, %s, in %s\n%s\n\n", agent, cost, names.Visible(h.CWD), names.Visible(h.ID))
	lines, err := p.lastLines(path.Join(at.Branch(), "transcript.md"))
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(&out, names.VisibleLine(line))
	}
	_, err = out.WriteTo(p.console.out)
	return err
}

// costOf returns the cost of a session and its subagents, in dollars, or a text that there is none.
func (p *picker) costOf(session string) (string, error) {
	text, err := iofs.ReadFile(p.src, path.Join(session, "usage.json"))
	if err != nil {
		return "", err
	}
	type sum struct{ Cost *struct{ Total float64 } } // no Cost where no price is known
	var usage struct{ Total, Subagents sum }
	err = json.Unmarshal(text, &usage)
	if err != nil {
		return "", err
	}
	spent := 0.0
	if usage.Total.Cost != nil {
		spent += usage.Total.Cost.Total
	}
	if usage.Subagents.Cost != nil {
		spent += usage.Subagents.Cost.Total
	}
	if usage.Total.Cost == nil && spent == 0 { // without answers, subagents cost 0 too
		return "no cost", nil
	}
	return fmt.Sprintf("$%.2f", spent), nil
}

// lastLines returns the last lines of a file of the tree: at most previewLines, of its last previewSize bytes.
func (p *picker) lastLines(name string) ([]string, error) {
	f, err := p.src.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := max(info.Size()-previewSize, 0)
	text, err := io.ReadAll(io.NewSectionReader(f.(io.ReaderAt), start, info.Size()-start))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return lines[max(0, len(lines)-previewLines):], nil
}

// previewLines is how much of the end of a transcript is shown beside the list, and previewSize how
// much of it is read for that, in bytes.
const (
	previewLines = 500
	previewSize  = 1 << 20
)
