package fs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What people do to a directory by mistake: nothing of it may cost a conversation. $1 is the mount, $2 an empty
// directory elsewhere; scripts run in a session's directory.

// removals are the ways to remove everything.
var removals = map[string]string{
	"rm -rf":                  `rm -rf "$1"/*`,
	"rm -rf of the mount":     `rm -rf "$1"`,
	"rm -rf of a session":     `rm -rf "$PWD"`,
	"rm leaf":                 `rm leaf`,
	"busybox rm -rf":          `busybox rm -rf "$1"/*`,
	"find -delete":            `find "$1" -depth -delete`,
	"find -exec rm":           `find "$1" -name leaf -exec rm {} +`,
	"rsync --delete":          `mkdir "$2/empty"; rsync -a --delete "$2/empty/" "$1/"`,
	"rsync --delete, again":   `mkdir "$2/empty"; for n in 1 2 3; do rsync -a --delete --force "$2/empty/" "$1/sessions/"; done`,
	"git clean, elsewhere":    `git init -q "$2/repo"; git -C "$2/repo" --work-tree="$1" clean -fdx`,
	"git clean, around it":    `git -C "$1/.." clean -ffdx`,
	"git stash, around it":    `git -C "$1/.." stash -u; git -C "$1/.." checkout -f`,
	"mv of everything":        `mv "$1"/* "$2"`,
	"mv of each session":      `for s in "$1"/sessions/*/*; do mv "$s" "$2"; done`,
	"mv of what is in it":     `mv -- * "$2"`,
	"python's rmtree":         `python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)' "$1"`,
	"python's move":           `python3 -c 'import os, shutil, sys; shutil.move(os.getcwd(), sys.argv[1])' "$2"`,
	"unlink":                  `for f in *; do unlink "$f"; done`,
	"unlink, again and again": `for n in $(seq 50); do unlink leaf; done; sleep 1.1; for n in $(seq 50); do unlink leaf; done`,
}

// slips are other things that were not meant so: none of them is a whole line for a control file, or a new place for
// leaf.
var slips = map[string]string{
	"chmod -R":           `chmod -R u+w "$1"; chmod -R 777 "$1/sessions"; chmod 000 title leaf .`,
	"chown -R":           `chown -R 1:1 "$1"; chown -h 1:1 leaf`,
	"touch":              `find . -exec touch {} +; touch -h leaf; touch -d 2001-01-01 append labels title`,
	"> each file":        `find . -type f | while read -r f; do : > "$f"; done`,
	">> each file":       `find . -type f | while read -r f; do : >> "$f"; done`,
	"truncate":           `find . -type f -exec truncate -s 0 {} \;; truncate -s 100 append labels title fork`,
	"sed -i":             `sed -i s/a/b/ labels title append context.json; find "$1/sessions" -name '*.jsonl' -exec sed -i s/a/b/ {} +`,
	"perl -i":            `perl -pi -e s/a/b/ title labels; perl -i.bak -pe s/a/b/ title labels`,
	"cp -r into":         `cp -r /etc/hostname "$2" "$1"; cp /etc/hostname "$1/sessions"; cp -r "$2" .; cp -r "$2" entries`,
	"mkdir, mknod":       `mkdir new; mkfifo fifo; ln title title.hard; mkdir "$1/new" "$1/sessions/.new"`,
	"renames":            `mv title title.bak; mv labels labels.bak; mv leaf leaf.old; mv entries e2; mv leaf "$2"/..; mv "$1/sessions" "$1/old"`,
	"a link left behind": `ln -s entries/x.json forgotten; ln -s tree "leaf "; ln -s "$2" linked`,
	"links of no entry": `ln -sfn nobody leaf; ln -sfn /etc/passwd leaf; ln -sfn "$2" leaf; ln -sf labels leaf; cp -fP "$2" leaf; mv -T "$2" leaf; ` +
		`busybox ln -sfn nobody leaf`,
	"what is there again": `sort -o labels labels; cat labels | sponge labels; sponge labels < labels; cp labels "$2/l"; cp "$2/l" labels; ` +
		`sed s/a/a/ labels > labels`,
	"empty input": `cat /dev/null > title; cat /dev/null >> append; printf '' > labels; tee append labels title fork < /dev/null; ` +
		`dd if=/dev/null of=title; cp /dev/null labels; sponge title < /dev/null; : | sponge labels`,
	"vim": `vim -es -c wq labels < /dev/null; vim -es -c 'wq!' context.json < /dev/null; vim -es -c 'wq!' leaf < /dev/null; ` +
		`vim -es -c '%d' -c 'wq!' labels < /dev/null`,
	"ed": `printf '1\nd\nw\nq\n' | ed -s context.json; printf '1,$d\nw\nq\n' | ed -s labels`,
	"tar over it": `tar cf "$2/x.tar" append leaf labels entries; tar xf "$2/x.tar"; tar xf "$2/x.tar" --overwrite; ` +
		`tar xf "$2/x.tar" --unlink-first; tar xf "$2/x.tar" --recursive-unlink`,
	"rsync over it": `rsync -a --exclude title "$PWD/" "$2/copy/"; rsync -aI --exclude title "$2/copy/" "$PWD/"; ` +
		`rsync -a --inplace "$2/copy/" "$PWD/"; rsync -aI --delete --exclude title "$2/copy/" "$PWD/"`,
	"install":     `install -m 600 /dev/null labels; ln -f labels "$2/l"; install -d x`,
	"find -empty": `find "$1" -empty -delete`,
	"fallocate":   `fallocate -l 10 title; fallocate -p -l 10 labels; dd if=/dev/null of=append seek=5`,
}

// keep is what must be there as it was after each script: all of SOURCE, and each session's leaf.
type keep struct {
	m      *mount
	source string
	leaves string
}

func (k *keep) looks() string {
	return shell(k.m.t, `cd "$1" && find sessions -name leaf -type l | sort | while read -r l; do echo "$l $(readlink "$l")"; done`, k.m.dir)
}

// after runs a script, which may fail, and looks at what it did.
func (k *keep) after(t *testing.T, script, session string) {
	t.Helper()
	_, problems, _ := tool(t, "bash", "-c", `cd "$3" && `+script, "bash", k.m.dir, t.TempDir(), session)
	require.NotContains(t, problems, "command not found")
	before := k.source
	k.source = statListing(t, k.m.source)
	require.Equal(t, before, k.source, "SOURCE is as it was")
	seen := ""
	for until := time.Now().Add(patience); seen != k.leaves && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		seen = k.looks()
	}
	require.Equal(t, k.leaves, seen, "each leaf is where it was")
}

// newKeep mounts the demo in a git repository, with a session that was just made.
func newKeep(t *testing.T) (k *keep, session string) {
	for _, name := range []string{"rsync", "busybox", "git", "sponge", "vim", "ed", "perl"} {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, "%s is not installed", name)
		}
	}
	repo := t.TempDir()
	dir := filepath.Join(repo, "m")
	require.NoError(t, os.Mkdir(dir, 0o755))
	shell(t, `cd "$1" && git init -q . && echo x > tracked && git add tracked && git -c user.name=x -c user.email=x commit -qm x`, repo)
	m := mountForTest(t, demo(t), at(dir))
	fresh := ask(t, m.path("new-session"), anywhere("/home/dev/elsewhere"))
	require.NoError(t, put(m.path(fresh, "append"), message("typed")+"\n"))
	session = m.path(demoSession)
	require.NoError(t, put(filepath.Join(session, "labels"), strings.TrimSuffix(names(t, filepath.Join(session, "entries"))[1], ".json")+" a label\n"))
	run(t, "ln", "-sfn", "entries/"+names(t, filepath.Join(session, "entries"))[2], filepath.Join(session, "leaf"))
	k = &keep{m: m, source: statListing(t, m.source)}
	k.leaves = k.looks()
	require.Greater(t, strings.Count(k.leaves, "\n"), 5)
	require.Contains(t, k.leaves, fresh)
	return k, session
}

// TestRemovals: removing everything removes nothing, and changes neither a byte nor a time.
func TestRemovals(t *testing.T) {
	onceIsEnough(t)
	for name, script := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, session := newKeep(t)
			k.after(t, script, session)
		})
	}
}

// TestSlips: nothing but a whole line that a control file takes, or a new place for leaf, changes anything.
func TestSlips(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	k, session := newKeep(t)
	for name, script := range slips {
		t.Run(name, func(t *testing.T) { k.after(t, script, session) })
	}
}
