#!/bin/sh
# Prints the path of the Bun that package.json pins, after installing node_modules where they are
# missing. Works with node and npm, with npm that blocks install scripts, and with any Bun alone.
# Refuses every other version of Bun: the facts that the code stands on were measured with one.
# Always holds: package-lock.json is obeyed and never written.

find_pinned_bun() {
  for candidate in "${BUN:-}" node_modules/.bin/bun node_modules/@oven/bun-*/bin/bun \
    "$(command -v bun)"; do
    if [ -x "$candidate" ] && [ "$("$candidate" --version 2>/dev/null)" = "$wanted" ]; then
      case $candidate in /*) echo "$candidate" ;; *) echo "$root/$candidate" ;; esac
      return 0
    fi
  done
  return 1
}

install_modules() {
  if command -v npm >/dev/null 2>&1; then
    npm ci --no-audit --no-fund >&2
  elif command -v bun >/dev/null 2>&1; then
    bun install --frozen-lockfile >&2
  else
    echo "watchdog: error: found neither npm nor bun, one of them is needed to build" >&2
    echo "watchdog: hint: apt-get install npm" >&2
    return 1
  fi
}

toolchain() {
  root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd) || return 1
  cd "$root" || return 1
  wanted=$(sed -n 's/.*"bun": *"\([0-9.]*\)".*/\1/p' package.json)
  if [ ! -d node_modules/zod ] || [ ! -d node_modules/consola ]; then
    install_modules || return 1
  fi
  find_pinned_bun && return 0
  # A stub stands in node_modules/.bin where npm did not run the package's install script.
  if [ -f node_modules/bun/install.js ] && command -v node >/dev/null 2>&1; then
    node node_modules/bun/install.js >&2 && find_pinned_bun && return 0
  fi
  echo "watchdog: error: found no bun $wanted in node_modules" >&2
  echo "watchdog: hint: rm -rf '$root/node_modules' and try again" >&2
  return 1
}

toolchain
