# A guest whose kernel is the client. $options and $path are those of the mount. The line KILL ends its first part: then the
# server is killed and started again at the same port.
echo
mount -i -t nfs -o addr=10.0.2.2,$options 10.0.2.2:$path /mnt || exit 1
cd /mnt
walk
tar cf - by-id sessions/--work-- sessions/--guest--/*_guest >/dev/null || exit 1
cp -a by-date /tmp/copy || exit 1
cd "$(echo sessions/*/*_guest)" || exit 1
say() { echo '{"type":"message","message":{"role":"user","content":"'"$1"'"}}' >>append; }
ls entries | wc -l | sed 's/^/entries /'
(i=0; while [ $i -lt 200 ]; do say "grow $i." || echo failed grow $i; i=$((i+1)); done) &
ls ../*_many/entries entries | sort | uniq -d | sed 's/^/twice /'
wait
i=0; while [ $i -lt 1000 ]; do say "append $i." || echo failed $i; i=$((i+1)); done
w() { j=0; while [ $j -lt 100 ]; do say "writer $1 line $j." || echo failed $1 $j; j=$((j+1)); done; }
w 1 & w 2 & w 3 & wait
echo junk >>append; echo "junk $?"
cat last-error
echo A title >title || echo failed title
cat title
ln -sfn entries/guest001.json leaf || echo failed leaf
echo "leaf $(readlink leaf)"
touch new; echo "new $?"
set -- ../*_guest.jsonl
exec 3<"$1"
echo KILL
i=0; while [ $i -lt 100 ]; do say "kill $i." && echo "acked kill $i."; i=$((i+1)); sleep 0.05; done
md5sum <&3 >/dev/null && echo open file read
cat title
ls ../*_many/entries | wc -l | sed 's/^/many /'
md5sum ../*_big.jsonl | cut -c1-32 | sed 's/^/big /'
