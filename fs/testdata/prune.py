import json, os, subprocess, sys
mount, entries, limit, a = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), os.path.join(sys.argv[1], "sessions/p/a")
def text(b): return json.loads(b)["message"]["content"]
os.chdir(os.path.join(a, "tree"))
names = sorted(os.listdir(os.path.join(a, "entries")))
files = {n: os.open(os.path.join(a, "entries", n), os.O_RDONLY) for n in names[::40]}
want = {n: os.pread(fd, 1 << 16, 0) for n, fd in files.items()}
stream = os.scandir(os.path.join(a, "entries"))
listed = [next(stream).name for _ in range(3)]
os.symlink("entries/" + names[0], os.path.join(a, "CuXXXXXX"))
for round in range(3):
    found = subprocess.run(["find", mount, "-type", "f", "-path", "*/entries/*", "-exec", "cat", "{}", "+"], check=True, stdout=subprocess.PIPE).stdout
    assert sorted(map(text, found.splitlines())) == sorted("%s %d" % (s, n) for s in "abcde" for n in range(entries)), "content"
    subprocess.run(["find", mount, "-printf", "%s %t"], check=True, stdout=subprocess.DEVNULL)
    for n, fd in files.items():
        assert os.pread(fd, 1 << 16, 0) == want[n] and os.fstat(fd).st_size == len(want[n]), n
for n in range(12 * limit): # names that are not there, for which the kernel keeps the directory where they were looked for
    assert not os.path.lexists(os.path.join(mount, "search/q%d/%d.git" % (n, n)))
assert os.getcwd() == os.path.join(a, "tree") and os.listdir("."), "working directory"
listed += [e.name for e in stream]
assert sorted(listed) == names, "listing"
os.rename(os.path.join(a, "CuXXXXXX"), os.path.join(a, "leaf"))
assert os.readlink(os.path.join(a, "leaf")) == "entries/" + names[0], "leaf"
