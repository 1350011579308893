package main

import (
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"strings"

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
		f, err := openTranscript(src, args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		return page.Write(cmd.OutOrStdout(), f, func(hash string) (io.ReadCloser, error) {
			return src.Open(path.Join("blobs", hash))
		})
	})
}

// openTranscript opens the transcript of a session, of a branch, or of a session that is named as --resume names it.
func openTranscript(src *source, session string) (iofs.File, error) {
	candidates := []string{session}
	if !strings.Contains(session, "/") {
		candidates = append(candidates, path.Join("by-id", session))
	}
	var first error
	for _, candidate := range candidates {
		paths, err := src.expand(candidate)
		if err == nil && len(paths) > 1 {
			return nil, refuse(exitUsage, "export: %s stands for %d paths; one session is exported at a time", candidate, len(paths))
		}
		if err == nil {
			var f iofs.File
			if f, err = src.Open(path.Join(paths[0], "transcript.md")); err == nil {
				return f, nil
			}
		}
		if first == nil || len(candidates) > 1 {
			first = err
		}
		if !isGone(err) {
			break
		}
	}
	return nil, fmt.Errorf("export: %s is not a session: %s", session, reasonOf(first))
}
