package postgrestest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
	check(t, err)
	t.Cleanup(p.Close)
	return p
}

// StartPooler starts PgBouncer with as many connections to the server.
func (s *Server) StartPooler(mode string, connections int) (*Pooler, error) {
	const path = "/usr/sbin/pgbouncer"
	_, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("PgBouncer %w (apt-get install pgbouncer)", errMissing)
	}
	p := &Pooler{dir: filepath.Join(s.dir, mode)}
	config := fmt.Sprintf("[databases]\npostgres = host=%s user=tester\n[pgbouncer]\nauth_type = any\nlisten_addr =\nlisten_port = 5432\n"+
		"unix_socket_dir = %s\npidfile = %s/pid\npool_mode = %s\ndefault_pool_size = %d\nmax_client_conn = 2000\n",
		s.dir, p.dir, p.dir, mode, connections)
	err = os.Mkdir(p.dir, 0o755)
	if err != nil {
		return nil, err
	}
	err = cmp.Or(os.WriteFile(filepath.Join(p.dir, "ini"), []byte(config), 0o644), giveToNobody(p.dir))
	if err != nil {
		return nil, err
	}
	p.cmd = s.command("psql", filepath.Join(p.dir, "ini"))
	p.cmd.Path = path
	var said bytes.Buffer
	p.cmd.Stdout = &said
	p.cmd.Stderr = &said
	err = p.cmd.Start()
	if err != nil {
		return nil, err
	}
	err = waitFor(p.URL("postgres"), nil)
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("PgBouncer does not answer: %w: %s", err, said.String())
	}
	return p, nil
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
