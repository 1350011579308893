//go:build linux || darwin

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
)

// mount carries out a command line without a command: it mounts, in the foreground or by a background
// process, which it waits for, or unmounts. It returns the exit status.
func mount(args []string, s streams) int {
	ready := takeReadyPipe()
	c, status, done := mountCommand(args, s)
	switch {
	case done:
		return status
	case c.Unmount:
		return report(fs.Unmount(c.Options.Mountpoint, c.Lazy), c.Helper, s.err)
	case ready == nil && !c.Options.Foreground && !c.Fake:
		// The background process reports its errors itself, on the same stderr.
		code, err := startBackground(args)
		if err != nil {
			return report(err, c.Helper, s.err)
		}
		return code
	}
	return report(serve(c, ready, s.err), c.Helper, s.err)
}

// readyEnv is set in the environment of the background process, which reports on readyFD that it is
// ready.
const (
	readyEnv = "SESSIONFS_READY_FD"
	readyFD  = 3
)

// readyByte is written there once the mount is ready. End of file without it means a failure, which
// the exit status names.
const readyByte = '+'

// startBackground runs this command again, as Go cannot fork, and waits until that process is
// ready. It returns the exit status. The background process stays in our process group until it has
// mounted: under x-systemd.automount only systemd's own group may access the mount point, all
// others wait for the mount.
func startBackground(args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return exitFailure, fmt.Errorf("this program's own path cannot be told (is /proc mounted?): %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return exitFailure, fmt.Errorf("making a pipe: %w", err)
	}
	defer r.Close()
	closeLater()

	cmd := &exec.Cmd{
		Path:       self,
		Args:       args, // including the name, which may be mount.sessionfs
		Env:        append(os.Environ(), readyEnv+"="+strconv.Itoa(readyFD)),
		Stderr:     os.Stderr, // until it is ready, for its errors and those of fusermount3
		ExtraFiles: []*os.File{w},
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, unix.SIGTERM)
	defer signal.Stop(signals)
	err = cmd.Start()
	w.Close() // the end of the process then ends the pipe
	if err != nil {
		return exitFailure, fmt.Errorf("starting the background process: %w", err)
	}
	go forward(signals, cmd.Process)
	return awaitReady(cmd, r)
}

// awaitReady waits until the background process writes to the pipe that the mount is ready, or ends. It returns
// the exit status of this process; the error has a reason that the background process has not reported.
func awaitReady(cmd *exec.Cmd, pipe io.Reader) (int, error) {
	said := make([]byte, 1)
	_, err := io.ReadFull(pipe, said)
	if err == nil && said[0] == readyByte {
		return exitOK, nil
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitFailure, errors.New("the background process ended before the mount was ready")
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	}
	return exitFailure, fmt.Errorf("the background process died: %w", err)
}

// forward passes an interrupt on to the background process, which unmounts. A second interrupt
// kills it.
func forward(signals <-chan os.Signal, p *os.Process) {
	<-signals
	_ = p.Signal(unix.SIGTERM) // an error means that it has exited, which the pipe reports
	<-signals
	_ = p.Kill()
}

// takeReadyPipe returns the pipe for the process that started us and waits, or nil if this is not
// the background process. It must be called before any descriptor is opened.
func takeReadyPipe() *os.File {
	_, waits := os.LookupEnv(readyEnv)
	os.Unsetenv(readyEnv) // fusermount3 must not inherit it
	if !waits {
		return nil
	}
	var st unix.Stat_t
	err := unix.Fstat(readyFD, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO { // somebody else has set the variable
		return nil
	}
	unix.CloseOnExec(readyFD)
	return os.NewFile(readyFD, "ready pipe")
}

// sayReady detaches from the terminal, tells the waiting process that the mount is ready, and closes the pipe.
// stdin and stdout are /dev/null from the start; stderr becomes that too. It does not matter if the waiting
// process has exited.
func sayReady(ready *os.File) error {
	defer ready.Close()
	_, err := unix.Setsid()
	if err != nil {
		return fmt.Errorf("starting a session: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	err = dup(null, os.Stderr)
	if err != nil {
		return fmt.Errorf("redirecting stderr: %w", err)
	}
	_, _ = ready.Write([]byte{readyByte})
	return nil
}
