/** The audit of repairs: what is appended stays, whoever holds the journal meanwhile. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AuditEntry } from "../../src/core/journal-entry.ts";
import { AuditLog } from "../../src/journal/audit.ts";
import { Journal } from "../../src/journal/journal.ts";
import { failureOf } from "../support/failure-of.ts";
import { PYTHON } from "../support/outside.ts";
import { waitFor } from "../support/wait-for.ts";

const directory = mkdtempSync(join(tmpdir(), "watchdog-audit-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let count = 0;

function newState(): string {
  count += 1;
  const path = join(directory, `state-${count}`);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

function line(actId: string, changes: Partial<AuditEntry> = {}): AuditEntry {
  return {
    kind: "audit",
    at: 1_000.4,
    actId,
    phase: "intended",
    planId: "0123456789",
    key: { kind: "job", name: "nightly" },
    generation: 7,
    action: "mark",
    because: "tree-empty",
    evidence: { members: [] },
    who: "ops@nightly",
    uid: 1000,
    pid: 4711,
    bootId: "b",
    monotonicMs: 5.5,
    ...changes,
  };
}

function withAudit<T>(state: string, act: (audit: AuditLog) => T): T {
  const audit = new AuditLog(state);
  try {
    return act(audit);
  } finally {
    audit.close();
  }
}

function tables(state: string, sql: string): unknown[] {
  const db = new Database(`${state}/journal.db`);
  try {
    return db.query(sql).values();
  } finally {
    db.close();
  }
}

describe("the audit", () => {
  test("of nothing is empty, and makes nothing", () => {
    const state = newState();
    expect(withAudit(state, (audit) => audit.acts())).toEqual([]);
    expect(readdirSync(state)).toEqual([]);
    expect(withAudit(`${state}/nowhere`, (audit) => audit.acts())).toEqual([]);
  });

  test("knows each act by its first and its last line", () => {
    const state = newState();
    withAudit(state, (audit) => {
      audit.append(line("a"));
      audit.append(line("b", { key: { kind: "lane", name: "x" } }));
      audit.append(line("a", { phase: "done", because: "marked", at: 2_000, evidence: {} }));
    });
    expect(withAudit(state, (audit) => audit.acts())).toMatchObject([
      {
        actId: "a",
        key: "job:nightly",
        phase: "done",
        because: "marked",
        at: 1_000,
        monotonicMs: 5.5,
        evidence: { members: [] },
      },
      { actId: "b", key: "lane:x", phase: "intended" },
    ]);
  });

  test("cannot be changed, removed or replaced", () => {
    const state = newState();
    withAudit(state, (audit) => audit.append(line("a")));
    const db = new Database(`${state}/journal.db`);
    const columns = "id, entry_id, at, act_id, phase, plan_id, lease_key, action, because, who";
    for (const sql of [
      "UPDATE audit SET because = 'x'",
      "DELETE FROM audit",
      `INSERT OR REPLACE INTO audit (${columns}, uid, pid, boot_id, monotonic_ms)
         SELECT ${columns}, uid, pid, boot_id, monotonic_ms FROM audit`,
    ]) {
      expect(() => db.run(sql)).toThrow("the audit is append-only");
    }
    expect(db.query("SELECT count(*) FROM audit WHERE because = 'tree-empty'").values()).toEqual([
      [1],
    ]);
    db.close();
  });

  test("waits in the spool while somebody stands still in a transaction, and is known", () => {
    const state = newState();
    withAudit(state, (audit) => audit.append(line("a")));
    const holder = new Database(`${state}/journal.db`);
    holder.run("BEGIN IMMEDIATE");
    withAudit(state, (audit) => {
      audit.append(line("b"));
      expect(audit.acts().map(({ actId }) => actId)).toEqual(["a", "b"]);
    });
    expect(readdirSync(`${state}/spool`)).toHaveLength(1);
    holder.run("ROLLBACK");
    holder.close();
    const journal = new Journal(state, () => undefined);
    const about = { runId: null, job: null, key: null, because: null, data: {} };
    journal.put({ kind: "event", at: 1, name: "refused", ...about });
    journal.close(1_000);
    expect(tables(state, "SELECT act_id FROM audit ORDER BY id")).toEqual([["a"], ["b"]]);
    expect(readdirSync(`${state}/spool`)).toEqual([]);
    expect(withAudit(state, (audit) => audit.acts())).toHaveLength(2);
  });

  test("is read as soon as whoever stands in a transaction goes on", async () => {
    const state = newState();
    withAudit(state, (audit) => audit.append(line("a")));
    const program =
      "import sqlite3, sys, time\n" +
      "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n" +
      'db.execute("PRAGMA locking_mode=EXCLUSIVE"); db.execute("BEGIN EXCLUSIVE")\n' +
      'db.execute("CREATE TABLE held (x)"); open(sys.argv[2], "w").close(); time.sleep(0.4)\n';
    const sign = `${state}/held`;
    const child = Bun.spawn([PYTHON, "-I", "-S", "-c", program, `${state}/journal.db`, sign]);
    await waitFor(() => existsSync(sign), "a holder");
    expect(withAudit(state, (audit) => audit.acts())).toHaveLength(1);
    child.kill("SIGKILL");
    await child.exited;
  });

  test("whose line the database refuses is an error, and nothing may follow", async () => {
    const state = newState();
    withAudit(state, (audit) => audit.append(line("a")));
    const db = new Database(`${state}/journal.db`);
    db.run("CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'not so'); END");
    db.close();
    const failure = await failureOf(() => withAudit(state, (audit) => audit.append(line("b"))));
    expect(failure).toMatchObject({ code: "repair.unusable", exitStatus: 125 });
    expect(tables(state, "SELECT act_id FROM audit")).toEqual([["a"]]);
  });

  test("that nothing takes is an error, and nothing may follow", async () => {
    const state = newState();
    symlinkSync("/dev/null", `${state}/journal.db`);
    writeFileSync(`${state}/spool`, "no directory");
    const failure = await failureOf(() => withAudit(state, (audit) => audit.append(line("a"))));
    expect(failure).toMatchObject({ code: "repair.unusable", exitStatus: 125 });
    expect(String(failure)).toContain("the audit cannot be used");
  });
});
