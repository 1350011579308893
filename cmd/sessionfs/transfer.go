package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/writer"
	"sessionfs/source"
)

// sayMasked tells how many secrets there are, masked or not, by the rules that found them. hint is
// told where there are any.
func (c *console) sayMasked(where string, masked map[string]int, hint string) {
	total := 0
	kinds := ""
	for _, kind := range slices.Sorted(maps.Keys(masked)) {
		total += masked[kind]
		kinds += fmt.Sprintf(", %d %s", masked[kind], kind)
	}
	if total > 0 {
		kinds = " (" + kinds[2:] + ")" + hint
	}
	fmt.Fprintf(c.err, "sessionfs: %s: secrets %s: %d%s\n", c.name, where, total, kinds)
}

// bundleOptions are the options of bundle.
type bundleOptions struct {
	sessions []string
}

// bundleCommand is sessionfs bundle.
func bundleCommand() *cobra.Command {
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "bundle [-s SOURCE] [--redact] SESSION... > FILE.tar",
		Short: "Write sessions with all that belongs to them to the standard output, for sessionfs import",
		Long: "Write a tar archive of the session files as they are, the files beside them, the images that they " +
			"refer to, and manifest.json, which has the size and the SHA-256 of each. SESSION is an id or its " +
			"beginning, a path in a mount, or a .jsonl file. --redact masks keys, tokens and passwords that are " +
			"known, and leaves out what cannot be masked: blobs, and files beside the sessions other than the " +
			"sessions of subagents; images in lines stay. -o redact-rules=FILE has rules of your own for that. " +
			"Of other agents' sessions, --redact makes masked ones of omp.",
		Example: "  sessionfs bundle 019d3d9 | ssh desktop sessionfs import -",
		Args:    someArgs,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		return runBundle(cmd.Context(), bundleOptions{sessions: args}, src, consoleOf(cmd))
	})
	masks(cmd)
	return cmd
}

// runBundle writes an archive of sessions.
func runBundle(ctx context.Context, o bundleOptions, src *sourceTree, c *console) error {
	if isTerminal(c.out) {
		return refuse(exitUsage, "bundle: the archive would go to the terminal; redirect it: "+
			"sessionfs bundle SESSION > FILE.tar")
	}
	dirs, err := src.bundledDirs(o.sessions)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(c.out, copySize)
	b := src.Bundler(out, func(what string, err error) {
		fmt.Fprintf(c.err, "sessionfs: bundle: %s left out: %s\n", names.Visible(what), reasonOf(err))
	})
	for _, session := range dirs {
		err := src.Bundle(ctx, b, session)
		if err != nil {
			return fmt.Errorf("bundle: %s: %w; the archive is of no use", session, err)
		}
	}
	err = errors.Join(b.Close(), out.Flush())
	if err != nil {
		return err
	}
	if b.Redacted {
		c.sayMasked("masked in the bundle", b.Masked, "")
	}
	return nil
}

// bundledDirs returns the directories of the sessions that arguments name.
func (src *sourceTree) bundledDirs(sessions []string) (dirs []string, err error) {
	for _, name := range sessions {
		found, err := src.AllNamed(name)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f.Entry != "" {
				return nil, refuse(exitUsage, "bundle: %s names an entry; whole sessions are bundled", name)
			}
			dirs = append(dirs, f.Dir)
		}
	}
	return dirs, nil
}

// masks gives a command the flag --redact, which adds the option redact before SOURCE is opened. It sets the
// command's PreRunE.
func masks(cmd *cobra.Command) {
	masked := cmd.Flags().Bool("redact", false, "mask keys, tokens and passwords that are known, as -o redact does")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *masked {
			return cmd.Flags().Set("options", "redact")
		}
		return nil
	}
}

// importOptions are the options of import.
type importOptions struct {
	paths    []string // or ids of sessions
	to       string
	isMasked bool
	asJSON   bool
}

// importCommand is sessionfs import.
func importCommand() *cobra.Command {
	var o importOptions
	cmd := onSource(source.Elsewhere, &cobra.Command{
		Use:   "import [-s SOURCE] [--to DIR] [--redact] [--json] PATH...",
		Short: "Put sessions from elsewhere into SOURCE: files, archives, agent directories, bundles, other agents'",
		Long: "Put sessions into SOURCE. PATH is a session file (.jsonl), an archive of one (.jsonl.gz), " +
			"what sessionfs bundle " +
			"wrote, a tar archive of an agent directory (- for the standard input), a directory that has such " +
			"files at any depth, or the id of a session. " +
			"Of a session of another agent (a file, " + agents.All()[0].InHome() + ", a path in a mount) an omp session is made; PATH#ID is the branch to one of its " +
			"entries. -s NAME (" + strings.Join(fs.Receivers(), ", ") + ") makes sessions of that agent. " +
			"A session goes where SOURCE has it, else into the directory in sessions/ in which it lay, " +
			"else where a new session of its working directory would. It is never replaced: one that is there " +
			"gets what the copy has more. The files beside it and its images come along. Status 1: something was " +
			"refused.",
		Example: "  sessionfs import ~/old-laptop/.omp/agent " + agents.All()[0].InHome() + "\n  ssh laptop sessionfs bundle 019d3d9 | sessionfs import -",
		Args:    someArgs,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.paths = args
		return runImport(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "a line of JSON for each session")
	cmd.Flags().BoolVar(&o.isMasked, "redact", false, "mask keys, tokens and passwords that are known")
	cmd.Flags().StringVar(&o.to, "to", "", "the `DIR` in sessions/, or the working directory, to which all of them go")
	cmd.ValidArgsFunction = nil // PATH is a file of the machine
	return cmd
}

// runImport puts the sessions that the arguments name into SOURCE: as ones of the agent of SOURCE if that takes
// conversations of others, else as ones of omp.
func runImport(ctx context.Context, o importOptions, src *sourceTree, c *console) error {
	handing, err := src.HandoverImporter(o.to)
	if err != nil {
		return refuse(exitUsage, "import: %s", err)
	}
	if handing != nil && o.isMasked {
		return refuse(exitUsage, "import: --redact makes sessions of omp alone; name the agent directory of omp")
	}
	var own *transfer.Importer // into omp or its kin
	if handing == nil {
		own, err = src.Importer(ctx, o.to)
	}
	if err != nil {
		return refuse(exitUsage, "import: %s", err)
	}
	from, err := fs.OpenSources()
	if err != nil {
		return err
	}
	defer from.Close()
	err = addSources(ctx, c, from, o.paths)
	if err != nil {
		return err
	}
	p := &importPrinter{console: c, from: from, asJSON: o.asJSON}
	switch {
	case handing != nil:
		return p.print(ctx, handing)
	case o.isMasked:
		return p.printMasked(ctx, own)
	}
	return p.print(ctx, own)
}

// addSources adds the sessions that arguments name to from: by files, directories, or ids.
func addSources(ctx context.Context, c *console, from *transfer.Sources, args []string) error {
	for _, arg := range args {
		path, err := importedFile(ctx, c, arg)
		if err != nil {
			return err
		}
		err = from.Add(ctx, path, c.in)
		if err != nil {
			return err
		}
	}
	return nil
}

// importPrinter imports sessions, and prints the outcome of each and their number.
type importPrinter struct {
	console *console
	from    *transfer.Sources
	asJSON  bool
}

// printMasked imports with the secrets masked, and tells how many there were.
func (p *importPrinter) printMasked(ctx context.Context, into *transfer.Importer) error {
	rules, err := secrets.Read("")
	if err != nil {
		return err
	}
	into.Rules = rules
	into.Masked = map[string]int{}
	err = p.print(ctx, into)
	p.console.sayMasked("masked in what was imported", into.Masked, "")
	return err
}

// importedFile returns the file that an argument names: itself, or the file of the session of an id. An argument that
// is neither is returned as it is, for the message of the import.
func importedFile(ctx context.Context, c *console, arg string) (string, error) {
	_, err := os.Lstat(arg)
	if arg == "-" || !errors.Is(err, iofs.ErrNotExist) {
		return arg, nil
	}
	file, err := source.FileOf(ctx, arg, c.err)
	if err != nil || file == "" {
		return arg, err
	}
	return file, nil
}

// importer puts a found session into SOURCE.
type importer interface {
	Import(ctx context.Context, f transfer.FoundFile) (transfer.ImportOutcome, error)
}

// print imports sessions, and prints the outcome of each and their number. A refused session does not end it; the
// command then fails at the end.
func (p *importPrinter) print(ctx context.Context, into importer) error {
	const others = "others"
	failed := false
	counts := map[writer.Outcome]int{
		writer.Added:     0,
		writer.Grown:     0,
		writer.Unchanged: 0,
		transfer.Refused: 0,
		others:           p.from.Others,
	}
	for i, f := range p.from.Found {
		showProgress(p.console.err, progressText(i, len(p.from.Found)))
		r, err := into.Import(ctx, f)
		showProgress(p.console.err, "")
		if err == nil {
			err = p.printOne(f, r)
		}
		if err != nil {
			return err
		}
		if r.Err != nil || r.Partly {
			failed = true
		}
		counts[r.Outcome]++
	}
	err := p.printCounts(counts)
	if err == nil && failed {
		err = ended(exitFailure)
	}
	return err
}

// printOne prints the outcome of a session.
func (p *importPrinter) printOne(f transfer.FoundFile, r transfer.ImportOutcome) error {
	if p.asJSON {
		return names.WriteJSON(p.console.out, importedOf(f, r))
	}
	_, err := fmt.Fprintln(p.console.out, names.Visible(lineOf(f, r)))
	return err
}

// printCounts prints how many sessions had each outcome.
func (p *importPrinter) printCounts(counts map[writer.Outcome]int) error {
	if p.asJSON {
		return names.WriteJSON(p.console.out, counts)
	}
	left := ""
	if p.from.Others > 0 {
		left = fmt.Sprintf("; %d other files are left out", p.from.Others)
	}
	_, err := fmt.Fprintf(p.console.out, "%d new, %d longer, %d same, %d refused%s\n",
		counts[writer.Added], counts[writer.Grown], counts[writer.Unchanged], counts[transfer.Refused], left)
	return err
}

// imported has the members of import --json about a session.
type imported struct {
	Outcome writer.Outcome `json:"outcome"`
	From    string         `json:"from"`
	Path    string         `json:"path,omitempty"`
	Why     string         `json:"why,omitempty"`
	Notes   []string       `json:"notes"`
}

// importedOf returns the outcome of a session for --json.
func importedOf(f transfer.FoundFile, r transfer.ImportOutcome) imported {
	i := imported{
		Outcome: r.Outcome,
		From:    mountopts.WithoutPassword(filepath.Clean(f.Path)),
		Path:    r.Path,
		Notes:   append([]string{}, r.Notes...),
	}
	if r.Err != nil {
		i.Why = reasonOf(r.Err)
	}
	return i
}

// lineOf returns the line about the outcome of a session.
func lineOf(f transfer.FoundFile, r transfer.ImportOutcome) string {
	i := importedOf(f, r)
	line := fmt.Sprintf("%-7s %s", i.Outcome, i.Path)
	if i.Why != "" {
		line = "refused: " + i.From + ": " + i.Why
	}
	if len(i.Notes) > 0 {
		line += " (" + strings.Join(i.Notes, "; ") + ")"
	}
	return line
}
