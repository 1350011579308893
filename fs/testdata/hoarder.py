import collections, errno, os, sys, time
def attempt(f):
    try: f()
    except OSError as e: return errno.errorcode[e.errno]
    return "ok"
def soon(f):
    for n in range(1000):
        if attempt(f) == "ok": return "ok"
        time.sleep(0.01)
    return attempt(f)
def write(fd, size):
    piece = b"x" * (1 << 20)
    while size > 0: size -= os.write(fd, piece[:size])
