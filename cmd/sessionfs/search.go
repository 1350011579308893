package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/search"
)

// searchCommand is sessionfs search.
func searchCommand() *cobra.Command {
	cmd := onSource(&cobra.Command{
		Use:   "search [-s SOURCE] QUERY...",
		Short: "Find what was said in any session",
		Long: "Find what was said in any session: messages, tool calls and their results, titles, labels. The session that was\n" +
			"modified last comes first. Off a terminal the output is that of search/QUERY/results.tsv in a mount.\n\n" +
			"All words of QUERY must be in one entry; a word with a capital is exact. \"a phrase\", -word, role:user (assistant,\n" +
			"tool), tool:NAME, cwd:PATH, after:DATE, before:DATE, in:archive. Several arguments are one query. Quote for the\n" +
			"shell what has quotes or begins with a dash.\n\n" +
			"Exit status: 0 something is found, 1 nothing is, 2 the query is wrong, or something could not be searched.",
		Example: "  sessionfs search tides\n  sessionfs search '\"moon phase\" role:user after:2026-01-31 -low'",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		query, err := search.ParseQuery(strings.Join(args, " "))
		if err != nil {
			return err
		}
		p := newHitPrinter(cmd, query.Marks())
		return p.end(src.Search(cmd.Context(), query, p.session))
	})
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	endsWithTwo(cmd)
	return cmd
}
