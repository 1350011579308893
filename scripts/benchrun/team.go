package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// team is many mounts of one table. In each a program reads, and in some one writes.
type team struct {
	*database
	url                          string // of the server, or of the pooler before it
	rows, size, members, writers int
	trigger, bouncer             bool
	mounts                       []*mount
	connections                  int

	mu      sync.Mutex            // guards those below
	written map[int64]time.Time   // when appends ended, by when the line was made
	shown   map[int64][]time.Time // when the line was in the mounts of other members
}

// measureTeam starts a server and a team as the options say, and prints the figures. It is scripts/team.
func measureTeam(b *bench, args []string) {
	t := &team{written: map[int64]time.Time{}, shown: map[int64][]time.Time{}}
	f := flag.NewFlagSet("team", flag.ExitOnError)
	f.IntVar(&t.rows, "rows", 10_000, "sessions in the table")
	f.IntVar(&t.size, "bytes", 50_000, "of each of them")
	f.IntVar(&t.members, "mounts", 20, "members")
	f.IntVar(&t.writers, "writers", 4, "of them who append a line a second")
	f.BoolVar(&t.trigger, "trigger", false, "install the trigger")
	f.BoolVar(&t.bouncer, "pgbouncer", false, "reach the server through PgBouncer, pool_mode=transaction")
	_ = f.Parse(args)
	server, err := postgrestest.Start("fsync=off", "max_connections=1000", "shared_buffers=256MB")
	b.must(err)
	defer server.Close()
	t.database = b.connect(server)
	t.url = server.URL("postgres")
	defer t.Close()
	t.fill()
	if t.bouncer {
		pooler, err := server.StartPooler("transaction", 40)
		b.must(err)
		defer pooler.Close()
		t.url = pooler.URL("postgres")
	}
	ctx, stop := context.WithCancel(b.ctx)
	defer func() {
		stop()
		for _, m := range t.mounts {
			unmount(m)
		}
	}()
	t.measure(ctx)
}

// fill makes the table, of sessions with the same entries, with the trigger if that is asked for.
func (t *team) fill() {
	const table = "omp_session_files"
	t.exec(`CREATE TABLE ` + table + postgrestest.Columns + `; ALTER TABLE ` + table + ` ALTER content SET COMPRESSION lz4`)
	var body strings.Builder
	parent := "null"
	text := make([]byte, 200)
	for i := 0; body.Len() < t.size; i++ {
		_, _ = rand.Read(text) // never fails
		fmt.Fprintf(&body, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-02-16T11:00:00.000Z","message":{"role":"user","content":"%x"}}`+"\n",
			i, parent, text)
		parent = fmt.Sprintf(`"%08x"`, i)
	}
	began := time.Now()
	_, err := t.CopyFrom(t.ctx, pgx.Identifier{table}, []string{"path", "content", "mtime_ms"}, pgx.CopyFromSlice(t.rows, func(i int) ([]any, error) {
		header := fmt.Sprintf(`{"type":"session","version":3,"id":"%08d-0000-7000-8000-000000000000","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/work/p%03d","title":"Session %d"}`+"\n", i, i%500, i)
		return []any{t.row(i), header + body.String(), time.Now().Add(-time.Hour).UnixMilli()}, nil
	}))
	t.must(err)
	t.exec(`VACUUM ANALYZE ` + table)
	if t.trigger {
		t.time(t.dir, fmt.Sprintf(`'%s' sql-trigger '%s' | PGOPTIONS='-c client_min_messages=warning' '%s' -qv ON_ERROR_STOP=1 '%[2]s' >&2`,
			t.daemon[0], t.url, t.server.Program("psql")))
	}
	fmt.Printf("%d rows of %d bytes, made in %.0f s\n", t.rows, t.size, time.Since(began).Seconds())
}

// row returns the path of a row: people have as many each.
func (t *team) row(i int) string {
	return fmt.Sprintf("/home/user%03d/.omp/agent/sessions/--work--/2026-02-16T10-20-30-000Z_%08d-0000-7000-8000-000000000000.jsonl", i%t.members, i)
}

// session returns the directory of a member's first session in a mount.
func (t *team) session(mount, member int) string {
	name := strings.TrimSuffix(filepath.Base(t.row(member)), ".jsonl")
	return t.mounts[mount].Path("sessions", fmt.Sprintf("user%03d/--work--", member), name)
}

// measure prints the load of the server, and the waits and the memory of the members.
func (t *team) measure(ctx context.Context) {
	alone := t.cpuDuring(10*time.Second, t.writers, func(i int, line string) {
		t.exec(`UPDATE omp_session_files SET content = content || $1, mtime_ms = mtime_ms + 1 WHERE path = $2`, line, t.row(t.rows-1-i))
	})
	began := time.Now()
	daemonLine := func(at string) []string { return append(slices.Clone(t.daemon), t.url, at) }
	for range t.members {
		t.mounts = append(t.mounts, t.mount(daemonLine))
	}
	fmt.Printf("%d mounts, ready after %.1f s\n", t.members, time.Since(began).Seconds())
	for i := range t.mounts {
		next := (i + 1) % t.writers
		t.time(t.session(i, next), "ls >/dev/null")
		t.follow(ctx, i)
	}
	time.Sleep(3 * time.Second) // the load of the starts is over then
	write := func(i int, line string) {
		t.must(os.WriteFile(t.session(i, i)+"/append", []byte(line), 0))
		t.mu.Lock()
		defer t.mu.Unlock()
		t.written[madeAt(line)] = time.Now()
	}
	// Each mount connects to the server for its first write, all in the same moment.
	t.cpuDuring(time.Second, t.writers, write)
	t.tell("a first")
	quiet := t.cpuDuring(10*time.Second, 0, nil)
	all := t.cpuDuring(10*time.Second, t.writers, write)
	fmt.Printf("server, of a core: writes alone %.1f %%, %d mounts that wait %.1f %%, with writes %.1f %%, beside the writes %.1f %%; connections: %d\n",
		alone, t.members, quiet, all, all-alone, t.connections)
	t.tell("a later")
	t.printMembers()
}

// printMembers prints the memory of the mounts, and the times of lists in one of them.
func (t *team) printMembers() {
	var memory []float64
	for _, m := range t.mounts {
		memory = append(memory, m.Memory("VmRSS"))
	}
	fmt.Printf("memory of a mount: median %s, at most %s\n", megabytes(median(memory)), megabytes(slices.Max(memory)))
	one := t.mounts[0]
	timeOf := func(line string) string {
		return seconds(t.time(one.At, line+" >/dev/null"))
	}
	first := timeOf("cat index.jsonl")
	again := timeOf("cat index.jsonl")
	recent := timeOf("ls recent")
	fmt.Printf("index.jsonl %s, again %s; ls recent %s; then %s of memory\n", first, again, recent, megabytes(one.Memory("VmRSS")))
}

// tell prints the times of the appends since it did so last, and the times after which their lines showed.
func (t *team) tell(which string) {
	time.Sleep(2 * time.Second)
	t.mu.Lock()
	defer t.mu.Unlock()
	var waits, delays []float64
	for made, ended := range t.written {
		waits = append(waits, ended.Sub(time.Unix(0, made)).Seconds())
		for _, at := range t.shown[made] {
			delays = append(delays, max(0, at.Sub(ended).Seconds()))
		}
	}
	clear(t.written)
	for what, times := range map[string][]float64{"append takes": waits, "line that is written shows after": delays} {
		fmt.Printf("%s %s: median %s, worst %s (%d)\n", which, what, seconds(median(times)), seconds(slices.Max(times)), len(times))
	}
}

// follow runs tail -f on the session of a writer in another mount. The first ten look often, to tell how late a line shows.
func (t *team) follow(ctx context.Context, mount int) {
	every := "1"
	if mount < min(2*t.writers, 10) {
		every = "0.01"
	}
	cmd := exec.CommandContext(ctx, "tail", "-n", "0", "-s", every, "-f", t.session(mount, (mount+1)%t.writers)+".jsonl")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	t.must(err)
	t.must(cmd.Start())
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			made := madeAt(lines.Text())
			if made != 0 && every != "1" { // one that looks once a second tells nothing
				t.mu.Lock()
				t.shown[made] = append(t.shown[made], time.Now())
				t.mu.Unlock()
			}
		}
		_ = cmd.Wait()
	}()
}

// madeAt returns when a line was made, 0 if it is none of ours.
func madeAt(line string) (nanoseconds int64) {
	_, at, _ := strings.Cut(line, "at=")
	_, _ = fmt.Sscan(at, &nanoseconds)
	return nanoseconds
}

// cpuDuring returns how much of a core the server takes while writers write a line each second.
func (t *team) cpuDuring(period time.Duration, writers int, write func(i int, line string)) float64 {
	before := t.cpu()
	began := time.Now()
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for time.Since(began) < period && t.ctx.Err() == nil {
				next := time.Now().Add(time.Second)
				write(i, fmt.Sprintf(`{"type":"message","message":{"role":"user","content":"at=%d"}}`+"\n", time.Now().UnixNano()))
				time.Sleep(time.Until(next))
			}
		})
	}
	for time.Since(began) < period {
		var n int
		t.query(&n, `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`)
		t.connections = max(t.connections, n-int(t.Stat().TotalConns()))
		time.Sleep(500 * time.Millisecond)
	}
	writing.Wait()
	return 100 * (t.cpu() - before) / time.Since(began).Seconds()
}

// cpu returns how many seconds of processor time the server has taken: its processes, and those that ended.
func (t *team) cpu() (total float64) {
	var postmaster string
	t.query(&postmaster, `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`)
	// utime, stime, and those of children, in ticks
	text, _ := t.output("/", `cat /proc/[0-9]*/stat 2>/dev/null | awk -v server=`+postmaster+` '
		{ own = $1 == server; sub(/.*\) /, ""); if (own || $2 == server) ticks += $12 + $13 + $14 + $15 }
		END { print ticks / 100 }'`)
	_, err := fmt.Sscan(text, &total)
	t.must(err)
	return total
}
