import mmap
append = os.open(sys.argv[1], os.O_WRONLY)
page = mmap.PAGESIZE
bad = 8 + 255 * page # a request has 256 pages at most
for size in (bad, bad + 4): # the second one is nothing but the newline, or the line's end too
    memory = mmap.mmap(-1, 1 << 21)
    line = memoryview(memory)[page - 8:page - 8 + size + 1]
    line[:] = b"y" * size + b"\n"
    done, error = 0, None
    while done < len(line) and error is None:
        try: done += os.write(append, line[done:])
        except OSError as e: error = errno.errorcode[e.errno]
    print(error)
