package main

import (
	"bufio"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

// bundleCommand is sessionfs bundle.
func bundleCommand() *cobra.Command {
	var masked bool
	cmd := onSource(&cobra.Command{
		Use:   "bundle [-s SOURCE] [--redact] SESSION... > FILE.tar",
		Short: "Write sessions with all that belongs to them to the standard output, for sessionfs import",
		Long: "Write a tar archive of the session files as they are, the files beside them, the images that they refer to,\n" +
			"and manifest.json, which has the size and the SHA-256 of each. SESSION is a path of the mount, or what --resume\n" +
			"would find. --redact masks keys and tokens that are known, and leaves out what cannot be masked: images, and\n" +
			"files beside the sessions other than the sessions of subagents.",
		Example: "  sessionfs bundle 019d3d9 | ssh desktop sessionfs import -",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if isTerminal(cmd.OutOrStdout()) {
			return refuse(exitUsage, "bundle: the archive would go to the terminal; redirect it: sessionfs bundle SESSION > FILE.tar")
		}
		var sessions []string
		for _, arg := range args {
			found, err := src.findSessions(arg)
			if err != nil {
				return err
			}
			sessions = append(sessions, found...)
		}
		out := bufio.NewWriterSize(cmd.OutOrStdout(), copySize)
		b := src.Bundler(out, func(what string, err error) {
			fmt.Fprintf(cmd.ErrOrStderr(), "sessionfs: bundle: %s left out: %s\n", what, err)
		})
		for _, session := range sessions {
			if err := src.Bundle(cmd.Context(), b, session); err != nil {
				return refuse(exitFailure, "bundle: %s: %s; the archive is of no use", session, reasonOf(err))
			}
		}
		if err := b.Close(); err != nil {
			return err
		}
		return out.Flush()
	})
	cmd.Flags().BoolVar(&masked, "redact", false, "mask keys and tokens that are known, as -o redact does")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if masked {
			return cmd.Flags().Set("options", "redact")
		}
		return nil
	}
	return cmd
}

// findSessions returns the paths, without links, that lead to what is named as a path of the mount, or as --resume names
// a session.
func (src *source) findSessions(session string) ([]string, error) {
	paths, err := src.expand(session)
	if err == nil && !strings.Contains(session, "/") {
		if _, missing := src.Lstat(paths[0]); isGone(missing) {
			paths, err = src.expand(path.Join("by-id", session))
		}
	}
	for i := range paths {
		if err == nil {
			paths[i], err = src.Resolve(paths[i])
		}
	}
	return paths, err
}
