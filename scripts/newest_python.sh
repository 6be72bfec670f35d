#!/bin/sh
# Print the newest Python from 3.11 to 3.14 that runs and can make virtual environments: one on the path, or one of pyenv's.
# A shim of pyenv whose version is not chosen does not run, and is passed over.

try() {
  [ -x "$1" ] || return
  version=$("$1" -c 'import sys, venv, ensurepip; print("%d%02d" % sys.version_info[:2])' 2>/dev/null) || return
  if [ "$version" -ge 311 ] && [ "$version" -le 314 ] && [ "$version" -gt "${best:-0}" ]; then
    best=$version found=$1
  fi
}

IFS=:
for folder in $PATH; do
  for name in python3.14 python3.13 python3.12 python3.11 python3 python; do try "$folder/$name"; done
done
for program in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do try "$program"; done

if [ -z "$found" ]; then
  echo "no Python from 3.11 to 3.14 was found: install one (with venv, on Debian python3-venv), or give make PYTHON=..." >&2
  exit 1
fi
echo "$found"
