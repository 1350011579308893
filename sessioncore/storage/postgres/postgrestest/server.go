package postgrestest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// IsMissing reports whether an error of Start, or of StartPooler, means that the program is not installed.
func IsMissing(err error) bool { return errors.Is(err, errMissing) }

var errMissing = errors.New("is not installed")

// forTests are the settings of a server of tests: what it writes need not survive the machine.
var forTests = []string{"fsync=off", "shared_buffers=16MB", "max_connections=60"}

// startShared starts the server of this process.
var startShared = sync.OnceValues(func() (*Server, error) { return Start(forTests...) })

// Shared returns the server of this process. It ends with the process.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := startShared()
	check(t, err)
	return s
}

// New returns a server of the test's own, which may kill it.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start(forTests...)
	check(t, err)
	t.Cleanup(s.Close)
	return s
}

// check ends a test whose server does not start, or skips it where that is not installed.
func check(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case !IsMissing(err) || os.Getenv(RequireEnv) == "1" || os.Getenv(FullEnv) == "1":
		t.Fatal(err)
	default:
		t.Skipf("%v; %s=1 makes this a failure", err, RequireEnv)
	}
}

// findBinaries returns the directory of the server's programs. Debian has them in no PATH.
func findBinaries() (string, error) {
	path, err := exec.LookPath("initdb")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL %w (apt-get install postgresql)", errMissing)
	}
	newest := func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	} // 9 before 10
	return slices.MaxFunc(found, newest), nil
}

// Start makes a database and serves it, with settings such as "fsync=off". It ends, and is removed, with Close or with
// this process, even if that is killed. IsMissing tells whether the error means that there is none.
func Start(settings ...string) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
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
	err = standby.begin(standby.command("pg_basebackup", "-h", s.dir, "-U", "tester", "-D", standby.data(), "-R", "-c", "fast", "--no-sync"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.psql("ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf();")
	if err != nil {
		t.Fatal(err)
	}
	// Its processes read that some time later. The one that makes writes wait does so before a checkpoint.
	const isSync = "DO $$ BEGIN ASSERT (SELECT bool_or(sync_state = 'sync') FROM pg_stat_replication); END $$; CHECKPOINT;"
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		switch err := s.psql(isSync); {
		case err == nil:
			return standby
		case time.Since(start) > patience:
			t.Fatal(err)
		}
	}
}

// begin makes the database by cmd and serves it. After an error it is closed.
func (s *Server) begin(cmd *exec.Cmd) (err error) {
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	err = cmp.Or(os.Chmod(s.dir, 0o755), giveToNobody(s.dir))
	if err != nil {
		return err
	}
	err = s.removeAtEnd()
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Path, err, out)
	}
	return s.Start()
}

// giveToNobody makes a directory that of the server.
func giveToNobody(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(dir, nobody, nobody)
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
	err = wait.Start()
	if err != nil {
		return err
	}
	s.stays = wait
	s.pipe = pipe
	return nil
}

// Close ends the server and removes all of it. The server gives back the memory that its processes share: that of one that was
// killed stays until the same database is served again.
func (s *Server) Close() {
	s.end(1, syscall.SIGQUIT)
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
	err := s.proc.Start()
	if err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(s.proc, s.ended)
	err = waitFor(s.URL("postgres"), s.ended)
	if err != nil {
		return fmt.Errorf("PostgreSQL does not start: %w: %s", err, said.String())
	}
	return nil
}

// waitFor connects until a server answers, or ended is closed.
func waitFor(url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, url)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill kills the server, all of its processes, at once.
func (s *Server) Kill() { s.end(-1, syscall.SIGKILL) }

// end ends the server with a signal to the first of its processes (1) or to the group of them (-1).
func (s *Server) end(which int, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	_ = syscall.Kill(which*s.proc.Process.Pid, sig)
	<-s.ended
	s.proc = nil
}

// psql carries out statements.
func (s *Server) psql(sql string) error {
	cmd := s.command("psql", "-Xq", "-v", "ON_ERROR_STOP=1", s.URL("postgres"))
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	return nil
}

// Program returns the path of one of the server's programs, such as psql. What PATH has may be a script that chooses one.
func (s *Server) Program(name string) string { return filepath.Join(s.bin, name) }

// Socket returns the path of the socket on which the server listens.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL returns the address of a database of the server.
func (s *Server) URL(database string) string {
	return "postgres://tester@/" + database + "?host=" + s.dir
}
