package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// team is many mounts of one table, in each of which a program reads and in some one writes.
type team struct {
	ctx    context.Context
	server *postgrestest.Server
	db     *pgxpool.Pool

	bin, dir, source            string
	rows, size, mounts, writers int
	period                      time.Duration
	trigger, bouncer            bool
	daemons                     []*exec.Cmd
	mu                          sync.Mutex // guards the two below
	waits, delays               []time.Duration
	connections, postmaster     int
}

// prefix is where the rows of a person are.
const prefix = "/home/user%03d/.omp/agent/sessions/--work--/"

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func measureTeam(server *postgrestest.Server, args []string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := &team{ctx: ctx, server: server, source: server.URL("postgres")}
	f := flag.NewFlagSet("team", flag.ExitOnError)
	f.StringVar(&t.bin, "bin", "sessionfs", "the `program` that is measured")
	f.StringVar(&t.dir, "dir", os.TempDir(), "the `directory` for mount points")
	f.IntVar(&t.rows, "rows", 10_000, "sessions in the table")
	f.IntVar(&t.size, "bytes", 50_000, "of each of them")
	f.IntVar(&t.mounts, "mounts", 20, "members")
	f.IntVar(&t.writers, "writers", 4, "of them who append a line a second")
	f.DurationVar(&t.period, "time", 10*time.Second, "that each part takes")
	f.BoolVar(&t.trigger, "trigger", false, "install the trigger")
	f.BoolVar(&t.bouncer, "pgbouncer", false, "reach the server through PgBouncer, pool_mode=transaction")
	_ = f.Parse(args)
	t.db = must(pgxpool.New(ctx, server.URL("postgres")))
	defer t.db.Close()
	defer t.unmount()
	t.fill()
	t.measure()
}

func (t *team) exec(sql string, args ...any) { must(t.db.Exec(t.ctx, sql, args...)) }

// fill makes the table.
func (t *team) fill() {
	t.exec(`CREATE TABLE omp_session_files` + postgrestest.Columns + `; ALTER TABLE omp_session_files ALTER content SET COMPRESSION lz4`)
	var body strings.Builder
	parent := "null"
	for i := 0; body.Len() < t.size; i++ {
		fmt.Fprintf(&body, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-02-16T11:00:00.000Z","message":{"role":"user","content":"%x"}}`+"\n",
			i, parent, must(exec.Command("head", "-c", "200", "/dev/urandom").Output()))
		parent = fmt.Sprintf(`"%08x"`, i)
	}
	began := time.Now()
	i := -1
	must(t.db.CopyFrom(t.ctx, pgx.Identifier{"omp_session_files"}, []string{"path", "content", "mtime_ms"}, pgx.CopyFromFunc(func() ([]any, error) {
		if i++; i == t.rows {
			return nil, nil
		}
		header := fmt.Sprintf(`{"type":"session","version":3,"id":"%08d-0000-7000-8000-000000000000","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/work/p%03d","title":"Session %d"}`+"\n", i, i%500, i)
		return []any{t.path(i), header + body.String(), time.Now().Add(-time.Hour).UnixMilli()}, nil
	})))
	t.exec(`VACUUM ANALYZE omp_session_files`)
	if t.trigger {
		psql := exec.Command(t.server.Program("psql"), "-q", "-c", "SET client_min_messages = warning", "-f", "-", "-v", "ON_ERROR_STOP=1", t.source)
		psql.Stdin, psql.Stderr = bytes.NewReader(must(exec.Command(t.bin, "sql-trigger", t.source).Output())), os.Stderr
		must(0, psql.Run())
	}
	t.postmaster = must(strconv.Atoi(t.text(`SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`)))
	fmt.Printf("%d rows of %d bytes, made in %.0f s\n", t.rows, t.size, time.Since(began).Seconds())
	if t.bouncer {
		t.pool()
	}
}

// path returns the path of a row: people have as many each.
func (t *team) path(i int) string {
	return fmt.Sprintf(prefix+"2026-02-16T10-20-30-000Z_%08d-0000-7000-8000-000000000000.jsonl", i%t.mounts, i)
}

func (t *team) text(sql string) (text string) {
	if err := t.db.QueryRow(t.ctx, sql).Scan(&text); err != nil {
		panic(err)
	}
	return text
}

// pool starts PgBouncer between the mounts and the server.
func (t *team) pool() {
	at := filepath.Join(filepath.Dir(t.server.Socket()), "pooler") // where the server's user may look
	config := fmt.Sprintf("[databases]\npostgres = host=%s user=tester\n[pgbouncer]\nlisten_addr=\nunix_socket_dir=%s\nauth_type=any\n"+
		"pool_mode=transaction\nmax_client_conn=2000\ndefault_pool_size=40\n", filepath.Dir(t.server.Socket()), at)
	must(0, cmp.Or(os.Mkdir(at, 0o700), os.Chmod(at, 0o777), os.WriteFile(at+"/ini", []byte(config), 0o644)))
	cmd := exec.Command("pgbouncer", "-q", at+"/ini")
	cmd.Stderr = os.Stderr
	if os.Geteuid() == 0 {
		cmd.Args = append(cmd.Args, "-u", "nobody")
	}
	must(0, cmd.Start())
	t.daemons = append(t.daemons, cmd)
	t.source = "postgres://tester@/postgres?port=6432&host=" + at
	time.Sleep(time.Second)
}

// measure prints what the members cost the server, and what they wait.
func (t *team) measure() {
	alone := t.cpuDuring(func(i int, line string) {
		t.exec(`UPDATE omp_session_files SET content = content || $1, mtime_ms = mtime_ms + 1 WHERE path = $2`, line, t.path(t.rows-1-i))
	})
	began := time.Now()
	for i := range t.mounts {
		t.mount(i)
	}
	fmt.Printf("%d mounts, ready after %.1f s; the first: index.jsonl %s, again %s; ls recent %s\n", t.mounts, time.Since(began).Seconds(),
		t.run("cat", 0, "index.jsonl"), t.run("cat", 0, "index.jsonl"), t.run("ls", 0, "recent"))
	for i := range t.mounts {
		t.run("ls", i, "recent")
		t.follow(i)
	}
	time.Sleep(3 * time.Second)
	quiet := t.cpuDuring(nil)
	all := t.cpuDuring(func(i int, line string) {
		began := time.Now()
		must(0, os.WriteFile(t.shown(i, i)+"/append", []byte(line), 0))
		t.note(&t.waits, began)
	})
	time.Sleep(2 * time.Second)
	fmt.Printf("server, of a core: writes alone %.1f %%, %d mounts that wait %.1f %%, with writes %.1f %%, beside the writes %.1f %%\n", alone, t.mounts, quiet, all, all-alone)
	fmt.Printf("connections: %d\n", t.connections)
	print("an append takes", t.waits)
	print("a line shows after", t.delays)
	var memory []int
	for _, d := range t.daemons {
		statm := strings.Fields(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.Process.Pid)))))
		memory = append(memory, must(strconv.Atoi(statm[1]))*os.Getpagesize())
	}
	fmt.Printf("memory of a mount: at most %d MiB\n", slices.Max(memory)>>20)
}

// note adds how long ago something began.
func (t *team) note(times *[]time.Duration, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*times = append(*times, time.Since(began).Round(time.Millisecond))
}

func print(what string, times []time.Duration) {
	slices.Sort(times)
	if n := len(times); n > 0 {
		fmt.Printf("%s: median %v, worst %v (%d lines)\n", what, times[n/2], times[n-1], n)
	}
}

func (t *team) at(mount int) string { return filepath.Join(t.dir, fmt.Sprint("m", mount)) }

// shown returns the directory of a member's first session in a mount.
func (t *team) shown(mount, member int) string {
	path := strings.TrimSuffix(t.path(member), ".jsonl")
	return filepath.Join(t.at(mount), "sessions", fmt.Sprintf("user%03d/--work--", member), filepath.Base(path))
}

func (t *team) mount(i int) {
	must(0, os.MkdirAll(t.at(i), 0o700))
	cmd := exec.Command(t.bin, "-f", "--log-file", filepath.Join(t.dir, "log"), t.source, t.at(i))
	must(0, cmd.Start())
	t.daemons = append(t.daemons, cmd)
	for range 600 {
		if _, err := os.Stat(t.at(i) + "/last-error"); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	panic("a mount is not ready")
}

func (t *team) unmount() {
	for _, d := range t.daemons {
		_ = d.Process.Signal(syscall.SIGTERM)
		_ = d.Wait()
	}
}

// run returns how long a program takes.
func (t *team) run(program string, mount int, name string) time.Duration {
	began := time.Now()
	must(exec.Command(program, filepath.Join(t.at(mount), name)).Output())
	return time.Since(began).Round(time.Millisecond)
}

// maxWatchers is how many members look often, which costs the server more than a tail -f.
const maxWatchers = 10

var stamp = regexp.MustCompile(`at=(\d+)`)

// follow runs tail -f on the session of a writer in the mount of another member. The first of them look often, to tell how late
// a line shows.
func (t *team) follow(mount int) {
	every := "1"
	if mount < min(2*t.writers, maxWatchers) {
		every = "0.01"
	}
	cmd := exec.CommandContext(t.ctx, "tail", "-n", "0", "-s", every, "-f", t.shown(mount, (mount+1)%t.writers)+".jsonl")
	cmd.Stderr = os.Stderr
	out := must(cmd.StdoutPipe())
	must(0, cmd.Start())
	t.daemons = append([]*exec.Cmd{cmd}, t.daemons...)
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if at := stamp.FindSubmatch(lines.Bytes()); at != nil && every != "1" {
				t.note(&t.delays, time.Unix(0, int64(must(strconv.Atoi(string(at[1]))))))
			}
		}
	}()
}

// cpuDuring returns how much of a core the server takes while writers, if there are some, write a line each second.
func (t *team) cpuDuring(write func(i int, line string)) float64 {
	before, began := t.cpu(), time.Now()
	var writing sync.WaitGroup
	for i := range t.writers {
		writing.Go(func() {
			for time.Since(began) < t.period && t.ctx.Err() == nil {
				next := time.Now().Add(time.Second)
				if write != nil {
					write(i, fmt.Sprintf(`{"type":"message","message":{"role":"user","content":"at=%d"}}`+"\n", time.Now().UnixNano()))
				}
				time.Sleep(time.Until(next))
			}
		})
	}
	for time.Since(began) < t.period {
		n := must(strconv.Atoi(t.text(`SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend'`)))
		t.connections = max(t.connections, n-int(t.db.Stat().TotalConns()))
		time.Sleep(500 * time.Millisecond)
	}
	writing.Wait()
	return 100 * (t.cpu() - before).Seconds() / time.Since(began).Seconds()
}

// cpu returns how much processor time the server has taken: its processes, and those that ended.
func (t *team) cpu() (total time.Duration) {
	const tick = 10 * time.Millisecond
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		_, after, _ := bytes.Cut(text, []byte(") "))
		fields := strings.Fields(string(after))
		own := filepath.Base(filepath.Dir(file)) == fmt.Sprint(t.postmaster)
		if len(fields) < 15 || !own && fields[1] != fmt.Sprint(t.postmaster) {
			continue
		}
		for _, field := range fields[11:15] { // utime, stime, and those of children
			n, _ := strconv.Atoi(field)
			total += time.Duration(n) * tick
		}
	}
	return total
}
