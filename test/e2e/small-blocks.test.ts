/**
 * A nearly full disk whose blocks are smaller than a page (ext4 -b 1024): what SQLite maps into
 * memory there has no blocks yet, and the kernel answers a store into it with SIGBUS (status 135).
 * Whatever is left on the disk, nobody dies of the journal.
 */
import { expect, test } from "bun:test";
import { type Ended, isRoot, openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

/** `S` in the file system of an image, in a mount namespace of its own: nothing stays mounted. */
async function onSmallBlocks(script: string): Promise<Ended> {
  const prepare = `set -e; mkdir -p "$D/m"; truncate -s 4M "$D/image"
    mkfs.ext4 -q -F -m 0 -b 1024 -O ^has_journal "$D/image"
    mount -o loop "$D/image" "$D/m"; set +e; S="$D/m/state"; M="$D/m"`;
  const env = { W: RELEASE, D: scene.directory };
  const words = ["unshare", "-m", "/bin/sh", "-c", `${prepare}\n${script}`];
  return scene.startProgram(words, { env }).ended;
}

const hasLoop = isRoot && (await onSmallBlocks("exit 0")).status === 0;
if (!hasLoop) console.error("needs root and a loop device, not run here: blocks below a page");

/** `leave KIB` fills the disk up to that; `status OF…` is the status of one command. */
const BASICS = `
  leave() {
    rm -f "$M/fill" "$S/journal.db-shm" "$S/journal.db-wal"
    dd if=/dev/zero of="$M/fill" bs=64k 2>/dev/null
    for once in 1 2; do
      dd if=/dev/zero of="$M/fill" bs=1k oflag=append conv=notrunc 2>/dev/null; sync
    done
    truncate -s $(($(stat -c %s "$M/fill") - $1 * 1024)) "$M/fill"
  }
  status() { "$@" >>"$D/out" 2>>"$D/err"; echo $?; }
  run="$W run --log off --state-dir $S --name small"`;

test.skipIf(!hasLoop)(
  "costs no command its life, however little is left",
  async () => {
    const levels = [0, 2, 8, 12, 20, 40, 1000];
    const ended = await onSmallBlocks(`${BASICS}
      $run -- true
      for level in ${levels.join(" ")}; do
        leave $level
        echo $(for ask in history status "stop small"; do
            status "$W" $ask --state-dir "$S"
          done; status $run -- sh -c 'exit 6'; status $run --no-lease -- sh -c 'exit 6')
      done
      rm "$M/fill"; "$W" history small --json --state-dir "$S" >"$D/history"; cat "$D/err" >&2`);
    const lines = ended.stdout.toString().trimEnd().split("\n");
    expect(lines).toHaveLength(levels.length);
    // Nobody is known to run: stop is 1, or 125 while entries wait that cannot be read in. Without
    // room for its lease a run is 125.
    for (const line of lines) expect(line).toMatch(/^0 0 (1|125) (6|125) 6$/);
    expect(ended.stderr).not.toContain("panic");
    expect(ended.stderr).toMatch(/journal\.db cannot be used: its file system is nearly full/);
    const { runs } = await Bun.file(scene.path("history")).json();
    // What found room in the spool is read in, once there is some.
    expect(runs.length).toBeGreaterThanOrEqual(levels.length);
  },
  LIMIT_MS,
);

test.skipIf(!hasLoop)(
  "costs a run nothing that fills the disk up itself, and its readers neither",
  async () => {
    const ended = await onSmallBlocks(`${BASICS}
      cat >"$D/filler" <<'END'
        until "$W" history small --json --state-dir "$S" | grep -q '"running"'; do :; done
        dd if=/dev/zero of="$M/fill" bs=1k 2>/dev/null; truncate -s -200k "$M/fill"
        "$W" history --state-dir "$S" >&2; echo $?
        "$W" status small --state-dir "$S" | head -n 1; exit 6
END
      export W S M; $run -- sh "$D/filler"; echo $?
      rm "$M/fill"; $run -- true; "$W" history small --state-dir "$S" | awk '{print $3, $4}'`);
    const [asked, held, left, ...history] = ended.stdout.toString().trimEnd().split("\n");
    expect(["0", "125"]).toContain(asked ?? ""); // it is in the -wal still, or is not
    expect([held, left]).toEqual([expect.stringMatching(/^job:small {2}held since /), "6"]);
    expect(history).toEqual(["ok 0", "failed 6"]);
  },
  LIMIT_MS,
);
