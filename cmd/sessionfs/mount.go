//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// init keeps the first thread for the goroutine that obeys signals, which only init can claim: the
// kernel gives a signal to that thread first, where it stays if the thread waits for a SOURCE that
// hangs.
func init() { runtime.LockOSThread() }

// mount mounts or unmounts; it returns the exit status.
func mount(args []string, s streams) int {
	ready := takeReadyPipe()
	c, status, done := mountCommand(args, s)
	switch {
	case done:
		return status
	case c.Unmount:
		return report(unmountCommand(c.Options.Mountpoint, c.Lazy), c.Helper, s.err)
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
	// Descriptors that the caller left open, such as a lock file, must not stay open for the life
	// of the mount. Without close_range (before Linux 5.11) they do; that is no reason to fail.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)

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
	w.Close()
	if err != nil {
		return exitFailure, fmt.Errorf("starting the background process: %w", err)
	}
	go forward(signals, cmd.Process)

	said := make([]byte, 1)
	if _, err := io.ReadFull(r, said); err == nil && said[0] == readyByte {
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

// takeReadyPipe returns the pipe on which the process that started us waits, or nil if this is not
// the background process. It must be called before any descriptor is opened.
func takeReadyPipe() *os.File {
	_, waits := os.LookupEnv(readyEnv)
	os.Unsetenv(readyEnv) // fusermount3 must not inherit it
	var st unix.Stat_t
	if !waits || unix.Fstat(readyFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil
	}
	unix.CloseOnExec(readyFD)
	return os.NewFile(readyFD, "ready pipe")
}

// sayReady detaches from the terminal and tells the waiting process that the mount is ready. stdin
// and stdout are /dev/null from the start. It does not matter if the waiting process has exited.
func sayReady(ready *os.File) error {
	defer ready.Close()
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("starting a session: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), int(os.Stderr.Fd()), 0); err != nil {
		return fmt.Errorf("redirecting stderr: %w", err)
	}
	_, _ = ready.Write([]byte{readyByte})
	return nil
}

const (
	fuseDevice = "/dev/fuse"
	fuseConf   = "/etc/fuse.conf"
)

// diagnose returns why a mount failed. It is called after the failure, so that nothing is refused
// that would have worked (a fusermount3 that asks a helper outside of a container, for example).
func diagnose(err error, o mountopts.Options) error {
	if errors.Is(err, fs.ErrSource) {
		return refuse(exitSource, "%s", err)
	}
	if errors.Is(err, fs.ErrOption) {
		return refuse(exitUsage, "%s", err)
	}
	what := "mounting " + o.Source + " at " + o.Mountpoint + " failed: " + strings.TrimSpace(err.Error())
	if errors.Is(err, fs.ErrFuse) {
		return refuse(exitFuse, "%s\n%s", what, cmp.Or(fuseProblem(o), "FUSE is broken here; "+
			"'sessionfs help nfs' tells how to serve sessions without it."))
	}
	return refuse(exitMount, "%s", what)
}

// fuseProblem names a thing that is missing for mounting, "" for none.
func fuseProblem(o mountopts.Options) string {
	if reason := deviceProblem(); reason != "" {
		return reason
	}
	root := os.Geteuid() == 0
	if root && !mayMount() {
		return "This is root without the right to mount, as usual in a container: allow it CAP_SYS_ADMIN and " +
			fuseDevice + " (docker run --cap-add SYS_ADMIN --device " + fuseDevice + ")."
	}
	if root || mayMount() {
		return ""
	}
	bin, err := fusermount()
	if err != nil {
		return "Users other than root need fusermount3: install the package fuse3 (apt install fuse3, " +
			"dnf install fuse3)."
	}
	if nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && nnp == 1 {
		return "This process may not gain privileges (no_new_privs: a sandbox, a container, " +
			"NoNewPrivileges= in systemd), so " +
			bin + " cannot mount for it."
	}
	if info, err := os.Stat(bin); err == nil && info.Mode()&iofs.ModeSetuid == 0 {
		return bin + " is not set-uid root, so users other than root may not be able to mount: " +
			"reinstall the package fuse3."
	}
	if o.AllowRoot {
		return "-o allow_root needs the line 'user_allow_other' in " + fuseConf + ", which root must write there; " +
			"or leave allow_root out."
	}
	return ""
}

// deviceProblem names a fault of /dev/fuse, "" for none. fusermount3 opens it as the user.
func deviceProblem() string {
	f, err := os.OpenFile(fuseDevice, os.O_RDWR, 0)
	switch {
	case err == nil:
		f.Close()
		return ""
	case errors.Is(err, iofs.ErrNotExist):
		return fuseDevice + " does not exist: load the kernel module (modprobe fuse) and install the package fuse3; " +
			"a container needs to be given the device (docker run --device " + fuseDevice + ")."
	case errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV):
		return fuseDevice + " is there but the kernel has no FUSE: load the module (modprobe fuse)."
	case errors.Is(err, iofs.ErrPermission):
		return fuseDevice + " may not be opened (" + err.Error() + "): its mode should be 0666, " +
			"and a container needs to be allowed the device."
	}
	return fuseDevice + " cannot be opened: " + err.Error() + "."
}

// mayMount reports whether this process has CAP_SYS_ADMIN.
func mayMount() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // version 3 of the call writes two
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
