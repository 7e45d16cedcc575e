#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package-test.sh FILE.deb FILE.whl: installs the package on this machine, with what it depends on, simulates
# the bundled example, runs jobs on a live cluster (one with the Python library, that of the package and that
# of the wheel), removes the package, and looks whether anything of it is left or anything else has changed.
# As root or with sudo; the package must not be installed.
set -eu
source=$(realpath "$(dirname "$0")/..")
package=$(realpath "$1")
wheel=$(realpath "$2")
scratch=$(mktemp -d)
cluster=
installed=
finish() {
  [ -z "$cluster" ] || kill -INT "$cluster" 2>/dev/null || true
  [ -z "$installed" ] || $as_root dpkg --purge trainyard >/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
fail() {
  echo "package: $1" >&2
  exit 1
}
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
# All paths of the system but what belongs to dpkg and apt themselves, and useradd's backups.
system_files() {
  $as_root find /etc /opt /usr /var/lib -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path '/etc/sub?id-' \) \
    -prune -o -print | sort >"$1"
}

[ ! -e /usr/bin/trainyard ] || fail "/usr/bin/trainyard is here; expected a machine without Trainyard"
version=$(dpkg-deb --field "$package" Version)
install_package() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
    >"$scratch/apt.log" 2>&1
}
# A bare machine knows no packages before the update.
install_package || { $as_root apt-get update -qq && install_package; } || {
  cat "$scratch/apt.log" >&2
  fail "$package cannot be installed"
}
installed=1
dpkg --listfiles trainyard | sort >"$scratch/listed"
system_files "$scratch/installed"

# Used as by somebody who has nothing but the package.
cd "$scratch"
export HOME="$scratch" TRAINYARD_CONTROLLER=127.0.0.1:7479
unset XDG_STATE_HOME TRAINYARD_PLUGINS
[ "$(trainyard --version)" = "trainyard $version" ] || fail "it says it is $(trainyard --version)"
[ -s /usr/share/doc/trainyard/copyright ] || fail "there is no licence"
gzip -dc /usr/share/man/man1/trainyard-submit.1.gz | grep -q '^.SH OPTIONS' || fail "there is no manual page"
bash -c '. /usr/share/bash-completion/completions/trainyard && complete -p trainyard' >/dev/null ||
  fail "bash does not complete it"
data=/usr/share/trainyard/data
trainyard simulate $data/example_trace.csv --cluster $data/example_cluster.toml \
  --profiles $data/example_profiles.csv --policy srtf --out simulated >simulated.log ||
  fail "the example cannot be simulated"
[ "$(grep -c ',completed,' simulated/jobs.csv)" = 400 ] || fail "not all jobs of the example completed"

trainyard up --nodes 1 --gpus 2 --state state --listen $TRAINYARD_CONTROLLER >up.log 2>&1 &
cluster=$!
until grep -q 'submit with' up.log; do
  kill -0 "$cluster" 2>/dev/null || fail "no cluster: $(cat up.log)"
  sleep 0.1
done
job=$(trainyard submit --gpus 2 -- /bin/sh -c 'echo "$WORLD_SIZE workers"; exit 0' | grep -o '[0-9]*')
trainyard logs -f "$job" >job.log 2>&1 || {
  cat up.log job.log >&2
  fail "the job has not completed"
}
grep -q '^2 workers$' job.log || fail "the job's log is: $(cat job.log)"

# A trainer of the standard library alone, with the package's module and with the wheel's.
cat >trainer.py <<'END'
from trainyard.train import Job

job = Job()
for iteration in range(5):
    with job.stage("load"):
        pass
    job.progress(iteration + 1)
print(job.rank, "of", job.world_size, "has done", iteration + 1, flush=True)
job.finished()
END
mkdir -p wheel
/usr/bin/python3 -m zipfile -e "$wheel" wheel
for path in '' "$scratch/wheel"; do
  job=$(trainyard submit --gpus 1 --env PYTHONPATH="$path" -- /usr/bin/python3 -B trainer.py | grep -o '[0-9]*')
  trainyard logs -f "$job" >job.log 2>&1 || {
    cat up.log job.log >&2
    fail "the job with the Python library has not completed"
  }
  grep -q '^0 of 1 has done 5$' job.log || fail "its log is: $(cat job.log)"
done
kill -INT "$cluster"
wait "$cluster" || fail "the cluster has not ended in order: $(cat up.log)"
cluster=

# With users, TLS and the launcher: what the package is for on a cluster of several machines.
$as_root env -u TRAINYARD_CONTROLLER /usr/bin/python3 -B "$source/tests/acceptance/day.py" ||
  fail "the day of three users has failed"
# Its nodes mounted folders of their own over this one.
[ ! -d /etc/trainyard ] || $as_root rmdir --ignore-fail-on-non-empty /etc/trainyard

# What Python compiles beside the library goes, too.
$as_root env -u PYTHONDONTWRITEBYTECODE /usr/bin/python3 -c 'import trainyard.train'
compiled=$(find /usr/lib/python3/dist-packages/trainyard -name __pycache__)
[ -n "$compiled" ] || fail "Python has compiled nothing"
$as_root dpkg --purge trainyard >/dev/null
installed=
system_files "$scratch/removed"
comm -13 "$scratch/installed" "$scratch/removed" >"$scratch/added"
[ ! -s "$scratch/added" ] || fail "it has left: $(cat "$scratch/added")"
comm -23 "$scratch/installed" "$scratch/removed" | comm -23 - "$scratch/listed" >"$scratch/taken"
[ ! -s "$scratch/taken" ] || fail "with it have gone: $(cat "$scratch/taken")"
while read -r path; do
  [ -d "$path" ] || [ ! -e "$path" ] || fail "it has left $path"
done <"$scratch/listed"
[ ! -e /usr/share/trainyard ] && [ ! -e /usr/share/doc/trainyard ] && [ ! -e /usr/include/trainyard ] ||
  fail "it has left a folder"
echo "package: $(basename "$package") installs, simulates, runs a job and goes without a trace"
