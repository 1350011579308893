package main

import (
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/search"
)

// touchedCommand is sessionfs touched.
func touchedCommand() *cobra.Command {
	cmd := onSource(&cobra.Command{
		Use:   "touched [-s SOURCE] PATH",
		Short: "Find which sessions read or changed a file",
		Long: "Find the calls of tools, in any session, that name the file PATH or something below the directory PATH, and the\n" +
			"user's prompt before each. The session that was modified last comes first. PATH need not exist any more. Off a\n" +
			"terminal the output is that of by-file/PATH/results.tsv in a mount.\n\n" +
			"Exit status: 0 something is found, 1 nothing is, 2 something could not be searched.",
		Example: "  sessionfs touched main.go",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		name, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		touched, err := search.NewTouched(filepath.ToSlash(name))
		if err != nil {
			return err
		}
		p := newHitPrinter(cmd, regexp.MustCompile(regexp.QuoteMeta(filepath.Base(name))))
		p.columns, p.row = search.TouchedColumns, (*search.Hit).AppendTouchedLine
		return p.end(src.Touched(cmd.Context(), touched, p.session))
	})
	cmd.ValidArgsFunction = nil // files of any kind
	endsWithTwo(cmd)
	return cmd
}
