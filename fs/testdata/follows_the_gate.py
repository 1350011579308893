import errno, os, socket, sys, time
raw, who, lines, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), "\0omp-file-lock-" + sys.argv[4]
def take():
    start = time.time()
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            s.bind(name)
            return s
        except OSError as e:
            s.close()
            if e.errno != errno.EADDRINUSE: raise
        if time.time() - start > 60: raise SystemExit("no lock in a minute")
        time.sleep(0.002)
waited = 0
for i in range(lines):
    start = time.time()
    gate = take()
    waited += time.time() - start > 0.5
    fd = os.open(raw, os.O_WRONLY|os.O_APPEND)
    size = os.fstat(fd).st_size
    time.sleep(0.0002) # for others to write, if they do
    line = ('{"type":"custom","customType":"x","id":"%s-%d","parentId":null,'
        '"timestamp":"2026-02-16T11:00:00.000Z","data":"%s"}\n' % (who, i, "x" * (i * 37 % 3000))).encode()
    assert os.write(fd, line) == len(line)
    assert os.fstat(fd).st_size == size + len(line), "somebody wrote under our lock"
    os.close(fd)
    gate.close()
print("done", waited)
