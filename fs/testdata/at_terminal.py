import os, pty, signal, sys
agent, session = sys.argv[1:3]
ready, tell = os.pipe()
pid, master = pty.fork()
if pid == 0:
    held = [os.open(os.path.join(agent, name + ending), os.O_RDWR|os.O_CREAT, 0o600)
            for name in ("agent.db", "models.db", "history.db") for ending in ("", "-wal", "-shm")]
    os.write(tell, os.ttyname(0).encode() + b"\n")
    signal.pause()
terminal = os.fdopen(ready).readline().strip()[5:].replace("/", "-")
crumbs = os.path.join(agent, "terminal-sessions")
os.makedirs(crumbs, exist_ok=True)
def go_to(session):
    with open(os.path.join(crumbs, terminal), "w") as f: f.write("/home/dev/project\n%s\ncwdstat 1 2\n" % session)
go_to(session)
with open(sys.argv[3], "w") as f: f.write("%s %d" % (terminal, pid))
print("ready", flush=True)
for line in sys.stdin:
    go_to(line.strip())
    print("gone", flush=True)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
