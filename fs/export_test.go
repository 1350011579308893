package fs

import (
	"log/slog"
	"time"

	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/kernel"
)

// MountRoot is Mount with another root directory: for tests of what a storage does to a mount.
func MountRoot(root *nodes.RootDir, o mountopts.Options, log *slog.Logger) (*Server, error) {
	t, err := openTree(o, log) // to be closed with the server
	if err != nil {
		return nil, err
	}
	t.root = root
	return mountTree(t, kernel.New(root), o, log)
}

// MountFew returns a function that mounts as Mount does. Its mount gives nodes back to the kernel when there are more than
// limit, or when none was added for the time rest.
func MountFew(limit int, rest time.Duration) func(mountopts.Options, *slog.Logger) (*Server, error) {
	return func(o mountopts.Options, log *slog.Logger) (*Server, error) {
		t, err := openTree(o, log)
		if err != nil {
			return nil, err
		}
		door := kernel.New(t.root)
		door.KeepNodes(limit, rest)
		return mountTree(t, door, o, log)
	}
}

// HandleKey returns the key of the handles of NFS.
func HandleKey() string {
	key, err := handleKey(slog.New(slog.DiscardHandler))
	if err != nil {
		return ""
	}
	return string(key)
}
