#!/bin/sh
# Installs one file, $PREFIX/bin/watchdog, or removes it again. Builds it first where dist/ holds
# none. Refuses a binary whose checksum is wrong and a target that is not watchdog's.
# Always holds: the target is the old binary or the new one, complete and executable (written
# beside, then renamed); a watchdog that runs goes on with its old file; no directory is removed but
# one that the same, failing call has made. The body is in functions that the last line calls, so
# that half of this file does nothing.

usage() {
  cat <<END
Install or remove watchdog: one file, PREFIX/bin/watchdog.

usage: sh install.sh [--uninstall | --help]

  PREFIX=DIR    where to install (default: /usr/local for root, ~/.local for others)
  --uninstall   remove PREFIX/bin/watchdog
  --help        print this

  PREFIX="\$HOME/.local" sh $self
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

# Finds this very file, through links, and the project that it lies in. Sets self to what calls it
# from anywhere, and here to nothing where it came through a pipe or lies alone.
find_project() {
  self=install.sh
  here=
  script=$(readlink -f -- "$0" 2>/dev/null) || return 0
  directory=$(dirname -- "$script")
  [ -f "$script" ] || return 0
  if [ -f "$directory/dist/watchdog" ] || [ -f "$directory/test/support/toolchain.sh" ]; then
    self=$(quote "$script")
    here=$directory
  fi
}

choose_target() {
  if [ -z "${PREFIX:-}" ]; then
    if [ "$(id -u)" -eq 0 ]; then
      PREFIX=/usr/local
    elif [ -n "${HOME:-}" ]; then
      PREFIX=$HOME/.local
    else
      fail 'found neither PREFIX nor HOME' "PREFIX=/usr/local sh $self" 64
    fi
  fi
  case $PREFIX in
    /*) ;;
    *) PREFIX=$(pwd)/${PREFIX#./} ;;
  esac
  # No trailing slash: the paths that are printed are the ones to paste. The root alone keeps its
  # own, because an empty PREFIX means the default.
  while [ "$PREFIX" != / ] && [ "$PREFIX" != "${PREFIX%/}" ]; do PREFIX=${PREFIX%/}; done
  bin=${PREFIX%/}/bin
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
    [ -z "$newer" ] || echo "note: dist/watchdog is older than $newer; this makes it anew:
  $anew"
    return 0
  fi
  # It has said what is missing.
  bun=$(sh "$here/test/support/toolchain.sh") || exit 1
  echo "building dist/watchdog ..."
  (cd "$here" && "$bun" build.ts) >&2 ||
    fail 'the build failed, see above' "cd $(quote "$here") && $(quote "$bun") build.ts"
}

sha256_of() {
  sha256sum <"$1" | cut -d ' ' -f 1
}

# Makes a directory and what is missing above it, and notes what it made, innermost first. What is
# there already ("a/.", or made by another program just now) is not noted.
make_directory() {
  [ ! -d "${1:-/}" ] || return 0
  make_directory "${1%/*}" || return 1
  if mkdir "$1" 2>/dev/null; then
    made="$(quote "$1") $made"
  else
    [ -d "$1" ]
  fi
}

# The binary has its own name by then, or the installation has failed.
clean_up() {
  [ ! -e "$beside" ] || rm -f "$beside"
  # Each word in it is quoted.
  [ -z "$made" ] || eval "rmdir $made" 2>/dev/null
}

# Checks the copy, not its source: what was read and written is what counts.
write_beside() {
  wanted=$(cut -d ' ' -f 1 "$here/dist/watchdog.sha256" 2>/dev/null) || wanted=
  [ -n "$wanted" ] ||
    fail "found no checksum in $here/dist/watchdog.sha256" "rm -r $(quote "$here/dist")"
  umask 022
  made=
  beside=$bin/.watchdog-new-$$
  trap clean_up EXIT
  trap 'exit 130' HUP INT TERM
  make_directory "$bin" || fail "cannot create $bin" "$elsewhere" 73
  cp "$here/dist/watchdog" "$beside" ||
    fail "cannot write in $bin" "$elsewhere" 73
  found=$(sha256_of "$beside")
  if [ "$found" != "$wanted" ]; then
    fail "dist/watchdog is damaged: found sha256 $found, expected $wanted" "$anew"
  fi
  chmod 0755 "$beside" || fail "cannot set the mode of $beside" "$elsewhere"
  version=$("$beside" --version) ||
    fail "the new binary does not start in $bin (is it mounted noexec?)" "$elsewhere"
}

put_in_place() {
  verb=installed
  [ ! -e "$target" ] || verb=replaced
  mv -f "$beside" "$target" || fail "cannot rename to $target" "ls -ld $(quote "$bin")" 73
  made=
}

report() {
  echo "$verb: $target ($version)"
  echo "undo: PREFIX=$(quote "$PREFIX") sh $self --uninstall"
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
  [ -n "$here" ] ||
    fail 'found nothing to install beside this script: it was piped or copied alone' \
      'cd /path/to/watchdog && sh install.sh'
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
  echo "removed: $target"
  [ -z "$here" ] || echo "undo: PREFIX=$(quote "$PREFIX") sh $self"
}

main() {
  find_project
  elsewhere="PREFIX=/some/other/place sh $self"
  anew="rm -r $(quote "$here/dist") && sh $self"
  [ "$#" -le 1 ] || fail "found $# words, expected at most one" "sh $self --help" 64
  case ${1:-} in
    '') action=install_binary ;;
    --uninstall) action=uninstall_binary ;;
    --help | -h) usage && return 0 ;;
    *) fail "unknown word '$1', expected --uninstall or --help" "sh $self --help" 64 ;;
  esac
  choose_target
  "$action"
}

main "$@"
