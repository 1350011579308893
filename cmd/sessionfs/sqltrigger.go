package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/storage/postgres"
)

// sqlTriggerCommand is sessionfs sql-trigger.
func sqlTriggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sql-trigger [SOURCE]",
		Short: "Print a trigger by which mounts of a database see changes at once",
		Long: "Print a trigger for the table of SOURCE, postgres://USER@HOST/DATABASE?table=TABLE, which notes what changed,\n" +
			"so that mounts need not read through all of it. No database is asked: run the output with psql as the table's owner.",
		Example:           "  sessionfs sql-trigger postgres://db.example/team | psql -h db.example team",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := mountopts.Options{Source: "postgres:///"} // its table has the default name
			if len(args) > 0 {
				o.Source = args[0]
			}
			if !mountopts.IsDatabase(o.Source) {
				return refuse(exitUsage, "sql-trigger: SOURCE is not the URL of a database: postgres://user@host/database?table=TABLE")
			}
			if err := o.CheckSource(); err != nil {
				return refuse(exitUsage, "sql-trigger: %s", err)
			}
			src, err := postgres.ParseSource(o.Source)
			if err != nil {
				return refuse(exitUsage, "sql-trigger: %s", err)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), src.Trigger())
			return err
		},
	}
}
