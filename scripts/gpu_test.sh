#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_test.sh [--pack FILE.tar.xz | OPTIONS]: the tests on a GPU (docs/gpu.md); options are those of
# scripts/gpu_test.py. --pack: makes a package that does them on a machine without Debian, which needs
# Python with torch and nothing else. TRAINYARD_PORTABLE: the program to pack, else it is built.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  package=$(realpath -m "$1")
  cd "$here/.."
  program=${TRAINYARD_PORTABLE:-build/release/trainyard-portable}
  [ -n "${TRAINYARD_PORTABLE:-}" ] || scripts/build.sh release trainyard-portable
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  top=$scratch/trainyard-gpu-test
  mkdir -p "$top/bin" "$top/lib" "$top/scripts/train_test" "$top/python/tests" "$top/workloads"
  strip -o "$top/bin/trainyard" "$program"
  # All that the machine need not have: not the C library, which belongs to its loader.
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -v -E '/(libc|libm|libdl|librt|libpthread|libresolv)\.so' | xargs -I '{}' cp -L '{}' "$top/lib"
  cp -r scripts/gpu_test scripts/gpu_test.py "$top/scripts"
  for part in __init__ cluster figures trail; do cp "scripts/train_test/$part.py" "$top/scripts/train_test"; done
  cp -r python/trainyard "$top/python"
  cp python/tests/stand_in_agent.py "$top/python/tests"
  cp workloads/*.py "$top/workloads"
  cp LICENSE docs/gpu.md "$top"
  cat >"$top/gpu-test" <<'END'
#!/bin/sh
# gpu-test [OPTIONS]: the tests of gpu.md; --help lists the options. Needs Python with torch.
for python in python3 /usr/bin/python3; do
  "$python" -c 'import torch' 2>/dev/null && break
done
exec "$python" "$(dirname "$0")/scripts/gpu_test.py" "$@"
END
  chmod 755 "$top/gpu-test"
  find "$top" -name __pycache__ -prune -exec rm -rf '{}' +
  mkdir -p "$(dirname "$package")"
  tar -C "$scratch" --owner=0 --group=0 -caf "$package" trainyard-gpu-test
  needs=$(objdump -T "$top/bin/trainyard" "$top"/lib/* | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
  echo "$1: $(du -h "$package" | cut -f 1); needs $(uname -m), glibc ${needs#GLIBC_} and Python with torch:" \
    "tar -xf $(basename "$package") && trainyard-gpu-test/gpu-test --live"
}

case "${1:-}" in
  --pack)
    [ $# -eq 2 ] || {
      echo "usage: ./dev prove gpu --pack FILE" >&2
      exit 2
    }
    pack "$2"
    exit ;;
  --live)
    case " $* " in
      *" --trainyard"*) ;;
      *) (cd "$here/.." && scripts/build.sh release trainyard) ;;
    esac ;;
esac
# The one that has torch: Debian's, where another one stands before it on the PATH.
for python in python3 /usr/bin/python3; do
  "$python" -c 'import torch' 2>/dev/null && break
done
exec "$python" "$here/gpu_test.py" "$@"
