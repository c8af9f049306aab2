#!/usr/bin/env bash
# Installs Debian packages that are missing. Each argument is PACKAGE, or COMMAND:PACKAGE to skip the package when the command is there.
set -euo pipefail
missing=()
for want in "$@"; do
  command=${want%%:*} package=${want#*:}
  if [[ $want == *:* ]] && command -v "$command" >/dev/null; then continue; fi
  dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0
command -v apt-get >/dev/null || { echo "please install: ${missing[*]} (this machine has no apt-get)" >&2; exit 2; }
as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo)
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null
