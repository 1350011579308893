import os, sys
for shown, real in (sys.argv[1:3], sys.argv[3:5]):
    opened = []
    for i in range(30):
        want = b"%d " % i * (i % 5 * 3000 + 1)
        with open(real + ".tmp", "wb") as f: f.write(want)
        os.rename(real + ".tmp", real)
        opened.append((os.open(shown, os.O_RDONLY), want))
        for fd, want in opened:
            got = os.pread(fd, 1 << 20, 0)
            if got != want: raise SystemExit("%s, round %d: %r, not %r" % (shown, i, got[:20], want[:20]))
        with open(real, "ab") as f: f.write(b"more")
        opened[-1] = opened[-1][0], want + b"more"
        got = os.pread(opened[-1][0], 1 << 20, 0)
        if got != want + b"more": raise SystemExit("%s, round %d: growth is not seen" % (shown, i))
        if i % 3 == 2: os.close(opened.pop(0)[0])
