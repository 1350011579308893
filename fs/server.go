//go:build linux

package fs

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/kernel"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage/dir"
)

// Server is a running mount.
type Server struct {
	options mountopts.Options
	fuse    *fuse.Server
	door    *kernel.Door
	tree    *tree
	log     *slog.Logger
	since   time.Time
	done    sync.Once
	minor   uint32        // of the mount, in the mount table; set by ServeStatus
	gone    chan struct{} // closed at the end of the mount
}

// Mount mounts o.Source at o.Mountpoint and returns once the mount is ready. It opens the
// directories of SOURCE and reads the beginning of one session, which tells the agent, so its time
// does not depend on the number of sessions.
func Mount(o mountopts.Options, log *slog.Logger) (*Server, error) {
	t, err := openTree(o, log)
	if err != nil {
		isRefused := errors.Is(err, ErrSource) || errors.Is(err, ErrOption)
		if isRefused {
			return nil, err
		}
		reason := strings.TrimSpace(err.Error())
		return nil, Refuse(ErrMount, "mounting %s at %s failed: %s", o.Source, o.Mountpoint, reason)
	}
	if t.shared {
		log.Info("other machines may write to SOURCE, by the type of its file system: what is appended is read back, " +
			"and clients on other machines are not seen; -o noshared says that it is a directory of this machine")
	}
	return mountTree(t, kernel.New(t.root), o, log)
}

// mountTree mounts a tree by a door, which shows its root, and closes the tree after an error.
func mountTree(t *tree, door *kernel.Door, o mountopts.Options, log *slog.Logger) (*Server, error) {
	t.root.Closed = o.AllowRoot
	s := &Server{
		options: o,
		door:    door,
		tree:    t,
		log:     log,
		since:   time.Now(),
		gone:    make(chan struct{}),
	}
	var err error
	s.fuse, err = fuse.NewServer(door.FileSystem(), o.Mountpoint, kernelOptions(o, log))
	if err != nil {
		t.close()
		problem := fuseProblem(o)
		if problem == "" {
			problem = "FUSE is broken here; 'sessionfs help nfs' tells how to serve sessions without it."
		}
		return nil, Refuse(ErrFuse, "mounting %s at %s failed: FUSE: %s\n%s", o.Source, o.Mountpoint,
			strings.TrimSpace(err.Error()), problem)
	}
	// The mount is ready: NewServer has answered the kernel's INIT. WaitMount would open a file of
	// the mount, which nothing in this process may do: a thread that waits for an answer of its own
	// process cannot be killed once the others are dead, and until then all programs that access
	// the mount wait as well.
	go s.fuse.Serve()
	go door.Prune(s.gone)
	err = raiseReadAhead(o.Mountpoint)
	if err != nil {
		log.Debug("the kernel reads ahead no further than it does by default", "err", err)
	}
	return s, nil
}

// kernelOptions returns the options of the mount itself, each for fusermount3 and for mount(2).
//
// nosuid and nodev are always on: nothing in the mount needs the opposite. So is
// default_permissions: with allow_root the mode of the root directory keeps all others out.
func kernelOptions(o mountopts.Options, log *slog.Logger) *fuse.MountOptions {
	options := []string{"default_permissions", "nosuid", "nodev"}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if o.ReadOnly || o.Redact {
		options = append(options, "ro")
		flags |= unix.MS_RDONLY
	}
	if o.NoExec {
		options = append(options, "noexec")
		flags |= unix.MS_NOEXEC
	}
	return &fuse.MountOptions{
		AllowOther: o.AllowRoot, // the kernel has nothing closer: see nodes.RootDir
		Name:       mountopts.Subtype,
		FsName:     o.TableSource(),
		Options:    options,
		// Try mount(2) first if we are privileged; then fusermount3.
		DirectMount:      true,
		DirectMountFlags: flags,
		// No extended attributes: ls -l would pay for them (docs/design.md section 8).
		DisableXAttrs: true,
		// Programs that map files also map generated ones, which are read directly (from Linux
		// 6.6).
		ExtraCapabilities: fuse.CAP_DIRECT_IO_ALLOW_MMAP,
		MaxReadAhead:      maxReadAhead,
		MaxWrite:          maxReadAhead,
		Debug:             o.Debug,
		Logger:            slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		PanicHandler: func(reason any) fuse.Status {
			// One bad session never takes the mount down (docs/design.md section 7).
			log.Error("a bug: a request panicked and was answered with EIO",
				"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			return fuse.EIO
		},
	}
}

// Wait returns at the end of the mount, by Unmount, umount or fusermount3 -u.
func (s *Server) Wait() {
	s.fuse.Wait()
	s.done.Do(func() {
		close(s.gone)
		s.tree.close()
	})
}

// Unmount unmounts. It fails if the mount is in use.
func (s *Server) Unmount() error {
	err := s.fuse.Unmount()
	if err != nil {
		return fmt.Errorf("cannot unmount: %w", err)
	}
	s.Wait()
	return nil
}

// maxReadAhead bounds the kernel's read-ahead in bytes. More saves round trips in large reads.
const maxReadAhead = 1 << 20

// raiseReadAhead sets the kernel's read-ahead through sysfs, which only root can do. A server's
// request at the mount can only lower the kernel's default of 128 KiB, which other users keep.
func raiseReadAhead(mountpoint string) error {
	var st unix.Statx_t
	const flags = unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT // answered without a request to the server
	err := unix.Statx(unix.AT_FDCWD, mountpoint, flags, 0, &st)
	if err != nil {
		return err
	}
	setting := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", st.Dev_major, st.Dev_minor)
	kibibytes := fmt.Append(nil, maxReadAhead>>10)
	return os.WriteFile(setting, kibibytes, 0)
}

// spaceOf returns a function that answers statfs with the numbers of the file system of SOURCE, for
// df (docs/design.md section 6).
func spaceOf(source *dir.Storage) func() (nodes.Space, error) {
	return func() (nodes.Space, error) {
		var st unix.Statfs_t
		err := source.Statfs(&st)
		return nodes.Space{
			BlockSize:    uint32(st.Bsize),
			FragmentSize: uint32(st.Frsize),
			Blocks:       st.Blocks,
			Free:         st.Bfree,
			Available:    st.Bavail,
			Files:        st.Files,
			FreeFiles:    st.Ffree,
		}, err
	}
}

// Counters are the numbers of a mount.
type Counters struct {
	Since    time.Time `json:"since"`    // time of the mount
	Last     time.Time `json:"last"`     // time of the last request of a program
	Open     int64     `json:"open"`     // files and directories that programs have open
	Sessions int       `json:"sessions"` // sessions with a cached index
	Held     int64     `json:"held"`     // bytes for open files and in caches
	Idle     int64     `json:"idle"`     // bytes of Held in caches
	Memory   int64     `json:"memory"`   // bytes of the process that are in memory
	Files    int       `json:"files"`    // descriptors of the process
	// Temporary is the size in bytes of the files without a name in TMPDIR.
	Temporary int64  `json:"temporary"`
	Shared    bool   `json:"shared"`         // other machines may write to the sessions
	Full      string `json:"full,omitempty"` // the reason for refusing memory, while there is none
}

// Counters returns the current counters. It waits for nothing that a request may hold for long.
func (s *Server) Counters() Counters {
	c := Counters{
		Since: s.since,
		Last:  s.door.Last(),
		Open:  s.door.Open(),
	}
	c.Sessions = s.tree.place.store.Indexed()
	for _, part := range s.tree.parts {
		c.Sessions += part.store.Indexed()
	}
	memory := s.tree.view.Memory
	c.Held = memory.Held()
	c.Idle = memory.Idle()
	c.Full = memory.Full()
	open, _ := os.ReadDir("/proc/self/fd") // with the descriptor of the directory
	c.Memory = residentMemory()
	c.Files = max(0, len(open)-1)
	c.Temporary = budget.FileBytes()
	c.Shared = s.tree.shared
	return c
}

// Idle returns the time since the last request of a program, 0 while one has a file open. The
// kernel answers some lookups itself for a second.
func (s *Server) Idle() time.Duration {
	if s.door.Open() > 0 {
		return 0
	}
	return time.Since(s.door.Last())
}

// residentMemory returns the bytes of this process in memory, 0 if they are unknown.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text)) // in pages: the size of the process, the part in memory, and others
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
