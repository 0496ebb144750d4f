# What must hold of the package where systemd runs its units: both serve; one that is frozen, and one that is killed, is started again and has its
# names; wrong options do not start it again and again; a client at its socket starts it; after the purge nothing is left.
naming="--name-service corbaloc::127.0.0.1:2809/NameService"
channel=corbaloc::127.0.0.1:2810/EventService

# until SECONDS COMMAND...: waits until the command succeeds.
until_true() {
  left=$1
  shift
  while ! "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || { systemctl status --no-pager rtorb-naming rtorb-events; exit 1; }
    sleep 1
  done
}
has() { [ "$(systemctl show --value --property "$2" "$1")" = "$3" ]; }
main() { systemctl show --value --property MainPID "$1"; }

has rtorb-naming ActiveState active
has rtorb-events ActiveState active
rtorb ping "$channel"
rtorb naming bind drive corbaloc::127.0.0.1:9/drive $naming

mkdir -p /etc/systemd/system/rtorb-naming.service.d
printf '[Service]\nWatchdogSec=2\n' > /etc/systemd/system/rtorb-naming.service.d/check.conf
systemctl daemon-reload
systemctl restart rtorb-naming
sleep 5
has rtorb-naming NRestarts 0
kill -STOP "$(main rtorb-naming)"
until_true 60 has rtorb-naming NRestarts 1
until_true 60 has rtorb-naming ActiveState active
rtorb naming resolve drive $naming

kill -KILL "$(main rtorb-events)"
until_true 60 has rtorb-events NRestarts 1
until_true 60 has rtorb-events ActiveState active
rtorb ping "$channel"

sed -i 's/--listen/--listne/' /etc/default/rtorb-events
systemctl restart rtorb-events && exit 1
has rtorb-events ExecMainStatus 2
has rtorb-events ActiveState failed

rm -r /etc/systemd/system/rtorb-naming.service.d
# Socket activation: systemd has the socket, the first client starts the service, also after it was stopped, and names are kept.
systemctl daemon-reload
systemctl stop rtorb-naming
sed -i 's,--listen [^"]*,--listen inherited://naming,' /etc/default/rtorb-naming
systemctl start rtorb-naming.socket
has rtorb-naming ActiveState inactive
rtorb naming resolve drive $naming --timeout 60s
until_true 60 has rtorb-naming ActiveState active
kill -KILL "$(main rtorb-naming)"
rtorb naming resolve drive $naming --timeout 60s
systemctl stop rtorb-naming
has rtorb-naming ActiveState inactive
rtorb naming resolve drive $naming --timeout 60s

dpkg --no-triggers --purge rtorb
has rtorb-naming ActiveState inactive
has rtorb-naming.socket ActiveState inactive
getent passwd rtorb && exit 1
left=$(find / -xdev -name '*rtorb*' ! -path '/var/lib/dpkg/*')
[ -z "$left" ]
echo "The units served under systemd, were started again when they hung or died and by their clients, and went without a trace."
