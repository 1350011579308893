package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// RequireEnv, and FullEnv, make a missing server a failure.
const (
	RequireEnv = "SESSIONFS_REQUIRE_POSTGRES"
	FullEnv    = "SESSIONFS_TEST_FULL"
)

// patience bounds how long a server may take to start, or to end.
const patience = time.Minute

// nobody is whom the server runs as where the tests are root's: as root it refuses to.
const nobody = 65534

// Server is a server with one database, which accepts connections through a socket in a directory of its own.
type Server struct {
	dir, bin string
	stays    *exec.Cmd // removes dir when this process is gone
	pipe     io.Closer // its input
	settings []string

	mu    sync.Mutex // guards the fields below
	proc  *exec.Cmd
	ended chan struct{}
}

// IsMissing reports whether an error of Start means that PostgreSQL is not installed.
func IsMissing(err error) bool { return errors.Is(err, errNone) }

// forTests are the settings of a server of tests: what it writes need not survive the machine.
var forTests = []string{"fsync=off", "shared_buffers=16MB", "max_connections=60"}

var errNone = errors.New("there is no PostgreSQL server (apt-get install postgresql)")

// Shared returns the server of this process. It ends with the process.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Do(func() {
		shared.server, shared.err = Start(forTests...)
	})
	return check(t, shared.server, shared.err)
}

var shared struct {
	sync.Once
	server *Server
	err    error
}

// New returns a server of the test's own, which may kill it.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start(forTests...)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return check(t, s, err)
}

func check(t testing.TB, s *Server, err error) *Server {
	t.Helper()
	switch {
	case IsMissing(err):
		missing(t, err.Error())
	case err != nil:
		t.Fatalf("PostgreSQL does not start: %v", err)
	}
	return s
}

// missing ends the test where something is not installed.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" || os.Getenv(FullEnv) == "1" {
		t.Fatal(what)
	}
	t.Skip(what + "; " + RequireEnv + "=1 makes this a failure")
}

// findBinaries returns the directory of the server's programs, "" if it is not installed. Debian has them in no PATH.
func findBinaries() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	sort.Slice(found, func(i, j int) bool { return version(found[i]) > version(found[j]) })
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[0])
}

// Start makes a database and serves it, with settings such as "fsync=off". It ends, and is removed, with Close or with
// this process, even if that is killed. IsMissing tells whether the error means that there is none.
func Start(settings ...string) (*Server, error) {
	bin := findBinaries()
	if bin == "" {
		return nil, errNone
	}
	dir, err := os.MkdirTemp("", "pg") // a socket's path has little room
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, settings: settings}
	return s, s.begin(s.command("initdb", "-D", s.data(), "-U", "tester", "-A", "trust", "--encoding=UTF8", "--locale=C", "--no-sync"))
}

// Follow starts a standby of the server, for the test. It has all that the server acknowledges from now on.
func (s *Server) Follow(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	standby := &Server{dir: dir, bin: s.bin, settings: s.settings}
	t.Cleanup(standby.Close)
	if err := standby.begin(standby.command("pg_basebackup", "-h", s.dir, "-U", "tester", "-D", standby.data(), "-R", "-c", "fast", "--no-sync")); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(context.Background(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
		if _, err := c.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return standby
}

// begin makes the database by cmd and serves it. After an error it is closed.
func (s *Server) begin(cmd *exec.Cmd) (err error) {
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(s.dir, nobody, nobody); err != nil {
			return err
		}
	}
	if err := s.removeAtEnd(); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Path, err, out)
	}
	return s.Start()
}

// removeAtEnd starts a shell that waits until this process is gone, ends the server, and removes its directory.
func (s *Server) removeAtEnd() error {
	wait := exec.Command("sh", "-c", `cat; cat "$0"/*/pid | xargs -r kill; kill -QUIT "$(head -n 1 "$0/data/postmaster.pid")"; sleep 0.2; rm -rf "$0"`, s.dir)
	wait.Dir = "/"
	wait.Env = []string{"PATH=/usr/bin:/bin"}
	wait.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := wait.StdinPipe()
	if err != nil {
		return err
	}
	if err := wait.Start(); err != nil {
		return err
	}
	s.stays, s.pipe = wait, pipe
	return nil
}

// Close ends the server and removes all of it.
func (s *Server) Close() {
	s.quit()
	s.Kill()
	_ = os.RemoveAll(s.dir) // and the shell finds nothing
	if s.stays != nil {
		_ = s.pipe.Close()
		_ = s.stays.Wait()
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

// Start starts the server and waits until it answers.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses="}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	s.proc = s.command("postgres", args...)
	var said bytes.Buffer
	s.proc.Stderr = &said
	if err := s.proc.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(s.proc, s.ended)
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			err = c.Close(ctx)
		}
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended: %s", said.String())
		default:
		}
	}
	return errors.New("the server does not answer")
}

// quit ends the server at once, but lets it give back the memory that its processes share: that of one that was killed
// stays until the same database is served again.
func (s *Server) quit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	_ = s.proc.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.ended:
	case <-time.After(patience):
	}
}

// Kill kills the server, all of its processes, at once.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	_ = syscall.Kill(-s.proc.Process.Pid, syscall.SIGKILL) // a group of its own
	<-s.ended
	s.proc = nil
}

// Program returns the path of one of the server's programs, such as psql. What PATH has may be a script that chooses one.
func (s *Server) Program(name string) string { return filepath.Join(s.bin, name) }

// Socket returns the path of the socket on which the server listens.
func (s *Server) Socket() string { return filepath.Join(s.dir, SocketName) }

// SocketName is how a server calls its socket, in a directory of its own.
const SocketName = ".s.PGSQL.5432"

// URL returns the address of a database of the server.
func (s *Server) URL(database string) string {
	return "postgres://tester@/" + database + "?host=" + s.dir
}
