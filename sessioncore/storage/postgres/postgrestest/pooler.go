package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is PgBouncer before a server.
type Pooler struct {
	dir string
	cmd *exec.Cmd
}

// NewPooler starts PgBouncer, with its usual settings and few connections to the server, for the test. mode is its pool_mode.
func (s *Server) NewPooler(t testing.TB, mode string) *Pooler {
	t.Helper()
	p, err := s.StartPooler(mode, 3)
	if errors.Is(err, errNoPooler) {
		missing(t, err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

var errNoPooler = errors.New("there is no PgBouncer (apt-get install pgbouncer)")

// StartPooler starts PgBouncer with as many connections to the server.
func (s *Server) StartPooler(mode string, connections int) (*Pooler, error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errNoPooler
	}
	p := &Pooler{dir: filepath.Join(s.dir, mode)}
	config := fmt.Sprintf("[databases]\npostgres = host=%s user=tester\n[pgbouncer]\nauth_type = any\nlisten_addr =\nlisten_port = 5432\n"+
		"unix_socket_dir = %s\npidfile = %s/pid\npool_mode = %s\ndefault_pool_size = %d\nmax_client_conn = 2000\n",
		s.dir, p.dir, p.dir, mode, connections)
	if err := errors.Join(os.Mkdir(p.dir, 0o755), os.WriteFile(filepath.Join(p.dir, "ini"), []byte(config), 0o644)); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(p.dir, nobody, nobody); err != nil {
			return nil, err
		}
	}
	cmd := s.command("psql", filepath.Join(p.dir, "ini"))
	cmd.Path = path
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.cmd = cmd
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := pgx.Connect(context.Background(), p.URL("postgres"))
		if err == nil {
			_ = c.Close(context.Background())
			return p, nil
		}
		if time.Since(begin) > patience {
			p.Close()
			return nil, fmt.Errorf("PgBouncer does not answer: %w: %s", err, said.String())
		}
	}
}

// Close ends it.
func (p *Pooler) Close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// URL returns the address of a database of the server, as Server.URL does.
func (p *Pooler) URL(database string) string {
	return "postgres://tester@/" + database + "?host=" + p.dir
}
