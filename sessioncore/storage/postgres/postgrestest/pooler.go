package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is PgBouncer before a server.
type Pooler struct{ dir string }

// NewPooler starts PgBouncer, with its usual settings and few connections to the server, for the test. mode is its pool_mode.
func (s *Server) NewPooler(t testing.TB, mode string) *Pooler {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, "there is no PgBouncer (apt-get install pgbouncer)")
	}
	p := &Pooler{filepath.Join(s.dir, mode)}
	config := fmt.Sprintf("[databases]\npostgres = host=%s user=tester\n[pgbouncer]\nauth_type = any\nlisten_addr =\nlisten_port = 5432\nunix_socket_dir = %s\npidfile = %s/pid\npool_mode = %s\ndefault_pool_size = 3\n",
		s.dir, p.dir, p.dir, mode)
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "ini"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(p.dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := s.command("psql", filepath.Join(p.dir, "ini"))
	cmd.Path = path
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(p.dir)
	})
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := pgx.Connect(context.Background(), p.URL("postgres"))
		if err == nil {
			_ = c.Close(context.Background())
			return p
		}
		if time.Since(begin) > patience {
			t.Fatalf("PgBouncer does not answer: %v: %s", err, said.String())
		}
	}
}

// URL returns the address of a database of the server, as Server.URL does.
func (p *Pooler) URL(database string) string {
	return "postgres://tester@/" + database + "?host=" + p.dir
}
