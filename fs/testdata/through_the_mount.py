import errno, os, sys
append, who, lines = sys.argv[1], sys.argv[2], int(sys.argv[3])
fd = os.open(append, os.O_RDWR)
busy = 0
for i in range(lines):
    line = ('{"type":"custom","customType":"x","id":"%s-%d","data":"%s"}\n' % (who, i, "x" * (i * 41 % 3000))).encode()
    while True:
        try:
            half = i * 13 % len(line)
            for part in (line[:half], line[half:]):
                if part: assert os.write(fd, part) == len(part)
            break
        except OSError as e:
            if e.errno != errno.EBUSY: raise
            busy += 1
    assert os.read(fd, 100).decode() == "%s-%d\n" % (who, i)
print("done", busy)
