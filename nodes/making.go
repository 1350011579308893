package nodes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cp -r and mv make the directory beside a session that they have just copied without having looked whether it is there,
// if they have made the directory that both are in, and give up if it is: mkdir(2) looks up the name, finds the session as a
// directory and fails. So the lookup of a thread that has copied the session, and that is in the middle of mkdir(2),
// finds nothing; its mkdir then makes the artifacts' directory. (mv calls rmdir(2) before that: SourceDir.Rmdir.)

// isMakingDir reports whether a thread that waits for us is in mkdir(2). Where the kernel does not tell (Yama), it is if the
// thread's program is one of those that ask for the name in no other way.
func isMakingDir(ctx context.Context) bool {
	dir := "/proc/" + strconv.FormatUint(uint64(threadOf(ctx)), 10)
	call, err := readSoon(dir + "/syscall")
	if errors.Is(err, fs.ErrPermission) {
		name, _ := readSoon(dir + "/comm")
		return slices.Contains([]string{"cp", "mv"}, strings.TrimSpace(string(name)))
	}
	number, _, _ := strings.Cut(string(call), " ")
	return err == nil && slices.Contains(mkdirCalls, number)
}

// readLimit is how long the kernel may take to say something about a thread. It withholds what a program does that is in the
// middle of execve(2); a thread that looks up a name is not.
const readLimit = 250 * time.Millisecond

// readSoon reads a file of /proc.
func readSoon(file string) ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := os.ReadFile(file)
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		return a.text, a.err
	case <-time.After(readLimit):
		return nil, os.ErrDeadlineExceeded
	}
}
