import os, stat, sys
for dir, dirs, files in os.walk(sys.argv[1]):
    assert os.lstat(dir).st_mode & 0o200, dir
    for f in [os.path.join(dir, f) for f in files]:
        st = os.lstat(f)
        if stat.S_ISLNK(st.st_mode): continue
        try: os.close(os.open(f, os.O_WRONLY))
        except OSError as e: opens = False
        else: opens = True
        archived = os.path.relpath(dir, sys.argv[1]).startswith("archive")
        assert not (opens and archived), f
        assert archived or opens == bool(st.st_mode & 0o222), (f, oct(st.st_mode))
        if opens: print(os.path.basename(f))
