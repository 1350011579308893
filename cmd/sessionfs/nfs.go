package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

func nfsCommand() *cobra.Command {
	var options []string
	var port int
	cmd := &cobra.Command{
		Use:   "nfs [-o OPTIONS] [--port N] [SOURCE]",
		Short: "Serve the sessions by NFS on this machine, without FUSE",
		Long: "Serve what a mount would show to the NFS client of this machine, and print the command that mounts " +
			"it, once it can be mounted. It is good for one mount within a minute; after SIGUSR1 another one is " +
			"printed. Serves until it is interrupted. With the same port a mount goes on when the server is started " +
			"again. SOURCE and the options are those of a mount; all and demo stand for the sessions of every agent, " +
			"and for samples.",
		Example: "  sessionfs nfs\n  sessionfs nfs --port 20490 all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var at place
			var err error
			if len(args) > 0 {
				if at, err = placeNamed(args[0]); err != nil {
					return err
				}
			}
			if at.Options, err = mountopts.ParseOptions(at.Options, options, false); err != nil {
				return refuse(exitUsage, "nfs: %s", err)
			}
			return serveNFS(cmd.Context(), at, port, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVarP(&options, "options", "o", nil, "mount `OPTIONS`, as for a mount")
	cmd.Flags().IntVar(&port, "port", 0, "listen at port `N`; 0 is any")
	return cmd
}

// serveNFS serves a place until ctx is done.
func serveNFS(ctx context.Context, at place, port int, out, stderr io.Writer) error {
	defer at.remove()
	if err := at.resolve(stderr); err != nil {
		return err
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, unix.SIGUSR1)
	defer signal.Stop(again)
	server, err := fs.OpenNFS(at.Options, port, textLogger(at.Options, stderr))
	if err != nil {
		return sourceError(err)
	}
	say := func() error {
		_, err := fmt.Fprintln(out, strings.Join(mountNFS(server.Port(), server.Export(), "MOUNTPOINT"), " "))
		return err
	}
	if err := say(); err != nil {
		return err
	}
	go func() {
		for range again {
			_ = say()
		}
	}()
	return server.Serve(ctx)
}

// sourceError refuses a SOURCE that cannot be opened.
func sourceError(err error) error {
	if errors.Is(err, fs.ErrSource) {
		return refuse(exitSource, "%s", err)
	}
	return err
}

func textLogger(o mountopts.Options, out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: o.Level()}))
}
