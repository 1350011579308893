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
func sayMasked(cmd *cobra.Command, where string, masked map[string]int, hint string) {
	total := 0
	kinds := ""
	for _, kind := range slices.Sorted(maps.Keys(masked)) {
		total += masked[kind]
		kinds += fmt.Sprintf(", %d %s", masked[kind], kind)
	}
	if total > 0 {
		kinds = " (" + kinds[2:] + ")" + hint
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "sessionfs: %s: secrets %s: %d%s\n", cmd.Name(), where, total, kinds)
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
	}, func(cmd *cobra.Command, src *tree, args []string) error {
		if isTerminal(cmd.OutOrStdout()) {
			return refuse(exitUsage, "bundle: the archive would go to the terminal; redirect it: "+
				"sessionfs bundle SESSION > FILE.tar")
		}
		var dirs []string
		for _, arg := range args {
			found, err := src.AllNamed(arg)
			if err != nil {
				return err
			}
			for _, f := range found {
				if f.Entry != "" {
					return refuse(exitUsage, "bundle: %s names an entry; whole sessions are bundled", arg)
				}
				dirs = append(dirs, f.Dir)
			}
		}
		out := bufio.NewWriterSize(cmd.OutOrStdout(), copySize)
		b := src.Bundler(out, func(what string, err error) {
			fmt.Fprintf(cmd.ErrOrStderr(), "sessionfs: bundle: %s left out: %s\n", names.Visible(what), reasonOf(err))
		})
		for _, session := range dirs {
			err := src.Bundle(cmd.Context(), b, session)
			if err != nil {
				return fmt.Errorf("bundle: %s: %w; the archive is of no use", session, err)
			}
		}
		err := errors.Join(b.Close(), out.Flush())
		if err != nil {
			return err
		}
		if b.Redacted {
			sayMasked(cmd, "masked in the bundle", b.Masked, "")
		}
		return nil
	})
	masks(cmd)
	return cmd
}

// masks gives a command the flag --redact.
func masks(cmd *cobra.Command) {
	masked := cmd.Flags().Bool("redact", false, "mask keys, tokens and passwords that are known, as -o redact does")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *masked {
			return cmd.Flags().Set("options", "redact")
		}
		return nil
	}
}

// importCommand is sessionfs import.
func importCommand() *cobra.Command {
	var to string
	var asJSON, masked bool
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
	}, func(cmd *cobra.Command, src *tree, args []string) error {
		i := &importing{
			cmd:      cmd,
			src:      src,
			to:       to,
			isMasked: masked,
			asJSON:   asJSON,
		}
		return i.run(args)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each session")
	cmd.Flags().BoolVar(&masked, "redact", false, "mask keys, tokens and passwords that are known")
	cmd.Flags().StringVar(&to, "to", "", "the `DIR` in sessions/, or the working directory, to which all of them go")
	cmd.ValidArgsFunction = nil // PATH is a file of the machine
	return cmd
}

// importing is a run of sessionfs import.
type importing struct {
	cmd      *cobra.Command
	src      *tree
	to       string
	isMasked bool
	asJSON   bool
}

// run imports what the arguments name.
func (i *importing) run(args []string) error {
	handing, err := i.src.HandoverImporter(i.to)
	if err != nil {
		return refuse(exitUsage, "import: %s", err)
	}
	if handing != nil && i.isMasked {
		return refuse(exitUsage, "import: --redact makes sessions of omp alone; name the agent directory of omp")
	}
	var into *transfer.Importer
	if handing == nil {
		into, err = i.src.Importer(i.cmd.Context(), i.to)
	}
	if err != nil {
		return refuse(exitUsage, "import: %s", err)
	}
	from, err := fs.OpenSources()
	if err != nil {
		return err
	}
	defer from.Close()
	for _, path := range args {
		path, err := importedFile(i.cmd, path)
		if err != nil {
			return err
		}
		err = from.Add(i.cmd.Context(), path, i.cmd.InOrStdin())
		if err != nil {
			return err
		}
	}
	if handing != nil {
		return printImports(i.cmd, handing, from, i.asJSON)
	}
	return i.runMasked(into, from)
}

// runMasked imports into omp or its kin, and tells how many secrets it masked where it was to.
func (i *importing) runMasked(into *transfer.Importer, from *transfer.Sources) (err error) {
	if !i.isMasked {
		return printImports(i.cmd, into, from, i.asJSON)
	}
	into.Masked = map[string]int{}
	into.Rules, err = secrets.Read("")
	if err != nil {
		return err
	}
	err = printImports(i.cmd, into, from, i.asJSON)
	sayMasked(i.cmd, "masked in what was imported", into.Masked, "")
	return err
}

// importedFile returns the file that an argument names: itself, or that of the session of an id.
func importedFile(cmd *cobra.Command, arg string) (string, error) {
	_, err := os.Lstat(arg)
	if arg == "-" || !errors.Is(err, iofs.ErrNotExist) {
		return arg, nil
	}
	file, err := source.FileOf(cmd.Context(), arg, cmd.ErrOrStderr())
	if err != nil || file == "" {
		return arg, err
	}
	return file, nil
}

// importer puts a found session into SOURCE.
type importer interface {
	Import(ctx context.Context, f transfer.FoundFile) (transfer.ImportOutcome, error)
}

// printImports imports sessions, and prints the outcome of each and their number.
func printImports(cmd *cobra.Command, into importer, from *transfer.Sources, asJSON bool) error {
	const others = "others"
	out := cmd.OutOrStdout()
	failed := false
	counts := map[writer.Outcome]int{
		writer.Added: 0, writer.Grown: 0, writer.Unchanged: 0, transfer.Refused: 0, others: from.Others,
	}
	for i, f := range from.Found {
		showProgress(cmd.ErrOrStderr(), progressText(i, len(from.Found)))
		r, err := into.Import(cmd.Context(), f)
		showProgress(cmd.ErrOrStderr(), "")
		switch {
		case err == nil && asJSON:
			err = names.WriteJSON(out, importedOf(f, r))
		case err == nil:
			_, err = fmt.Fprintln(out, names.Visible(lineOf(f, r)))
		}
		if err != nil {
			return err
		}
		failed = failed || r.Err != nil || r.Partly
		counts[r.Outcome]++
	}
	var err error
	if asJSON {
		err = names.WriteJSON(out, counts)
	} else {
		left := ""
		if from.Others > 0 {
			left = fmt.Sprintf("; %d other files are left out", from.Others)
		}
		_, err = fmt.Fprintf(out, "%d new, %d longer, %d same, %d refused%s\n",
			counts[writer.Added], counts[writer.Grown], counts[writer.Unchanged], counts[transfer.Refused], left)
	}
	if err == nil && failed {
		err = ended(exitFailure)
	}
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
