import mmap, os, sys
want = open(sys.argv[2], "rb").read()
f, g = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[1], os.O_RDONLY)
assert os.fstat(f).st_size == len(want)
assert mmap.mmap(f, 0, prot=mmap.PROT_READ)[:] == want, "mmap"
for off in range(len(want) - 5, -1, -99_991):
    for fd in f, g:
        assert os.pread(fd, 4096, off) == want[off:off+4096], off
os.close(f)
assert open(sys.argv[1], "rb").read() == want, "whole"
assert os.pread(g, 100, len(want)) == b"", "behind the end"
print("same")