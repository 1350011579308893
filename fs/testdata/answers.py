import sys
line = '{"type":"custom","customType":"x","id":"%s"}\n'
with open(sys.argv[1], sys.argv[2]) as f:
    for id in ("one", "two"):
        f.write(line % (sys.argv[2] + id))
        f.flush()
        print(f.readline()[2:], end="")
with open(sys.argv[1], sys.argv[2] + "b", buffering=0) as f:
    f.write((line % (sys.argv[2] + "three")).encode())
    f.seek(0)
    print(f.read().decode()[2:], end="")
