#!/bin/sh
# Installs one file, $PREFIX/bin/watchdog, or removes it again. Builds it first where dist/ holds
# none. Refuses a binary whose checksum is wrong and a target that is not watchdog's.
# Always holds: the target is the old binary or the new one, complete and executable (written
# beside, then renamed); a watchdog that runs goes on with its old file. The body is in functions
# that the last line calls, so that half of this file does nothing.

usage() {
  cat <<'END'
Install or remove watchdog: one file, PREFIX/bin/watchdog.

usage: sh install.sh [--uninstall | --help]

  PREFIX=DIR    where to install (default: /usr/local for root, ~/.local for others)
  --uninstall   remove PREFIX/bin/watchdog
  --help        print this

  PREFIX="$HOME/.local" sh install.sh
END
}

fail() {
  printf 'watchdog: error: %s\n' "$1" >&2
  printf 'watchdog: hint: %s\n' "$2" >&2
  exit "${3:-1}"
}

# A word as a shell reads it back; plain words stay plain.
quote() {
  case $1 in
    *[!A-Za-z0-9_/.+:@-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf '%s' "$1" ;;
  esac
}

choose_target() {
  if [ -z "${PREFIX:-}" ]; then
    if [ "$(id -u)" -eq 0 ]; then
      PREFIX=/usr/local
    elif [ -n "${HOME:-}" ]; then
      PREFIX=$HOME/.local
    else
      fail 'found neither PREFIX nor HOME' 'PREFIX=/usr/local sh install.sh' 64
    fi
  fi
  case $PREFIX in
    /*) ;;
    *) PREFIX=$called_in/${PREFIX#./} ;;
  esac
  # No trailing slash: the paths that are printed are the ones to paste.
  while [ "$PREFIX" != "${PREFIX%/}" ]; do PREFIX=${PREFIX%/}; done
  bin=$PREFIX/bin
  target=$bin/watchdog
}

# Every build of watchdog names this variable; nobody else's program does.
is_ours() {
  grep -aq WATCHDOG_RUN_ID "$1"
}

check_target() {
  if [ -d "$target" ]; then
    fail "$target is a directory, expected a file or nothing" "$elsewhere" 73
  fi
  if [ -e "$target" ] && ! is_ours "$target"; then
    fail "$target is another program, not this watchdog" "$elsewhere" 73
  fi
}

build_if_missing() {
  if [ -f "$here/dist/watchdog" ]; then
    newer=$(find "$here/src" "$here/build.ts" -newer "$here/dist/watchdog" 2>/dev/null | head -n 1)
    [ -z "$newer" ] || echo "note: dist/watchdog is older than $newer (npm run build makes it anew)"
    return 0
  fi
  # It has said what is missing.
  bun=$(sh "$here/test/support/toolchain.sh") || exit 1
  echo "building dist/watchdog ..."
  (cd "$here" && "$bun" build.ts) >&2 ||
    fail 'the build failed, see above' "cd $(quote "$here") && npm run build"
}

sha256_of() {
  sha256sum <"$1" | cut -d ' ' -f 1
}

# Checks the copy, not its source: what was read and written is what counts.
write_beside() {
  wanted=$(cut -d ' ' -f 1 "$here/dist/watchdog.sha256" 2>/dev/null) || wanted=
  [ -n "$wanted" ] ||
    fail "found no checksum in $here/dist/watchdog.sha256" "rm -r $(quote "$here/dist")"
  umask 022
  mkdir -p "$bin" 2>/dev/null || fail "cannot create $bin" "$elsewhere" 73
  beside=$bin/.watchdog-new-$$
  trap 'rm -f "$beside"' EXIT
  trap 'exit 130' HUP INT TERM
  cp "$here/dist/watchdog" "$beside" ||
    fail "cannot write in $bin" "$elsewhere" 73
  found=$(sha256_of "$beside")
  if [ "$found" != "$wanted" ]; then
    fail "dist/watchdog is damaged: found sha256 $found, expected $wanted" \
      "rm -r $(quote "$here/dist") && sh $(quote "$here/install.sh")"
  fi
  chmod 0755 "$beside" || fail "cannot set the mode of $beside" "$elsewhere"
  version=$("$beside" --version) ||
    fail "the new binary does not start in $bin (is it mounted noexec?)" "$elsewhere"
}

put_in_place() {
  verb=installed
  [ ! -e "$target" ] || verb=replaced
  mv -f "$beside" "$target" || fail "cannot rename to $target" "ls -ld $(quote "$bin")" 73
}

undo_line() {
  printf 'PREFIX=%s sh %s --uninstall' "$(quote "$PREFIX")" "$(quote "$here/install.sh")"
}

report() {
  echo "$verb: $target ($version)"
  echo "undo: $(undo_line)"
  case :$PATH: in
    *:"$bin":*) ;;
    *)
      echo "note: $bin is not on your PATH; for this shell:"
      echo "  export PATH=$(quote "$bin"):\"\$PATH\""
      ;;
  esac
  echo "cron has a short PATH, so a crontab line names the whole path (crontab -e):"
  # In a crontab, % ends the command unless it is escaped (crontab(5)).
  echo "  15 3 * * * $(quote "$target" | sed 's/%/\\%/g') run -- /path/to/nightly-backup.sh"
}

install_binary() {
  check_target
  build_if_missing
  write_beside
  put_in_place
  report
}

uninstall_binary() {
  if [ ! -e "$target" ] && [ ! -L "$target" ]; then
    echo "nothing to remove: $target does not exist"
    return 0
  fi
  check_target
  rm -f "$target" || fail "cannot remove $target" "ls -ld $(quote "$bin")" 73
  # Only where they are empty now: bin/ and then PREFIX itself, never the home directory.
  if rmdir "$bin" 2>/dev/null && [ "$PREFIX" != "${HOME:-}" ]; then
    rmdir "$PREFIX" 2>/dev/null || :
  fi
  echo "removed: $target"
  echo "undo: PREFIX=$(quote "$PREFIX") sh $(quote "$here/install.sh")"
}

main() {
  called_in=$(pwd)
  here=$(cd "$(dirname "$0")" && pwd) || exit 1
  elsewhere="PREFIX=/some/other/place sh $(quote "$here/install.sh")"
  [ "$#" -le 1 ] || fail "found $# words, expected at most one" 'sh install.sh --help' 64
  case ${1:-} in
    '') action=install_binary ;;
    --uninstall) action=uninstall_binary ;;
    --help | -h) usage && return 0 ;;
    *) fail "unknown word '$1', expected --uninstall or --help" 'sh install.sh --help' 64 ;;
  esac
  choose_target
  "$action"
}

main "$@"
