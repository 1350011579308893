package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/source"
)

// maxPort is the greatest number of a TCP port.
const maxPort = 1<<16 - 1

// nfsOptions are the options of nfs.
type nfsOptions struct {
	source  string
	options []string // of a mount
	port    int
}

// nfsCommand is sessionfs nfs.
func nfsCommand() *cobra.Command {
	var o nfsOptions
	cmd := &cobra.Command{
		Use:   "nfs [-o OPTIONS] [--port N] [SOURCE]",
		Short: "Serve the sessions by NFS on this machine, without FUSE",
		Long: "Serve what a mount would show to the NFS client of this machine, and print the command that mounts " +
			"it, once it can be mounted. It is good for one mount within a minute; after SIGUSR1 another one is " +
			"printed. Serves until it is interrupted. With the same port a mount goes on when the server is started " +
			"again. SOURCE and the options are those of a mount; all and demo stand for the sessions of every agent, " +
			"and for samples.",
		Example: "  sessionfs nfs\n  sessionfs nfs --port 20490 all",
		Args:    atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.source = strings.Join(args, "")
			return runNFS(cmd.Context(), o, consoleOf(cmd))
		},
	}
	cmd.Flags().StringArrayVarP(&o.options, "options", "o", nil, "mount `OPTIONS`, as for a mount")
	cmd.Flags().IntVar(&o.port, "port", 0, "listen at port `N`; 0 is any")
	return cmd
}

// runNFS serves a place until ctx is done.
func runNFS(ctx context.Context, o nfsOptions, c *console) error {
	if o.port < 0 || o.port > maxPort {
		return refuse(exitUsage, "nfs: --port needs a number from 0 to %d, not %d", maxPort, o.port)
	}
	at, err := source.Find(source.Request{Name: o.source})
	if err != nil {
		return err
	}
	defer at.Discard()
	at.Options, err = mountopts.ParseOptions(at.Options, o.options, false)
	if err != nil {
		return refuse(exitUsage, "nfs: %s", err)
	}
	again := make(chan os.Signal, 1) // asks for another mount
	signal.Notify(again, unix.SIGUSR1)
	defer signal.Stop(again)
	server, err := openNFS(at, o.port, c.err)
	if err != nil {
		return err
	}
	printMount := func() error {
		_, err := fmt.Fprintln(c.out, mountNFS(server), "MOUNTPOINT")
		return err
	}
	err = printMount()
	if err != nil {
		return err
	}
	go func() {
		for range again {
			_ = printMount() // the mounts that are there go on
		}
	}()
	return server.Serve(ctx)
}

// openNFS opens a server of the place, which logs to stderr.
func openNFS(p *source.Place, port int, stderr io.Writer) (*fs.NFS, error) {
	err := p.Prepare(stderr)
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: p.Level()}
	logger := slog.New(slog.NewTextHandler(stderr, options))
	return fs.OpenNFS(p.Options, port, logger)
}

// mountNFS returns the command that mounts the path that a server exports, but for the mount point.
// With sync write(2) has the error of a line, and soft ends the wait for a server that was killed.
func mountNFS(server *fs.NFS) string {
	command := "mount_nfs -o nfsv3,tcp,soft,nolockd,port=%[1]d 127.0.0.1:%[2]s"
	switch runtime.GOOS {
	case "linux":
		command = "sudo mount -t nfs -o vers=3,proto=tcp,mountproto=tcp,nolock,sync,soft,actimeo=1," +
			"lookupcache=positive,nosuid,nodev,port=%[1]d,mountport=%[1]d 127.0.0.1:%[2]s"
	case "darwin":
		command = "mount_nfs -o vers=3,tcp,sync,soft,nolocks,locallocks,nobrowse,actimeo=1,nonegnamecache," +
			"noresvport,nosuid,nodev,port=%[1]d,mountport=%[1]d 127.0.0.1:%[2]s"
	}
	return fmt.Sprintf(command, server.Port(), server.Export())
}
