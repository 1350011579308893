package main

import (
	"fmt"
	"io"
	iofs "io/fs"
	"path"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/page"
)

// exportCommand is sessionfs export.
func exportCommand() *cobra.Command {
	return onSource(&cobra.Command{
		Use:   "export [-s SOURCE] SESSION > FILE.html",
		Short: "Write a session as one HTML page, to be read, printed or sent",
		Long: "Write the current branch of a session, or a branch of it, as one HTML page: no scripts, nothing loaded\n" +
			"from elsewhere, images inside. SESSION is a path of the mount, or what --resume would find.\n" +
			"Keys and tokens are shown as they are; -o redact masks those that are known, and leaves images out.",
		Example: "  sessionfs export 019d3d9 > page.html",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		paths, err := src.findSessions(args[0])
		if len(paths) > 1 {
			return refuse(exitUsage, "export: %s stands for %d paths; one session is exported at a time", args[0], len(paths))
		}
		var f iofs.File
		if err == nil {
			f, err = src.Open(path.Join(paths[0], "transcript.md"))
		}
		if err != nil {
			return fmt.Errorf("export: %s is not a session: %s", args[0], reasonOf(err))
		}
		defer f.Close()
		return page.Write(cmd.OutOrStdout(), f, func(hash string) (io.ReadCloser, error) {
			return src.Open(path.Join("blobs", hash))
		})
	})
}
