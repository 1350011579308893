project = sys.argv[1]
def keep(name, read):
    fd = os.open(project + name, os.O_RDONLY)
    files.append(fd)
    if read: os.listdir(fd)
for name, read in (("/s/branches.tsv", False), ("/s/entries", True)):
    answers, files = collections.Counter(), []
    for n in range(60): answers[attempt(lambda: keep(name, read))] += 1
    small = attempt(lambda: (os.listdir(project + "/small/entries"), open(project + "/small/branches.tsv").read()))
    full = open(sys.argv[2]).read()
    for fd in files: os.close(fd)
    print(sorted(answers), answers["ok"] >= 8, small, ": memory is full: 1" in full, soon(lambda: keep(name, read)))
    print(open(sys.argv[2]).read())
    for fd in files[-1:]: os.close(fd)
